"""What a client of the MCP server is told: a tool with its hints, the result of a call, or its ticket."""

from __future__ import annotations

from typing import Any

import pytest

from agents.gateway.tickets import Ticket
from agents.mcp_server.answers import LARGEST_STRUCTURE, build_address, build_answer, describe_tool
from agents.runs.models import CallStatus, ToolCall
from tests.probes import Effect
from tools.contract import ErrorCode, Level, ToolError, ToolResult

SITE = "https://gadget.example.com"


def build_ticket(status: CallStatus, result: ToolResult | None = None, **more: Any) -> Ticket:
    """Build the ticket of a call of run 5, as a model reads it: `As text`, unless there is no text."""
    stored = result.as_json() if result is not None else None
    call = ToolCall(pk=3, run_id=5, status=status, result=stored, content=more.pop("content", "As text"))
    return Ticket(call, more.pop("told", str(status)), **more)


def answer(ticket: Ticket) -> tuple[str, Any, bool | None]:
    """Return the text, the structure, and whether it is an error."""
    built = build_answer(ticket, SITE)
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
def test_a_tool_is_described_by_its_level(level: Level, *, reads: bool, destroys: bool) -> None:
    tool = Effect()
    tool.level = level
    hints = describe_tool(tool).annotations
    assert hints is not None
    assert (hints.read_only_hint, hints.destructive_hint) == (reads, destroys)


def test_a_result_is_told_as_text_and_as_data() -> None:
    assert answer(build_ticket(CallStatus.SUCCEEDED, ToolResult.ok({"a": 1}))) == ("As text", {"a": 1}, False)


@pytest.mark.parametrize("data", ["text", [1], None])
def test_data_of_another_form_is_told_as_text_alone(data: Any) -> None:
    assert answer(build_ticket(CallStatus.SUCCEEDED, ToolResult.ok(data))) == ("As text", None, False)


def test_so_is_large_data() -> None:
    largest = {"a": "x" * (LARGEST_STRUCTURE - len('{"a": ""}'))}
    assert answer(build_ticket(CallStatus.SUCCEEDED, ToolResult.ok(largest)))[1] == largest
    larger = {"a": largest["a"] + "x"}
    assert answer(build_ticket(CallStatus.SUCCEEDED, ToolResult.ok(larger)))[1:] == (None, False)


def test_an_error_is_told_with_its_code() -> None:
    failed = ToolResult.failed(ToolError(ErrorCode.NOT_FOUND, "There is no record 5."))
    assert answer(build_ticket(CallStatus.FAILED, failed)) == (
        "As text",
        {"status": "failed", "code": "NOT_FOUND"},
        True,
    )


def test_an_end_without_a_result_is_told_by_its_status() -> None:
    assert answer(build_ticket(CallStatus.CANCELLED, content="")) == (
        "Cancelled",
        {"status": "cancelled", "code": ""},
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
def test_a_call_that_has_not_ended_is_told_as_a_ticket(status: CallStatus, advice: str) -> None:
    text, structure, is_error = answer(build_ticket(status, told="told", card_id=7))
    assert advice in text
    assert structure == {"status": "told", "ticket": "t-3", "url": f"{SITE}/approvals/7/"}
    assert not is_error


def test_a_ticket_without_a_card_leads_to_its_run() -> None:
    assert build_address(build_ticket(CallStatus.EXECUTING), SITE) == f"{SITE}/runs/5/"
