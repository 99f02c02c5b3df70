"""The catalog's form for trying a tool, which is built from the tool's schema. Problems are shown
beside their inputs, and only reads can be tried."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.employees.models import Employee, Grant
from agents.employees.toolboxes import get_installed_toolbox
from agents.runs.models import CallStatus, Event, EventType, Origin, Run, RunStatus, ToolCall
from tests.features import feature
from tests.hostile import packed
from tests.hostile.pages import Reading, strange, tells
from tests.web.test_tools import entry, read_page
from tests.world import DELETE, SEARCH, UPDATE, World, success

pytestmark = pytest.mark.django_db

PATH = f"/tools/{SEARCH}/try/"


def sent(world: World, username: str = "operator", path: str = PATH, **params: Any) -> Any:
    typed = {f"param.{name}": text for name, text in params.items() if name != "employee"}
    return world.client(username).post(
        path, {"employee": params.get("employee", world.employee.pk), **typed}
    )


def find_form(html: str, tool: str = SEARCH) -> str:
    return entry(html, tool).partition('<details class="try"')[2]


class TestTheFormOfATool:
    def test_has_an_input_for_each_param_and_offers_active_employees_with_the_grant(
        self, world: World
    ) -> None:
        Grant.objects.create(employee=world.others_employee, tool=SEARCH)
        idle = Employee.objects.create(
            organization=world.acme, name="Idle", provider=world.employee.provider, is_active=False
        )
        Grant.objects.create(employee=idle, tool=SEARCH)
        form = find_form(read_page(world.client("operator")))
        tool = get_installed_toolbox().get_tool(SEARCH)
        assert tool is not None
        assert set(re.findall(r'name="param\.([a-z_]+)"', form)) == set(tool.schema["properties"])
        assert re.findall(r'<option value="\d+">([^<]+)', form) == ["Dana"]
        assert f'action="{PATH}"' in form
        assert not form.startswith(" open")

    def test_is_shown_only_to_operators_and_only_for_reads_that_an_active_employee_can_use(
        self, world: World
    ) -> None:
        html = read_page(world.client("operator"))
        assert "Try it" not in entry(html, UPDATE)
        assert "Try it" not in entry(html, DELETE)
        assert "Try it" not in entry(html, "data.getStats"), "granted to nobody"
        assert "Try it" not in read_page(world.client("viewer"))
        assert "Try it" not in read_page(world.client("outsider"))
        Employee.objects.update(is_active=False)
        assert "Try it" not in read_page(world.client("operator"))

    def test_does_not_need_an_additional_query(self, world: World) -> None:
        asked = []
        for username in ("viewer", "operator"):
            client = world.client(username)
            read_page(client)
            with CaptureQueriesContext(connection) as queries:
                read_page(client)
            asked.append(len(queries))
        assert asked[0] == asked[1]


class TestTryingATool:
    def test_starts_a_run_and_redirects_to_it(self, world: World) -> None:
        response = sent(world, region="EU", limit="7")
        run = Run.objects.get()
        assert (response.status_code, response["Location"]) == (302, f"/runs/{run.pk}/")
        assert (run.origin, run.employee, run.created_by) == (
            Origin.MANUAL,
            world.employee,
            world.users["operator"],
        )
        call = ToolCall.objects.get()
        assert (call.tool, call.params["region"], call.params["limit"]) == (SEARCH, "EU", 7)
        html = world.client("viewer").get(response["Location"]).content.decode()
        assert "single call, no model" in html
        assert (
            'class="follow-up'
            not in world.client("operator").get(response["Location"]).content.decode()
        )
        refused = world.client("operator").post(f"/runs/{run.pk}/message/", {"text": "And now?"})
        assert refused.status_code == 409
        assert "model reads messages in this run" in refused.content.decode()

    @feature(
        "Execution",
        "The trial form in the catalog is generated from the tool's schema",
        "agents/web/views/tools.py",
    )
    @pytest.mark.parametrize(
        ("params", "status", "told"),
        [
            ({"limit": "many"}, 422, "is not a whole number"),
            ({"limit": "5000"}, 422, "less than or equal to 1000"),
            ({"status": "asleep"}, 422, "It must be"),
            ({"employee": "nobody"}, 422, "Choose an employee"),
            ({"employee": ""}, 422, "Choose an employee"),
            ({"employee": str(10**30)}, 422, "Choose an employee"),
        ],
    )
    def test_shows_errors_with_the_typed_texts(
        self, world: World, params: dict[str, str], status: int, told: str
    ) -> None:
        response = sent(world, text="as I typed it", **params)
        assert response.status_code == status
        form = find_form(response.content.decode())
        assert form.startswith(" open")
        assert told in form
        assert 'value="as I typed it"' in form
        assert response.content.decode().count('class="tool surface" open') == 1
        assert not Run.objects.exists()

    def test_is_refused_if_the_call_needs_approval(self, world: World) -> None:
        limit = {"param": "region", "rule": "one_of", "value": ["US"], "otherwise": "ask"}
        Grant.objects.filter(tool=SEARCH).update(conditions=[limit])
        response = sent(world, region="EU")
        assert response.status_code == 409
        assert "This call would need approval" in find_form(response.content.decode())
        assert sent(world, region="US").status_code == 302

    def test_is_refused_for_writes_and_tools_of_other_organizations(self, world: World) -> None:
        assert sent(world, path=f"/tools/{UPDATE}/try/").status_code == 409
        for name in ("data.nowhere", "data.searchRecords@9.9", "%00"):
            assert sent(world, path=f"/tools/{name}/try/").status_code == 404
        assert sent(world, "viewer").status_code == 403
        assert sent(world, "outsider").status_code == 404
        assert sent(world, employee=world.others_employee.pk).status_code == 404
        assert not Run.objects.exists()

    def test_escapes_hostile_params(self, world: World) -> None:
        def answered(text: str) -> Any:
            return sent(world, limit="x", text=text, region=text, category=text, status=text)

        known = Reading(answered("harmless").content.decode()).shapes
        for text in packed(400):
            response = answered(text)
            assert response.status_code == 422
            reading = Reading(response.content.decode())
            assert [*strange(reading, known), *reading.faults] == [], text[:80]
        for text in packed(60)[::8]:
            response = sent(world, text=text)
            where = response["Location"] if response.status_code == 302 else ""
            page = Reading(world.client("viewer").get(where).content.decode()) if where else None
            assert page is None or not page.faults
        assert tells(Reading(sent(world, limit="<b>x</b>").content.decode()).text, "<b>x</b>")


class TestTheResult:
    @feature(
        "Execution",
        "The run's page shows the result of a trial as a table or a tree",
        "agents/web/views/runs.py",
    )
    def test_is_shown_as_a_table_on_the_run_page(self, world: World) -> None:
        rows = [
            {"id": str(one.pk), "name": one.name, "note": "<b>bold</b>"} for one in world.records
        ]
        html = read_result_section(
            world, create_tried_run(world, {"total": len(rows), "records": rows})
        )
        for one in world.records:
            assert one.name in html
        assert html.count("<tr>") == 1 + len(world.records)
        assert "&lt;b&gt;bold&lt;/b&gt;" in html
        assert not html.startswith(" hidden>")

    def test_is_hidden_if_there_is_only_a_summary(self, world: World) -> None:
        assert read_result_section(world, create_tried_run(world, {})).startswith(" hidden>")

    def test_is_hidden_before_the_call_has_ended(self, world: World) -> None:
        run = world.run(RunStatus.QUEUED, origin=Origin.MANUAL)
        world.call(run, status=CallStatus.READY, result=None, finished_at=None)
        assert read_result_section(world, run).startswith(" hidden>")

    def test_is_not_shown_on_the_page_of_an_ordinary_run(self, world: World) -> None:
        run = create_tried_run(world, {"total": 3}, origin=Origin.TASK)
        assert (
            "data-trial-result"
            not in world.client("viewer").get(f"/runs/{run.pk}/").content.decode()
        )


def create_tried_run(world: World, data: Any, origin: Origin = Origin.MANUAL) -> Run:
    """Create an ended run with one call, which returned this data."""
    run = world.run(RunStatus.SUCCEEDED, origin=origin)
    world.call(run, result=success(data))
    Event.objects.create(run=run, seq=1, type=EventType.RUN_FINISHED, payload=ENDED_WELL)
    return run


ENDED_WELL = {
    "status": "succeeded",
    "exit_reason": "final_answer",
    "answer": "Found 3 records",
    "pass_number": 1,
    "input_tokens": 0,
    "output_tokens": 0,
    "cost": None,
    "currency": "",
}


def read_result_section(world: World, run: Run) -> str:
    html: str = world.client("viewer").get(f"/runs/{run.pk}/").content.decode()
    return html.partition("data-trial-result")[2].partition("</section>")[0]
