"""Closed cards: how they ended, and which card replaced them."""

from django.db.models.functions import Now

from agents.approvals.models import Approval, ApprovalStatus
from agents.platform.refusals import Decided, Expired


def refuse_closed(card: Approval, lost: str = "") -> None:
    """Raise Expired or Decided, with the way it ended, if the card is closed.

    Args:
        lost: the consequence for work that a person has put into it meanwhile.
    """
    if card.status == ApprovalStatus.EXPIRED or _is_past(card):
        told = f"the card has expired{f' meanwhile; {lost}' if lost else ''}"
        raise Expired(told, approval_status=str(ApprovalStatus.EXPIRED))
    if card.status != ApprovalStatus.PENDING:
        by = card.decided_by.get_username() if card.decided_by else None
        following = next_card(card)
        ended = f"{card.get_status_display().lower()}{f' by {by}' if by else ''}"
        raise Decided(
            f"the card was {ended} meanwhile; {lost}" if lost else f"already {ended}",
            decided_by=by,
            decided_at=card.decided_at.isoformat() if card.decided_at else None,
            approval_status=card.status,
            next_approval_id=str(following.pk) if following else None,
        )


def _is_past(card: Approval) -> bool:
    return Approval.objects.filter(pk=card.pk, status=ApprovalStatus.PENDING, expires_at__lte=Now()).exists()


def next_card(card: Approval) -> Approval | None:
    """Return the card that replaced this one."""
    return Approval.objects.filter(tool_call_id=card.tool_call_id, sequence=card.sequence + 1).first()
