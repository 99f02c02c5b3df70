"""The content type and the details of a result are shown on the run's page, on the call's page and
over REST."""

import json
from typing import Any

import pytest

from agents.employees.models import Employee, Grant
from agents.runs.actions import Submission, submit
from agents.runs.engine.loop import advance
from agents.runs.models import Event, EventType, ToolCall
from agents.web.panel.lines import render_lines
from tests.scripts import write_script
from tests.tools.toolbox.sample_tools import Does
from tests.web.pages import read_page
from tests.workshop.fixtures import toolbox  # noqa: F401
from tests.world import make_world
from tools.contract import ToolResult
from tools.toolbox.toolbox import Toolbox

DETAILS: dict[str, Any] = {"delimiter": "<b>;</b>", "encoding": "latin-1"}


@pytest.mark.django_db(transaction=True)
def test_type_and_details_are_shown_over_rest_and_escaped_on_pages(toolbox: Toolbox) -> None:  # noqa: F811
    world = make_world()
    toolbox.register(
        Does(lambda _: ToolResult.ok("a;b", "One row", content_type="text/csv", details=DETAILS))
    )
    Grant.objects.create(employee=world.employee, tool=Does.name)
    script = {
        "title": "x",
        "task": ".*",
        "passes": [{"calls": [{"tool": Does.name, "params": {}}]}],
        "answer": "Done.",
    }
    Employee.objects.update(model=write_script(json.dumps({"scripts": [script]})))
    run, _ = submit(world.member("operator"), Submission(world.employee.pk, "Export"))
    advance(run.pk)
    call = ToolCall.objects.get(run=run)

    client = world.client("viewer")
    shown = client.get(f"/api/tool_calls/{call.pk}").json()["result"]
    assert (shown["content_type"], shown["details"], shown["data"]) == ("text/csv", DETAILS, "a;b")
    brief = client.get(f"/api/runs/{run.pk}").json()["tool_calls"][0]["result"]
    assert (brief["content_type"], brief["details"]) == ("text/csv", DETAILS)

    page = read_page(client, f"/runs/{run.pk}/calls/{call.pk}/")
    events = list(Event.objects.filter(run=run, type=EventType.TOOL_RESULT))
    (line,) = render_lines(run.pk, events)
    assert "text/csv" in page
    for html in (page, line.html):
        assert "Details" in html
        assert "latin-1" in html
        assert "<b>;</b>" not in html
