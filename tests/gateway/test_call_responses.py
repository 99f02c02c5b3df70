"""Responses of the MCP server: a tool with its hints, the result of a call, or its ticket."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from agents.gateway.tickets import Ticket
from agents.mcp_server.call_responses import (
    build_address,
    build_call_response,
    build_cancellation,
    describe_tool,
)
from agents.mcp_server.names import TICKET_TOOL
from agents.mcp_server.results import SHORT
from agents.runs.models import CallStatus, ToolCall
from tests.features import feature
from tests.probes import Effect
from tools.contract import ErrorCode, Level, ToolError, ToolResult
from tools.contract.excerpts import MAX_CHARACTERS, take_excerpt

SITE = "https://gadget.example.com"


def build_ticket(status: CallStatus, result: ToolResult | None = None, **more: Any) -> Ticket:
    """Build the ticket of a call of run 5; by default, the call has the text `As text` for the
    model."""
    stored = result.as_json() if result is not None else None
    call = ToolCall(
        pk=3, run_id=5, status=status, result=stored, content=more.pop("content", "As text")
    )
    return Ticket(call, more.pop("told", str(status)), **more)


def answer(ticket: Ticket) -> tuple[str, Any, bool | None]:
    """Return the text and the structured content of the response for the ticket, and True if the
    response is an error."""
    built = build_call_response(ticket, SITE)
    (content,) = built.content
    return content.text, built.structured_content, built.is_error  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("level", "reads", "destroys"),
    [
        (Level.READ, True, False),
        (Level.DRAFT, True, False),
        (Level.WRITE, False, False),
        (Level.DESTRUCTIVE, False, True),
    ],
)
def test_a_tool_is_described_with_hints_for_its_level(
    level: Level, *, reads: bool, destroys: bool
) -> None:
    tool = Effect()
    tool.level = level
    hints = describe_tool(tool, ()).annotations
    assert hints is not None
    assert (hints.read_only_hint, hints.destructive_hint) == (reads, destroys)


def test_a_result_is_returned_as_text_and_as_data() -> None:
    assert answer(build_ticket(CallStatus.SUCCEEDED, ToolResult.ok({"a": 1}))) == (
        '{"a":1}',
        {"a": 1},
        False,
    )


@pytest.mark.parametrize(("data", "text"), [("text", '"text"'), ([1], "[1]"), (None, "Done")])
def test_data_that_is_not_an_object_is_returned_only_as_text(data: Any, text: str) -> None:
    assert answer(build_ticket(CallStatus.SUCCEEDED, ToolResult.ok(data))) == (text, None, False)


def test_text_that_a_tool_writes_for_models_is_also_in_the_structured_content() -> None:
    text = "No record matches. Try another region."
    told = answer(build_ticket(CallStatus.SUCCEEDED, ToolResult.ok({"found": 0}, markdown=text)))
    assert told == (text, {"found": 0, "markdown": text}, False)
    own = ToolResult.ok({"markdown": "its own"}, markdown=text)
    assert answer(build_ticket(CallStatus.SUCCEEDED, own))[1] == {
        "data": own.data,
        "markdown": text,
    }


def test_structured_content_is_complete_up_to_a_maximum_size() -> None:
    largest = {"a": "x" * (SHORT - len('{"a": ""}'))}
    assert answer(build_ticket(CallStatus.SUCCEEDED, ToolResult.ok(largest)))[1] == largest
    larger = {"a": largest["a"] + "x"}
    assert answer(build_ticket(CallStatus.SUCCEEDED, ToolResult.ok(larger)))[1] != larger


ROWS = [{"id": number, "name": "x" * 50} for number in range(5_000)]
LARGE = {
    "rows": ToolResult.ok({"total": 5_000, "records": ROWS}, "Found 5,000 records"),
    "rows and a short text": ToolResult.ok({"records": ROWS}, markdown="| id |\n| 1 |"),
    "rows and a long text": ToolResult.ok({"records": ROWS}, markdown="a line\n" * 9_000),
    "one text": ToolResult.ok({"text": "x" * 90_000}),
    "many texts": ToolResult.ok({f"text {number}": "é" * 900 for number in range(50)}),
    "long rows": ToolResult.ok({"records": [{"body": "y" * 9_000}] * 9}),
    "one level deeper": ToolResult.ok({"result": {"records": ROWS}}),
}


@feature(
    "Agents elsewhere",
    "Text and structure of a result both guide the model, and nothing large is in both",
    "agents/mcp_server/results.py",
)
@pytest.mark.parametrize("result", LARGE.values(), ids=LARGE)
def test_both_forms_of_a_large_result_are_limited_in_size(result: ToolResult) -> None:
    text, structure, _ = answer(build_ticket(CallStatus.SUCCEEDED, result))
    assert len(json.dumps(structure, ensure_ascii=False)) < SHORT + 1_500
    assert len(text) < MAX_CHARACTERS + 7_000


@pytest.mark.parametrize("result", LARGE.values(), ids=LARGE)
def test_the_short_form_of_a_large_result_says_how_to_get_the_rest(result: ToolResult) -> None:
    """The pages that follow the short form contain the rest: each part once, and only as text."""
    ticket = build_ticket(CallStatus.SUCCEEDED, result)
    _, structure, _ = answer(ticket)
    if result.markdown and len(result.markdown) < SHORT:
        assert (structure["text"], structure["guidance"]) == (result.markdown, "")
        return
    assert structure["ticket"] == ticket.id
    assert f"{TICKET_TOOL} with ticket {ticket.id}" in structure["guidance"]
    start: int | None = int(re.findall(r"start (\d+)", structure["guidance"])[0])
    shown = len(structure["result"]["records"]) if "result" in structure else 0
    if shown:
        assert structure["result"]["records"] == ROWS[:shown]
        assert start == shown
    pieces, unit = [], take_excerpt(result).unit
    while start is not None:
        page = build_call_response(ticket, SITE, start)
        text, _, last = page.content[0].text.rpartition("\n")  # type: ignore[union-attr]
        assert page.structured_content is None
        pieces.append(text)
        found = re.search(r"start (\d+)", last)
        start = int(found[1]) if found else None
    whole = {"rows": ",\n", "lines": "\n", "characters": ""}[unit].join(pieces)
    if unit == "rows":
        assert json.loads(f"[{whole}]") == result.data["records"][shown:]
    else:
        assert result.for_model().endswith(whole)
        assert len(whole) > 20_000


def test_the_text_of_a_large_result_says_how_to_get_the_rest() -> None:
    text = answer(build_ticket(CallStatus.SUCCEEDED, LARGE["rows"]))[0]
    assert re.search(
        rf"handle t-3; continue with {TICKET_TOOL}, this handle as ticket, and start \d+]$", text
    )
    assert "results.read" not in text


def test_params_changed_by_a_person_are_in_both_forms() -> None:
    ticket = build_ticket(CallStatus.SUCCEEDED, ToolResult.ok({"a": 1}))
    ticket.call.model_params, ticket.call.params = {"to": "ann"}, {"to": "bob"}
    text, structure, _ = answer(ticket)
    note = 'A person changed the params before approving, to: {"to":"bob"}'
    assert text == f'{note}\n{{"a":1}}'
    assert structure == {"guidance": note, "result": {"a": 1}}


def test_an_error_is_returned_with_its_code() -> None:
    failed = ToolResult.failed(ToolError(ErrorCode.NOT_FOUND, "There is no record 5."))
    assert answer(build_ticket(CallStatus.FAILED, failed)) == (
        "As text",
        {"status": "failed", "code": "NOT_FOUND", "message": "As text"},
        True,
    )


def test_a_call_that_ended_without_a_result_is_returned_as_an_error_with_its_status() -> None:
    assert answer(build_ticket(CallStatus.CANCELLED, content="")) == (
        "Cancelled",
        {"status": "cancelled", "code": "", "message": "Cancelled"},
        True,
    )


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (CallStatus.AWAITING_APPROVAL, "A person has to decide"),
        (CallStatus.OUTCOME_UNKNOWN, "Nobody knows whether this call took effect"),
        (CallStatus.SUSPENDED, "waits for an answer"),
        (CallStatus.EXECUTING, "The call is running"),
        (CallStatus.READY, "The call is running"),
    ],
)
def test_an_unfinished_call_is_returned_as_a_ticket(status: CallStatus, advice: str) -> None:
    text, structure, is_error = answer(build_ticket(status, told="told", card_id=7))
    assert advice in structure["guidance"]
    assert TICKET_TOOL in structure["guidance"]
    assert json.loads(text) == structure
    told = {"status": "told", "ticket": "t-3", "url": f"{SITE}/approvals/7/"}
    assert structure == {**told, "guidance": structure["guidance"]}
    assert not is_error


@pytest.mark.parametrize(
    ("status", "in_time"),
    [
        (CallStatus.CANCELLED, True),
        *((each, False) for each in CallStatus if each != CallStatus.CANCELLED),
    ],
)
def test_a_cancellation_is_an_error_only_if_it_came_too_late(
    status: CallStatus, in_time: bool
) -> None:
    built = build_cancellation(build_ticket(status), SITE)
    assert built.is_error is not in_time
    assert built.structured_content is not None
    assert ("cancelled. It did not run" in built.structured_content["guidance"]) is in_time


def test_the_ticket_of_a_call_without_a_card_links_to_the_run() -> None:
    assert build_address(build_ticket(CallStatus.EXECUTING), SITE) == f"{SITE}/runs/5/"
