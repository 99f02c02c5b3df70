"""The warning on cards that were requested before a backup was restored."""

from __future__ import annotations

from datetime import datetime

from agents.accounts.models import Organization
from agents.runs.models import Approval, ApprovalStatus

RESTORED_SINCE = (
    "A backup was restored after this was requested. "
    "It may already have been decided and carried out. Check the target before you decide."
)


def find_restore_warning(card: Approval) -> str:
    """Return the warning if the card is waiting and its call is older than the last restore of a
    backup; otherwise an empty text."""
    is_older = was_called_before_restore(card.run.organization, card.tool_call.created_at)
    return RESTORED_SINCE if is_older and card.status == ApprovalStatus.PENDING else ""


def was_called_before_restore(organization: Organization, called_at: datetime) -> bool:
    """Return True if a backup was restored after the call.

    The age of the call counts, not the age of the card: a new card for an old call is no safer.
    """
    return organization.restored_at is not None and called_at <= organization.restored_at
