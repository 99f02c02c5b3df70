"""The order of cards: the card whose call is oldest comes first."""

from __future__ import annotations

from django.db.models import QuerySet

from agents.runs.models import Approval


def sort_by_call(
    rows: QuerySet[Approval], organization_id: int, after: int | None = None
) -> QuerySet[Approval]:
    """Sort an organization's cards by their calls, so that a new card of a call takes the place of
    the old one.

    Args:
        after: the id of a card, open or closed; only cards that come after this card are returned.
    """
    if after is not None:
        seen = Approval.objects.filter(organization_id=organization_id, pk=after)
        call_id = seen.values_list("tool_call_id", flat=True).first()
        if call_id is None:
            return rows.none()
        rows = rows.filter(tool_call_id__gte=call_id).exclude(tool_call_id=call_id, pk__lte=after)
    return rows.order_by("tool_call_id", "pk")
