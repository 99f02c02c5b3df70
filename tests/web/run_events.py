"""Events of a run, written as the engine writes them, and the text of the pages that show them."""

from __future__ import annotations

from typing import Any

from django.test import Client

from agents.runs.models import Event, EventType, Run
from tests.world import success


def text_of(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


ALWAYS_THERE: dict[EventType, dict[str, Any]] = {
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
"""Fields of the payloads that most tests do not care about."""


def add_events(run: Run, *events: tuple[EventType, dict[str, Any]]) -> list[Event]:
    first = run.next_event_seq
    rows = [
        Event(run=run, seq=first + place, type=type_, payload=ALWAYS_THERE.get(type_, {}) | payload)
        for place, (type_, payload) in enumerate(events)
    ]
    Event.objects.bulk_create(rows)
    run.next_event_seq = first + len(rows)
    run.save()
    return list(run.events.order_by("seq"))


def started(call: Any) -> tuple[EventType, dict[str, Any]]:
    payload = {"call_id": str(call.pk), "tool": call.tool, "display_name": "Search", "level": "read", "params": {}}
    return EventType.TOOL_START, {**payload, "summary": "Searching…", "pass_number": 1}


def ended(call: Any, **result: Any) -> tuple[EventType, dict[str, Any]]:
    whole = success(None, summary="Found 47 records", **result)
    return EventType.TOOL_RESULT, {"call_id": str(call.pk), "tool": call.tool, "result": whole, "duration_ms": 12}


def ended_run(answer: str) -> dict[str, Any]:
    return {"status": "succeeded", "exit_reason": "final_answer", "answer": answer, "output_tokens": 5}


def ended_with(call: Any, data: Any) -> tuple[EventType, dict[str, Any]]:
    result = success(data, summary="Drafted")
    return EventType.TOOL_RESULT, {"call_id": str(call.pk), "tool": call.tool, "result": result, "duration_ms": 1}
