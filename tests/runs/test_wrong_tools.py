"""A plugin whose tools each have a different fault does not break pages, runs, REST responses or
the doctor's checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from agents.accounts.membership import issue_token
from agents.employees import toolboxes
from agents.employees.models import Grant
from agents.runs.models import CallStatus, Run, RunStatus, ToolCall
from gadget_site.management.installation_checks import check_plugins, check_tools
from tests.features import feature
from tests.model_server import Call, ModelServer, Response
from tests.tools.plugins import wrong_tools
from tests.workshop import Workshop, calls, error_code, make_due, passes
from tools.contract import Tool

ENTRY = "[gadget.tools]\nwrong = tests.tools.plugins.wrong_tools:TOOLS\n"

PAGES = (
    "/stop/",
    "/tools/",
    "/tools/?category=wrong",
    "/",
    "/approvals/",
    "/oversight/",
    "/grants/",
    "/approvals/who/",
)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """Install the plugin, and name it in the settings."""
    package = tmp_path / "gadget_wrong-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: gadget-wrong\nVersion: 1.0\n", encoding="utf-8"
    )
    (package / "entry_points.txt").write_text(ENTRY, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    config = settings.GADGET_CONFIG
    settings.GADGET_CONFIG = config.model_copy(
        update={"tools": config.tools.model_copy(update={"plugins": ["wrong"]})}
    )
    wrong_tools.ran.clear()


@pytest.fixture
def employed(workshop: Workshop, plugin: None) -> Workshop:
    """The workshop, whose employee may use every tool that was loaded from the plugin."""
    source = toolboxes.get_installed_plugins()[0][-1]
    Grant.objects.bulk_create(
        [Grant(employee=workshop.employee, tool=tool.name) for tool in source.tools()]
    )
    return workshop


def names(tools: list[Tool]) -> list[str]:
    return [tool.name for tool in tools]


def stored(call: ToolCall) -> dict[str, Any]:
    """Return the stored result of a call."""
    found: dict[str, Any] | None = call.result
    assert found is not None
    return found


def ask(workshop: Workshop, server: ModelServer, *tools: str) -> Run:
    """Let the employee's model request these tools in one response, and drive the run as far as
    possible."""
    workshop.connect(server.url)
    server.script(Response(calls=tuple(Call(tool, {}) for tool in tools)), Response(text="Done."))
    return workshop.work()


def sign_in(workshop: Workshop, role: str = "admin") -> Client:
    client, user = Client(), workshop.members[role].user
    user.is_staff = role == "admin"
    user.save()
    client.force_login(user)
    return client


@feature(
    "Plugins",
    "A tool with an invalid attribute is left out with an explanation; pages and runs continue without it",
    "tools/contract/declarations.py",
)
def test_each_invalid_tool_is_left_out_with_a_reason_that_the_doctor_and_the_catalog_show(
    employed: Workshop,
) -> None:
    toolbox = toolboxes.get_installed_toolbox()
    loaded = {tool.name for tool in toolbox.tools()}
    assert len(toolbox.left_out) == len(wrong_tools.LEFT_OUT) >= 25
    assert {"right.read", "right.write", *names(wrong_tools.REJECTED)} <= loaded
    assert not [name for name in loaded if "attribute" in name]
    told = [finding.text for finding in check_tools()]
    page = sign_in(employed).get("/tools/", {"q": "nothing"}).content.decode()
    for name in wrong_tools.WRONG_ATTRIBUTES:
        (sentence,) = [
            each
            for each in toolbox.left_out
            if f".WrongAttribute-{name.title().replace('_', '-')}:" in each
        ]
        assert f"left out: {sentence}" in told
        assert sentence.partition(":")[0] in page
    assert not [finding for finding in check_plugins() if "not loaded" in finding.text]


@pytest.mark.parametrize("role", ["admin", "operator", "viewer"])
def test_every_page_about_tools_is_shown_despite_invalid_tools(
    employed: Workshop, role: str
) -> None:
    client = sign_in(employed, role)
    for path in PAGES:
        assert client.get(path).status_code in (200, 302, 403), path
    page = client.get("/tools/", {"category": "wrong"})
    while 'rel="next"' in page.content.decode():
        after = page.context["next_query"] if page.context else ""
        page = client.get(f"/tools/?{after}")
        assert page.status_code == 200
    assert ("wrong.preview-date" in client.get("/stop/").content.decode()) is (role != "viewer")


def test_the_employee_forms_and_the_rest_api_list_invalid_tools(employed: Workshop) -> None:
    client = sign_in(employed)
    for path in ("add/", f"{employed.employee.pk}/change/"):
        page = client.get(f"/admin/employees/employee/{path}")
        assert page.status_code == 200, path
        assert "wrong.sentence-none" in page.content.decode()
    headers = {"Authorization": f"Bearer {issue_token(employed.admin, 'wrong')[1]}"}
    found, address = list[str](), "/api/tools?limit=100"
    while address:
        page = Client().get(address, headers=headers)
        assert page.status_code == 200
        found += [tool["name"] for tool in page.json()["items"]]
        cursor = page.json()["next_cursor"]
        address = f"/api/tools?limit=100&cursor={cursor}" if cursor else ""
    assert {"right.read", *names(wrong_tools.REJECTED)} <= set(found)


def test_a_tool_with_an_invalid_preview_can_be_stopped_and_resumed(employed: Workshop) -> None:
    client = sign_in(employed)
    for act in ("stop", "release"):
        form = {"what": "tool", "act": act, "which": "wrong.preview-date"}
        assert client.post("/stop/", form).status_code == 302
        assert client.get("/stop/").status_code == 200


@feature(
    "Plugins",
    "A call whose preview, sentence or hosts are invalid is rejected, and the others continue",
    "tools/toolbox/isolation.py",
)
def test_a_call_whose_tool_has_an_invalid_method_is_rejected_and_the_other_calls_continue(
    employed: Workshop, model: ModelServer
) -> None:
    wrong = names(wrong_tools.REJECTED)
    run = ask(employed, model, "right.read", *wrong, "right.write")
    by_tool = {call.tool: call for call in calls(run)}
    assert by_tool["right.read"].status == CallStatus.SUCCEEDED
    assert by_tool["right.write"].status == CallStatus.AWAITING_APPROVAL
    for name in wrong:
        call = by_tool[name]
        assert (call.status, error_code(call)) == (CallStatus.REJECTED, "TOOL_EXECUTION_FAILED"), (
            name
        )
        method = {
            "preview": "preview",
            "sentence": "sentence",
            "params": "check_params",
            "hosts": "hosts",
        }
        assert (
            f"{method[name.removeprefix('wrong.').partition('-')[0]]} returned " in call.content
        ), call.content
    assert len(model.requests) == 1
    employed.approve(employed.card(run))
    assert employed.drive(make_due(run)).status == RunStatus.SUCCEEDED
    assert wrong_tools.ran == ["right.write"]


def test_an_odd_preview_is_written_as_json_and_approved_as_shown(
    employed: Workshop, model: ModelServer
) -> None:
    run = ask(employed, model, *names(wrong_tools.CARDED))
    cards = {card.tool_call.tool: card for card in employed.cards(run)}
    assert set(cards) == set(names(wrong_tools.CARDED))
    (target,) = cards["wrong.odd-values"].preview["targets"]
    assert target["id"] == "00000000-0000-0000-0000-000000000001"
    assert target["after"] == {"on": "2026-05-04", "sum": "1", "rate": None, "tags": ["a", "b"]}
    for card in cards.values():
        employed.approve(card)
    run = employed.drive(make_due(run))
    assert (run.status, len(wrong_tools.ran)) == (RunStatus.SUCCEEDED, len(cards))


@feature(
    "Plugins",
    "A write that returned counts as done, whatever its result",
    "tools/toolbox/outcome.py",
)
def test_a_write_that_returns_an_unusable_result_is_never_recorded_as_failed(
    employed: Workshop, model: ModelServer
) -> None:
    groups = (wrong_tools.WRITTEN, wrong_tools.UNREADABLE, wrong_tools.UNKNOWN)
    asked = [tool.name for group in groups for tool in group]
    for start in range(0, len(asked), 10):
        run = ask(employed, model, *asked[start : start + 10])
        for card in employed.cards(run):
            employed.approve(card)
        employed.drive(make_due(run))
    assert sorted(wrong_tools.ran) == sorted(asked)
    rows = {call.tool: call for call in ToolCall.objects.filter(tool__in=asked)}
    for name in names(wrong_tools.WRITTEN):
        assert (rows[name].status, "cannot be read" in rows[name].content) == (
            CallStatus.SUCCEEDED,
            False,
        ), name
    for name in names(wrong_tools.UNREADABLE):
        assert rows[name].status == CallStatus.SUCCEEDED, name
        assert "It succeeded, but its result cannot be read: " in rows[name].content
        assert "its result cannot be read" in stored(rows[name])["summary"]
    for name in names(wrong_tools.UNKNOWN):
        assert rows[name].status == CallStatus.OUTCOME_UNKNOWN, name
    assert stored(rows["wrong.result-model"])["data"] == {"id": 7, "amount": "1.50"}
    assert stored(rows["wrong.result-inside"])["data"] == {"id": 5, "it": "[not readable: object]"}


def test_a_read_with_an_invalid_result_fails_without_affecting_other_calls(
    employed: Workshop, model: ModelServer
) -> None:
    asked = names(wrong_tools.READS)
    run = ask(employed, model, "right.read", *asked)
    assert run.status == RunStatus.SUCCEEDED
    rows = {call.tool: call.status for call in calls(run) if call.parent_call_id is None}
    assert rows["right.read"] == CallStatus.SUCCEEDED
    assert {name for name in asked if rows[name] == CallStatus.FAILED} == {
        *("wrong.error", "wrong.question", "wrong.delegation", "wrong.inner", "wrong.recipe"),
    }
    assert len(passes(run)) == 2
