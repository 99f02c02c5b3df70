"""People's earlier decisions about cards of the same shape."""

from __future__ import annotations

from collections.abc import Collection

from agents.runs.models import Approval
from agents.runs.queries.cards import EARLIER_DECISIONS


def load_earlier_decisions(waiting: Collection[Approval]) -> dict[int, list[Approval]]:
    """Load the newest decisions about cards of the same shape as each waiting card, for any
    employee, by the waiting card's id.

    For each shape, one query reads a few entries of an index, however many decisions there are.
    Another query then loads all cards.

    Args:
        waiting: cards of one organization.
    """
    shapes = {(card.organization_id, card.shape) for card in waiting if card.shape}
    ids = {
        shape: [row.pk for row in EARLIER_DECISIONS.fetch_all(organization_id, shape)]
        for organization_id, shape in shapes
    }
    decided = Approval.objects.select_related("decided_by", "run__employee").defer("preview")
    loaded = decided.in_bulk([pk for found in ids.values() for pk in found])
    return {card.pk: [loaded[pk] for pk in ids.get(card.shape, ())] for card in waiting}
