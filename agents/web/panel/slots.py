"""The places of the panel's lines.

A line that belongs to something that moves on (a tool call, a pass' text) has a slot. A later line of the same slot
takes the earlier one's place, so the panel shows everything as it is now. What a run waits for is told anew once
something without a slot stands below it: the newest of the two is where the run stands (js/lines.js does the same).
"""

from __future__ import annotations

from collections.abc import Iterable

from agents.approvals.models import ApprovalStatus
from agents.runs.models import Event, EventType

OF_CALLS = frozenset(
    {
        EventType.TOOL_START,
        EventType.TOOL_PROGRESS,
        EventType.TOOL_RESULT,
        EventType.TOOL_SKIPPED,
        EventType.TOOL_REJECTED,
        EventType.APPROVAL_REQUESTED,
        EventType.APPROVAL_DECIDED,
        EventType.CALL_RESOLVED,
        EventType.LATE_EFFECT,
        EventType.QUESTION_ASKED,
        EventType.QUESTION_ANSWERED,
    }
)
WAIT = "wait"
# What a pass has one line for, however often it is told.
SLOTS: dict[str, str] = {
    EventType.ASSISTANT_MESSAGE: "text",
    EventType.PASS_STARTED: "pass",
    EventType.RUN_WAITING: WAIT,
    EventType.RUN_NEEDS_ATTENTION: WAIT,
    EventType.RUN_RESUMED: WAIT,
}


def slot_of(event: Event) -> str:
    """Which earlier line this event's line takes the place of: `call-7`, `text-2`, `wait-2`, or none."""
    payload = event.payload
    if is_replacement(event):
        return ""
    if event.type in OF_CALLS:
        return f"call-{payload['call_id']}" if payload.get("call_id") else ""
    name, number = SLOTS.get(event.type), payload.get("pass_number")
    return f"{name}-{number}" if name and number and not payload.get("reason") else ""


def is_replacement(event: Event) -> bool:
    """Whether a card was replaced by the next one of its call: that stays to be read, as a line of its own."""
    is_superseded = event.payload.get("status") == ApprovalStatus.SUPERSEDED
    return event.type == EventType.APPROVAL_DECIDED and is_superseded and bool(event.payload.get("next_approval_id"))


def folded(events: Iterable[Event]) -> list[Event]:
    """The events whose lines are still to be seen, each at the place of the first of its slot."""
    places: dict[str, int] = {}
    kept: list[Event] = []
    newest_told = -1
    for event in events:
        slot = slot_of(event)
        place = places.get(slot, -1)
        if place > (newest_told if slot.startswith(WAIT) else -1):
            kept[place] = event
            continue
        if slot:
            places[slot] = len(kept)
        else:
            newest_told = len(kept)
        kept.append(event)
    return kept
