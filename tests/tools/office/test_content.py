"""Drafts are stored once per call, with links to records of the organization; a preview does not
store anything."""

from typing import Any

import pytest

from agents.accounts.models import Organization
from tests.features import feature
from tests.tools.office.records.tenants import make_organization, make_record
from tools.contract import ErrorCode, Level, ToolResult
from tools.office.records.models import Draft, Record
from tools.office.tools.content import BuildReport, GenerateSummary
from tools.office.tools.report import BuildPreview
from tools.testing import run_tool

pytestmark = pytest.mark.django_db

REPORT: dict[str, Any] = {
    "title": "Quarter",
    "sections": [
        {
            "heading": "Europe",
            "text": "All **well**.",
            "table": {"filters": {"region": "EU"}, "columns": ["name", "score"]},
        },
        {"heading": "Mars", "table": {"filters": {"region": "Mars"}}},
    ],
}


@pytest.fixture
def acme() -> Organization:
    organization = make_organization()
    make_record(organization, "Acme Corp", region="EU", score=5)
    make_record(organization, "Globex", region="EU")
    make_record(make_organization("stranger"), "Hidden", region="EU")
    return organization


def ids(organization: Organization) -> list[str]:
    return [
        str(record.pk)
        for record in Record.objects.filter(organization=organization).order_by("name")
    ]


def summarize(
    organization: Organization, key: str = "", record_ids: list[str] | None = None
) -> ToolResult:
    params = {"title": "Two firms", "body": "# Hm\n\ntext", "record_ids": record_ids or []}
    context = {
        "organization_id": organization.pk,
        "idempotency_key": key,
        "employee_name": "Rita",
        "run_id": "9",
    }
    return run_tool(GenerateSummary, params, **context)


@feature(
    "Built-in tools",
    "`content.generateSummary`, `buildReport`, `report.buildPreview`",
    "tools/office/tools/content.py",
    whole_file=True,
)
def test_a_summary_becomes_a_draft_with_its_links(acme: Organization) -> None:
    result = summarize(acme, "k1", ids(acme))
    draft = Draft.objects.get()
    assert result.data["draft_id"] == str(draft.pk)
    assert (draft.organization, draft.kind, draft.body) == (acme, "summary", "# Hm\n\ntext")
    assert (draft.employee, draft.run_id) == ("Rita", "9")
    assert [str(record.pk) for record in draft.records.order_by("name")] == ids(acme)


def test_the_same_call_creates_one_draft(acme: Organization) -> None:
    assert summarize(acme, "k1").data == summarize(acme, "k1").data
    assert Draft.objects.count() == 1
    summarize(acme, "k2")
    assert Draft.objects.count() == 2


def test_without_a_key_each_call_creates_its_own_draft(acme: Organization) -> None:
    summarize(acme)
    summarize(acme)
    assert Draft.objects.count() == 2


def test_keys_are_separate_for_each_organization(acme: Organization) -> None:
    stranger = Organization.objects.get(slug="stranger")
    assert summarize(acme, "k").data["draft_id"] != summarize(stranger, "k").data["draft_id"]


def test_records_of_another_organization_cannot_be_linked_or_shown(acme: Organization) -> None:
    hidden = [str(Record.objects.get(name="Hidden").pk)]
    table = {"title": "T", "sections": [{"heading": "H", "table": {"record_ids": hidden}}]}
    for result in (
        summarize(acme, "k", hidden),
        run_tool(BuildReport, table, organization_id=acme.pk),
        run_tool(BuildPreview, table, organization_id=acme.pk),
    ):
        assert result.error is not None
        assert result.error.code is ErrorCode.NOT_FOUND
    assert not Draft.objects.exists()


def test_a_report_is_stored_as_its_preview_shows_it(acme: Organization) -> None:
    preview = run_tool(BuildPreview, REPORT, organization_id=acme.pk)
    assert not Draft.objects.exists()
    run_tool(BuildReport, REPORT, organization_id=acme.pk)
    draft = Draft.objects.get()
    assert (
        draft.body
        == preview.data["body"]
        == (
            "# Quarter\n\n## Europe\n\nAll **well**.\n\n"
            "| name | score |\n| --- | --- |\n| Acme Corp | 5 |\n| Globex |  |\n\n"
            "## Mars\n\n*No records match.*\n"
        )
    )
    assert preview.data["record_ids"] == ids(acme)
    assert draft.records.count() == 2


def test_a_table_keeps_the_order_of_its_ids_and_counts_the_records_beyond_its_limit(
    acme: Organization,
) -> None:
    first, second = ids(acme)
    ordered = {
        "title": "T",
        "sections": [{"heading": "H", "table": {"record_ids": [second, first], "columns": ["id"]}}],
    }
    body = run_tool(BuildPreview, ordered, organization_id=acme.pk).data["body"]
    assert body.index(f"| {second} |") < body.index(f"| {first} |")
    short = {"title": "T", "sections": [{"heading": "H", "table": {"limit": 1}}]}
    assert (
        "*1 of 2 records.*" in run_tool(BuildPreview, short, organization_id=acme.pk).data["body"]
    )


@pytest.mark.parametrize(
    "params", [{"title": "T", "sections": []}, {"title": "T", "sections": [{"text": "x"}]}]
)
def test_a_report_without_sections_or_headings_is_refused(
    params: dict[str, Any], acme: Organization
) -> None:
    assert not run_tool(BuildReport, params, organization_id=acme.pk).success


def test_all_content_tools_have_the_level_draft() -> None:
    assert {tool.level for tool in (GenerateSummary, BuildReport, BuildPreview)} == {Level.DRAFT}
