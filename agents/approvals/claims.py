"""Claims: a person takes a card for 15 minutes. Others see it, and decide it only after a warning."""

from datetime import timedelta

from django.utils import timezone

from agents.accounts.models import Membership
from agents.approvals.models import Claim
from agents.approvals.own_cards import lock_own_card
from agents.platform.refusals import Claimed, Conflict
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus

DURATION = timedelta(minutes=15)


def claim(member: Membership, approval_id: int) -> Claim:
    """Take a waiting card for 15 minutes from now.

    Raises:
        Forbidden, NotFound
        Conflict: the card does not wait for approval.
        Claimed: another person has taken it.
    """
    with lock_own_card(member, approval_id) as (tx, card):
        if (card.kind, card.status) != (ApprovalKind.APPROVAL, ApprovalStatus.PENDING):
            raise Conflict("the card is not waiting for approval", approval_status=card.status)
        if card.expires_at <= tx.now:
            raise Conflict("the card has expired", approval_status=ApprovalStatus.EXPIRED)
        refuse_claimed(card)
        values = {"user": member.user, "until": timezone.now() + DURATION}
        tx.inbox_changed = True
        return Claim.objects.update_or_create(tool_call_id=card.tool_call_id, defaults=values)[0]


def release(member: Membership, approval_id: int) -> None:
    """End the member's own claim on a card; do nothing without one.

    Raises:
        Forbidden, NotFound
    """
    with lock_own_card(member, approval_id) as (tx, card):
        Claim.objects.filter(tool_call_id=card.tool_call_id, user=member.user).delete()
        tx.inbox_changed = True


def find_claims(organization_id: int) -> dict[int, Claim]:
    """Find the claims that hold now in the organization, by call id."""
    own = Claim.by_deciders(organization_id)
    active = own.filter(tool_call__organization_id=organization_id, until__gt=timezone.now())
    return {each.tool_call_id: each for each in active.select_related("user").order_by("pk")}


def refuse_claimed(card: Approval, known: str = "") -> None:
    """Raise Claimed if another person has taken the card.

    Args:
        card: from `find_own_card`, which says who has taken it.
        known: the username of the person whose claim the member was warned of, and decides all the same.
    """
    name: str | None = getattr(card, "claimed_by", None)
    if name is not None and name != known:
        raise Claimed(f"{name} has taken this card", claimed_by=name, approval_status=card.status)
