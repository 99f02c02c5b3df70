"""Helpers that add events to a run as the engine writes them."""

from __future__ import annotations

from typing import Any

from agents.approvals.models import Approval
from agents.runs.models import Event, EventType, Run
from tests.world import success

DEFAULTS: dict[EventType, dict[str, Any]] = {
    EventType.RUN_TITLED: {"input_tokens": 0, "output_tokens": 0, "cost": None},
    EventType.RUN_RESUMED: {"by": "gadget"},
    EventType.LATE_EFFECT: {"done_again_by": []},
    EventType.RUN_FINISHED: {
        "pass_number": 1,
        "input_tokens": 0,
        "output_tokens": 0,
        "usage_estimated": False,
        "cost": None,
        "currency": "",
    },
}
"""Required fields of payloads that most tests do not care about."""


def add_events(run: Run, *events: tuple[EventType, dict[str, Any]]) -> list[Event]:
    first = run.next_event_seq
    rows = [
        Event(run=run, seq=first + place, type=type_, payload=DEFAULTS.get(type_, {}) | payload)
        for place, (type_, payload) in enumerate(events)
    ]
    Event.objects.bulk_create(rows)
    run.next_event_seq = first + len(rows)
    run.save()
    return list(run.events.order_by("seq"))


def build_tool_start(call: Any) -> tuple[EventType, dict[str, Any]]:
    payload = {"call_id": str(call.pk), "tool": call.tool, "display_name": "Search", "level": "read", "params": {}}
    return EventType.TOOL_START, {**payload, "summary": "Searching…", "pass_number": 1}


def build_tool_result(call: Any, **result: Any) -> tuple[EventType, dict[str, Any]]:
    whole = success(None, summary="Found 47 records", **result)
    return EventType.TOOL_RESULT, {"call_id": str(call.pk), "tool": call.tool, "result": whole, "duration_ms": 12}


def build_run_end(answer: str) -> dict[str, Any]:
    return {"status": "succeeded", "exit_reason": "final_answer", "answer": answer, "output_tokens": 5}


def build_draft_result(call: Any, data: Any) -> tuple[EventType, dict[str, Any]]:
    result = success(data, summary="Drafted")
    return EventType.TOOL_RESULT, {"call_id": str(call.pk), "tool": call.tool, "result": result, "duration_ms": 1}


def build_samples(card: Approval) -> dict[EventType, dict[str, Any]]:
    """Build a payload for each type of event, about this card and its call."""
    call = str(card.tool_call_id)
    return {
        EventType.RUN_STARTED: {"by": "operator"},
        EventType.RUN_TITLED: {"title": "T"},
        EventType.PASS_STARTED: {"pass_number": 1},
        EventType.ASSISTANT_MESSAGE: {"text": "Hello **you**", "pass_number": 1},
        EventType.TOOL_START: build_tool_start(card.tool_call)[1],
        EventType.TOOL_PROGRESS: {"call_id": call, "fraction": 0.5, "text": "half"},
        EventType.TOOL_RESULT: build_tool_result(card.tool_call)[1],
        EventType.TOOL_SKIPPED: {"call_id": call, "tool": "x", "duplicate_of": call},
        EventType.TOOL_REJECTED: {"call_id": call, "tool": "x", "code": "NOT_PERMITTED", "reason": "no"},
        EventType.APPROVAL_REQUESTED: {
            "call_id": call,
            "approval_id": str(card.pk),
            "tool": card.tool_call.tool,
            "level": card.level,
            "sentence": card.sentence,
            "params": card.params,
        },
        EventType.APPROVAL_VOTED: {
            "call_id": call,
            "approval_id": str(card.pk),
            "by": "a",
            "still_needed": "1 of 2: someone of Finance",
        },
        EventType.APPROVAL_DECIDED: {
            "call_id": call,
            "approval_id": str(card.pk),
            "status": "denied",
            "decided_by": "a",
            "reason": "Too early",
        },
        EventType.QUESTION_ASKED: {"call_id": call, "approval_id": "1", "text": "Which?"},
        EventType.QUESTION_ANSWERED: {"call_id": call, "approval_id": "1", "text": "That.", "by": "a"},
        EventType.MESSAGE_ADDED: {"text": "More", "by": "a"},
        EventType.RUN_WAITING: {"approval_ids": ["1"], "reason": "Ada stopped everything."},
        EventType.RUN_RESUMED: {"reason": "The stop was lifted."},
        EventType.RUN_NEEDS_ATTENTION: {"approval_ids": ["1"]},
        EventType.CALL_RESOLVED: {"call_id": call, "outcome": "succeeded", "by": "a", "reason": "seen"},
        EventType.LATE_EFFECT: {"call_id": call, "approval_id": "1", "summary": "Paid", "reason": "Look."},
        EventType.CANCEL_REQUESTED: {"by": "a"},
        EventType.PROVIDER_DELAYED: {
            "code": "RATE_LIMITED",
            "reason": "Later.",
            "tries": 1,
            "retry_at": "2030-01-01T00:00:00Z",
        },
        EventType.HISTORY_SHORTENED: {"results": 1, "texts": 0, "tokens_before": 9, "tokens_after": 5},
        EventType.ASSISTANT_THOUGHT: {"pass_number": 1, "text": "Hm <b>"},
        EventType.ANSWER_CUT: {"pass_number": 1, "cut_off": "length"},
        EventType.USAGE_REPORTED: {"pass_number": 1, "input_tokens": 1_200, "output_tokens": 80, "cost": None},
        EventType.RUN_FINISHED: {"status": "succeeded", "exit_reason": "final_answer", "answer": "Done"},
    }
