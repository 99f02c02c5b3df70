"""The compiled query for cards that people must be reminded of."""

from datetime import timedelta

from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now

from agents.accounts.notice_facts import NoticeKind
from agents.notices.models import Notice
from agents.platform.queries.compiled import compile_ids
from agents.runs.models import (
    IS_PENDING,
    Approval,
    ApprovalKind,
)


def _select_expiring_cards() -> QuerySet[Approval]:
    """Select the waiting cards that expire within a day and for which no reminder exists.

    A card must be at least 18 hours old, so that a card that is valid for only one day is not
    selected as soon as it is created.
    """
    reminded = Notice.objects.filter(approval=OuterRef("pk"), kind=NoticeKind.CARD_EXPIRING)
    cards = Approval.objects.filter(
        IS_PENDING,
        kind__in=(ApprovalKind.APPROVAL, ApprovalKind.QUESTION),
        expires_at__gt=Now(),
        expires_at__lte=Now() + timedelta(days=1),
        requested_at__lte=Now() - timedelta(hours=18),
    )
    return cards.filter(~Exists(reminded)).order_by("expires_at")


EXPIRING_CARDS = compile_ids(_select_expiring_cards)
