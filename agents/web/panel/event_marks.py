"""The marks of the cards that a run's events request, for views of the run as it happened."""

from __future__ import annotations

from collections.abc import Collection

from agents.approvals.warnings.card_marks import Mark, load_sealed_marks
from agents.runs.models import Event, EventType, Run


def load_event_marks(events: Collection[Event]) -> dict[int, tuple[Mark, ...]]:
    """Load the marks of the cards that these events of one run request, by the event's id, in at
    most two queries.

    They follow from the sealed content of the cards, so they are the same at any time.
    """
    requests = [
        event
        for event in events
        if event.type == EventType.APPROVAL_REQUESTED and "approval_id" in event.payload
    ]
    if not requests:
        return {}
    organization = Run.objects.values_list("organization_id", flat=True).get(pk=requests[0].run_id)
    digests = {int(event.payload["approval_id"]): event.payload["digest"] for event in requests}
    marks = load_sealed_marks(organization, digests)
    return {event.pk: marks.get(int(event.payload["approval_id"]), ()) for event in requests}
