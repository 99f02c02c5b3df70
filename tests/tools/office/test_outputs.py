"""Every shipped tool declares its output, and its results have exactly the declared fields."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from agents.accounts.models import Membership, Role
from agents.employees.models import Employee, ModelProvider
from agents.runs.engine.suspension import make_delegate_result
from agents.runs.models import Run, RunStatus
from tests.features import feature
from tests.tools.office.records.tenants import make_organization, make_record
from tools.builtin import BUILTIN_TOOLS
from tools.builtin.employee import Delegate
from tools.contract import ErrorCode, Level, Person, Tool, ToolContext, ToolResult
from tools.office.demo_register import DEMO_TOOLS
from tools.office.tools import OFFICE_TOOLS
from tools.office.tools.content import BuildReport, GenerateSummary
from tools.office.tools.data_bulk import ArchiveAll, BulkDelete, BulkUpdate
from tools.office.tools.data_write import AddToList, CreateRecord, QualifyRecord, UpdateRecord
from tools.office.tools.files import DeleteFile, WriteFile
from tools.office.tools.report import BuildPreview
from tools.office.tools.schedule import CancelSchedule, CreateSchedule
from tools.testing import run_tool

SHIPPED: list[type[Tool]] = [*BUILTIN_TOOLS, *OFFICE_TOOLS, *DEMO_TOOLS]
REPORT = {"title": "Quarter", "sections": [{"heading": "Europe", "text": "All well."}]}
WRITES: list[tuple[type[Tool], dict[str, Any]]] = [
    (CreateRecord, {"name": "Globex"}),
    (UpdateRecord, {"record_id": "{id}", "changes": {"status": "inactive"}}),
    (QualifyRecord, {"record_id": "{id}", "qualification": "qualified", "reason": "It buys."}),
    (AddToList, {"list_name": "Spring", "record_ids": ["{id}"]}),
    (BulkUpdate, {"record_ids": ["{id}"], "changes": {"region": "US"}}),
    (BulkDelete, {"record_ids": ["{id}"]}),
    (ArchiveAll, {"record_ids": ["{id}"]}),
    (GenerateSummary, {"title": "One firm", "body": "Text", "record_ids": ["{id}"]}),
    (BuildReport, REPORT),
    (BuildPreview, REPORT),
    (WriteFile, {"path": "new.txt", "text": "Text"}),
    (DeleteFile, {"path": "old.txt"}),
    (CreateSchedule, {"task": "Look", "cron": "0 9 * * MON"}),
]


@feature(
    "Tool contract",
    "Every tool that ships declares the data of its results",
    "tools/office/tools/outputs.py",
)
@pytest.mark.parametrize("tool", SHIPPED, ids=lambda tool: str(tool.name))
def test_every_shipped_tool_declares_its_output(tool: type[Tool]) -> None:
    assert tool.Output is not None
    properties = (tool().output_schema or {})["properties"]
    assert properties


def test_every_office_tool_above_the_read_level_has_a_case() -> None:
    lasting = {tool for tool in OFFICE_TOOLS if tool.level is not Level.READ}
    assert lasting == {tool for tool, _ in WRITES} | {CancelSchedule}, "it cancels the new schedule"


@pytest.mark.django_db
@pytest.mark.parametrize(("tool", "params"), WRITES, ids=lambda part: getattr(part, "name", ""))
def test_the_result_of_a_draft_or_write_has_exactly_the_declared_fields(
    tool: type[Tool], params: dict[str, Any], tmp_path: Path, settings: Settings
) -> None:
    context = build_context(tmp_path, settings)
    result = run_tool(
        tool,
        fill(params, str(make_record(context["organization"], "Acme Corp").pk)),
        **context["facts"],
    )
    assert_declared(tool, result)
    if tool is CreateSchedule:
        cancelled = run_tool(
            CancelSchedule, {"schedule_id": result.data["schedule"]["id"]}, **context["facts"]
        )
        assert_declared(CancelSchedule, cancelled)


def test_a_colleagues_answer_has_exactly_the_declared_fields() -> None:
    child = Run(pk=7, employee=Employee(name="Kim"), status=RunStatus.SUCCEEDED, answer="It is.")
    assert_declared(Delegate, make_delegate_result(child))


def test_a_shipped_tool_whose_result_violates_its_output_fails_without_changing_data() -> None:
    class Broken(CreateRecord):
        def execute(self, params: Any, context: ToolContext) -> ToolResult:
            return ToolResult.ok({"record": {"id": "7"}})

    error = run_tool(Broken, {"name": "Globex"}).error
    assert error is not None
    assert error.code is ErrorCode.OPERATION_FAILED
    assert "data.record.name: Field required. Nothing was changed." in error.message


def build_context(folder: Path, settings: Settings) -> dict[str, Any]:
    """Create an organization with a member, an employee and a file; return the organization and the
    facts of a run for a tool's context."""
    organization = make_organization()
    settings.GADGET_FILES_DIR = folder
    (folder / str(organization.pk)).mkdir()
    (folder / str(organization.pk) / "old.txt").write_text("Text", encoding="utf-8")
    provider = ModelProvider.objects.create(
        organization=organization, name="Script", kind="scripted"
    )
    employee = Employee.objects.create(organization=organization, name="Dana", provider=provider)
    user = User.objects.create_user("ann")
    Membership.objects.create(organization=organization, user=user, role=Role.OPERATOR)
    facts = {
        "organization_id": organization.pk,
        "employee_id": str(employee.pk),
        "employee_name": "Dana",
    }
    return {"organization": organization, "facts": {**facts, "user": Person(str(user.pk), "Ann")}}


def fill(value: Any, record_id: str) -> Any:
    """Replace {id} in the params by the record's id."""
    if isinstance(value, dict):
        return {key: fill(child, record_id) for key, child in value.items()}
    if isinstance(value, list):
        return [fill(child, record_id) for child in value]
    return value.replace("{id}", record_id) if isinstance(value, str) else value


def assert_declared(tool: type[Tool], result: ToolResult) -> None:
    """Check that the result's data has exactly the fields of the tool's Output, at every depth that
    a model declares."""
    assert result.success, result.for_model()
    assert tool.Output is not None
    written = tool.Output.model_validate(result.data).model_dump(mode="json", by_alias=True)
    assert written == result.data
