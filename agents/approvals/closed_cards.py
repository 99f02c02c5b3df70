"""Closed cards: refusing decisions about them, and finding the cards that replaced them."""

from django.db.models.functions import Now

from agents.platform.refusals import AlreadyDecided, Expired
from agents.runs.models import Approval, ApprovalStatus


def refuse_closed(card: Approval, consequence: str = "") -> None:
    """Raise Expired or AlreadyDecided if the card is closed; the error says how it was closed.

    Args:
        consequence: a clause that states the effect on the person's request, such as NOT_EDITED.
    """
    if card.status == ApprovalStatus.EXPIRED or _is_overdue(card):
        detail = f"the card has expired{f'; {consequence}' if consequence else ''}"
        raise Expired(detail, approval_status=str(ApprovalStatus.EXPIRED))
    if card.status != ApprovalStatus.PENDING:
        by = card.decider or None
        replacement = find_next_card(card)
        ended = f"{card.get_status_display().lower()}{f' by {by}' if by else ''}"
        raise AlreadyDecided(
            f"the card was {ended}; {consequence}" if consequence else f"already {ended}",
            decided_by=by,
            decided_at=card.decided_at.isoformat() if card.decided_at else None,
            approval_status=card.status,
            next_approval_id=str(replacement.pk) if replacement else None,
        )


def _is_overdue(card: Approval) -> bool:
    """Return True if the waiting card has expired. A card loaded by `own_cards` already has this
    information; for other cards, query the database."""
    known: bool | None = getattr(card, "is_overdue", None)
    if known is not None:
        return known and card.status == ApprovalStatus.PENDING
    return Approval.objects.filter(
        pk=card.pk, status=ApprovalStatus.PENDING, expires_at__lte=Now()
    ).exists()


def find_next_card(card: Approval) -> Approval | None:
    """Return the card that replaced this one; None if it was not replaced."""
    return Approval.objects.filter(
        tool_call_id=card.tool_call_id, sequence=card.sequence + 1
    ).first()
