"""The warning on cards that were requested before a backup was restored."""

from __future__ import annotations

from agents.runs.models import Approval, ApprovalStatus

RESTORED_SINCE = (
    "A backup was restored after this was requested. "
    "It may already have been decided and carried out. Check the target before you decide."
)


def find_restore_warning(card: Approval) -> str:
    """Find the warning to read before deciding; empty for most cards, and for all closed ones.

    The age of the call counts, not that of the card: a call asked again after the restore is no
    safer.
    """
    restored_at = card.run.organization.restored_at
    is_older = restored_at is not None and card.tool_call.created_at <= restored_at
    return RESTORED_SINCE if is_older and card.status == ApprovalStatus.PENDING else ""
