"""The marks of the cards and calls whose values a run's events show, for views that show the run as
it happened."""

from __future__ import annotations

from collections.abc import Collection

from agents.approvals.warnings.card_marks import load_call_marks, load_marks_of
from agents.approvals.warnings.marks import Mark
from agents.runs.models import Approval, Event, EventType, ToolCall
from agents.web.panel.line_facts import FIRST_CALL_EVENTS


def load_event_marks(events: Collection[Event]) -> dict[int, tuple[Mark, ...]]:
    """Load the marks of these events of one run, by the event's id: the marks of the card that an
    event requests, or of the call that it introduces. The number of queries does not depend on the
    number of events."""
    shown = [event for event in events if event.type in FIRST_CALL_EVENTS]
    requests = {
        event.pk: int(event.payload["approval_id"])
        for event in shown
        if event.type == EventType.APPROVAL_REQUESTED and "approval_id" in event.payload
    }
    others = {
        event.pk: int(event.payload["call_id"]) for event in shown if event.pk not in requests
    }
    of_cards, of_calls = dict[int, tuple[Mark, ...]](), dict[int, tuple[Mark, ...]]()
    if requests:
        of_cards = load_marks_of(
            Approval.objects.filter(run_id=shown[0].run_id, pk__in=requests.values())
        )
    if others:
        calls = ToolCall.objects.filter(run_id=shown[0].run_id, pk__in=others.values())
        of_calls = load_call_marks(calls.only("organization_id", "params", "model_params"))
    return {
        **{pk: of_cards.get(card, ()) for pk, card in requests.items()},
        **{pk: of_calls.get(call, ()) for pk, call in others.items()},
    }
