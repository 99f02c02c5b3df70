"""The slots of the panel's lines.

Lines about the same changing thing, such as a tool call or a pass's text, share a slot: each line
replaces the previous line in its place. A line about the run's status also moves to the end, so
that the last line shows the current status. The line's attributes contain both rules, and scripts
only follow them.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.urls import reverse

from agents.runs.descriptions import CALL_EVENTS
from agents.runs.models import ApprovalStatus, Event, EventType

STATUS_EVENTS = frozenset(
    {EventType.RUN_WAITING, EventType.RUN_NEEDS_ATTENTION, EventType.RUN_RESUMED}
)
PASS_SLOTS: dict[str, str] = {
    EventType.ASSISTANT_MESSAGE: "text",
    EventType.PASS_STARTED: "pass",
    **dict.fromkeys(STATUS_EVENTS, "wait"),
}
"""The slots that occur once in each pass."""


def name_slot(event: Event) -> str:
    """Name the slot of the event's line: `call-7`, `text-2`, `wait-2`; empty if the line replaces
    none."""
    payload = event.payload
    if is_replacement(event):
        return ""
    if event.type in CALL_EVENTS:
        return f"call-{payload['call_id']}" if payload.get("call_id") else ""
    slot, number = PASS_SLOTS.get(event.type), payload.get("pass_number")
    return f"{slot}-{number}" if slot and number and not payload.get("reason") else ""


def build_line_url(run_id: int, call_id: int) -> str:
    """Build the address of a call's line; the page of a long run shows the lines around it."""
    return f"{reverse('run', args=(run_id,))}?call={call_id}#call-{call_id}"


def is_replacement(event: Event) -> bool:
    """Return True if the event reports that a new card replaced the call's old card; its line has
    no slot."""
    is_superseded = event.payload.get("status") == ApprovalStatus.SUPERSEDED
    return (
        event.type == EventType.APPROVAL_DECIDED
        and is_superseded
        and bool(event.payload.get("next_approval_id"))
    )


def moves_to_end(event: Event) -> bool:
    """Return True if the event's line moves to the end of the panel when it replaces the earlier
    line of its slot."""
    return event.type in STATUS_EVENTS


def fold_events(events: Iterable[Event]) -> list[Event]:
    """Return the events whose lines are still visible, in the order of the lines."""
    visible: dict[str, Event] = {}
    for event in events:
        slot = name_slot(event) or f"event-{event.seq}"
        if moves_to_end(event):
            visible.pop(slot, None)
        visible[slot] = event
    return list(visible.values())
