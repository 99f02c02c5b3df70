"""The reach of a card: how many objects it affects, of how many there are."""

from __future__ import annotations

from agents.approvals.marks import get_family, get_targets
from agents.approvals.models import Approval
from tools.records.models import Record

MAX_UNCONFIRMED = 5
"""Up to this number, the card shows every object at first sight, so no share of all calls for typing."""
RECORDS = "data"


def count_affected(card: Approval) -> int:
    """Count the objects that the card affects."""
    return len(get_targets(card))


def count_objects(card: Approval) -> int | None:
    """Count all objects of the kind that the card affects; None if that is unknown, or if it creates them."""
    targets = get_targets(card)
    is_about_records = get_family(card) == RECORDS
    if not is_about_records or not any(target.get("id") for target in targets):
        return None
    return Record.objects.filter(organization_id=card.organization_id).count()


def reaches_far(card: Approval) -> bool:
    """Return True if the card affects more objects, or a larger share of all, than the organization's limits allow.

    Such a card is confirmed by typing, whatever its level.
    """
    affected = count_affected(card)
    if affected <= MAX_UNCONFIRMED:
        return False
    organization = card.organization
    if affected > organization.confirm_count:
        return True
    total = count_objects(card)
    return total is not None and affected * 100 > total * organization.confirm_percent
