"""Sorts cards by their calls: oldest first, and within a run in call order."""

from __future__ import annotations

from django.db.models import QuerySet

from agents.approvals.models import Approval


def in_call_order(rows: QuerySet[Approval], organization_id: int, after: int | None = None) -> QuerySet[Approval]:
    """Sort an organization's cards by their calls; a card that replaced another one keeps the place of its call.

    Args:
        after: id of the last card seen, open or closed; only cards after it are returned.
    """
    if after is not None:
        seen = Approval.objects.filter(organization_id=organization_id, pk=after)
        call_id = seen.values_list("tool_call_id", flat=True).first()
        if call_id is None:
            return rows.none()
        rows = rows.filter(tool_call_id__gte=call_id).exclude(tool_call_id=call_id, pk__lte=after)
    return rows.order_by("tool_call_id", "pk")
