"""People's earlier decisions about cards of the same shape."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import OuterRef, Subquery

from agents.runs.models import Approval, ApprovalStatus

MAX_EARLIER = 5
DECIDED = (ApprovalStatus.DENIED, ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED)
_PLACES = tuple(f"place_{number}" for number in range(MAX_EARLIER))


def load_earlier_decisions(waiting: Collection[Approval]) -> dict[int, list[Approval]]:
    """Load the newest decisions about cards of the same shape, for any employee, by card id; two queries.

    Args:
        waiting: cards of one organization.
    """
    one_of_each = {card.shape: card.pk for card in waiting if card.shape}
    if not one_of_each:
        return {}
    same = Approval.objects.filter(
        organization=OuterRef("organization"),
        shape=OuterRef("shape"),
        decided_at__isnull=False,
        status__in=DECIDED,
    ).order_by("-decided_at", "-pk")
    # A subquery for each place reads only the newest entries of an index, however many decisions there are.
    places = {name: Subquery(same.values("pk")[at : at + 1]) for at, name in enumerate(_PLACES)}
    rows = Approval.objects.filter(pk__in=one_of_each.values()).annotate(**places).order_by()
    ids = {shape: [pk for pk in found if pk] for shape, *found in rows.values_list("shape", *_PLACES)}
    decided = Approval.objects.select_related("decided_by", "run__employee").defer("preview")
    loaded = decided.in_bulk([pk for found in ids.values() for pk in found])
    return {card.pk: [loaded[pk] for pk in ids.get(card.shape, ())] for card in waiting}
