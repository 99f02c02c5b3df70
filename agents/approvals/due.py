"""The compiled queries for cards that have expired or did not start in time, and the limits on how
long claims and snoozes last."""

from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.approvals.attention import CLAIM_LASTS
from agents.approvals.models import Claim, Snooze
from agents.approvals.snoozes import LONGEST_SNOOZE
from agents.platform.bounded_waits import BoundedWait
from agents.platform.queries.compiled import compile_ids
from agents.runs.engine.timing import timing
from agents.runs.models import (
    IS_PENDING,
    Approval,
    ApprovalKind,
    ApprovalStatus,
    Origin,
)

MAX_PREVIEWS = 2


def _select_expired_cards() -> QuerySet[Approval]:
    expiring = (ApprovalKind.APPROVAL, ApprovalKind.QUESTION)
    return Approval.objects.filter(IS_PENDING, kind__in=expiring, expires_at__lte=Now())


def _select_unstarted_cards() -> QuerySet[Approval]:
    """Select approved cards whose calls did not start in time. The order is random, so that a card
    that fails does not block the others."""
    late = Approval.objects.filter(
        status=ApprovalStatus.APPROVED,
        after=None,
        start_after__lt=Now() - timing().approval_validity,
    )
    return late.exclude(run__origin=Origin.ASK).order_by("?")


EXPIRED_CARDS = compile_ids(_select_expired_cards)
UNSTARTED_CARDS = compile_ids(_select_unstarted_cards, MAX_PREVIEWS)

ATTENTION_WAITS = (
    BoundedWait(
        "claims", Claim.objects.all, "until", lambda: CLAIM_LASTS, lambda: Now() + CLAIM_LASTS
    ),
    BoundedWait("snoozes", Snooze.objects.all, "until", lambda: LONGEST_SNOOZE, Now),
)
