"""Reminders: notices of cards that expire soon."""

from agents.accounts.notice_facts import NoticeKind
from agents.notices.outbox import add_notice, build_card_notice
from agents.runs.models import Approval


def remind(approval_id: int) -> bool:
    """Remind people once of a card that expires soon; return True if they had not been reminded
    before."""
    return add_notice(
        build_card_notice(NoticeKind.CARD_EXPIRING, Approval.objects.get(pk=approval_id))
    )
