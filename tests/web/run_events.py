"""Helpers that add events to a run as the engine writes them."""

from __future__ import annotations

from typing import Any

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
"""Required fields of payloads that are irrelevant to most tests."""


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
    payload = {
        "call_id": str(call.pk),
        "tool": call.tool,
        "display_name": "Search",
        "level": "read",
        "params": {},
    }
    return EventType.TOOL_START, {**payload, "summary": "Searching…", "pass_number": 1}


def build_tool_result(call: Any, **result: Any) -> tuple[EventType, dict[str, Any]]:
    whole = success(None, summary="Found 47 records", **result)
    return EventType.TOOL_RESULT, {
        "call_id": str(call.pk),
        "tool": call.tool,
        "result": whole,
        "duration_ms": 12,
    }


def build_run_end(answer: str) -> dict[str, Any]:
    return {
        "status": "succeeded",
        "exit_reason": "final_answer",
        "answer": answer,
        "output_tokens": 5,
    }


def build_draft_result(call: Any, data: Any) -> tuple[EventType, dict[str, Any]]:
    result = success(data, summary="Drafted")
    return EventType.TOOL_RESULT, {
        "call_id": str(call.pk),
        "tool": call.tool,
        "result": result,
        "duration_ms": 1,
    }
