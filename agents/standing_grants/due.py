"""The compiled queries for standing grants whose maker has lost the right to decide, and for cards
of ended standing grants."""

from django.db.models import Q, QuerySet

from agents.platform.queries.compiled import compile_ids
from agents.runs.models import Approval, ApprovalStatus
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.preapprovals import IN_FORCE, MAY_DECIDE

MAX_PREVIEWS = 2


def _select_unentitled_grants() -> QuerySet[StandingGrant]:
    """Select standing grants in force whose maker can no longer decide cards."""
    return StandingGrant.objects.filter(IN_FORCE, ~MAY_DECIDE).order_by("pk")


def _select_withdrawn_preapprovals() -> QuerySet[Approval]:
    """Select cards of standing grants that ended before the calls started. The order is random, so
    that a card that fails does not block the others."""
    has_ended = Q(standing_grant__revoked_at__isnull=False) | Q(
        standing_grant__ended_at__isnull=False
    )
    return Approval.objects.filter(has_ended, status=ApprovalStatus.APPROVED).order_by("?")


UNENTITLED_GRANTS = compile_ids(_select_unentitled_grants)
WITHDRAWN_PREAPPROVALS = compile_ids(_select_withdrawn_preapprovals, MAX_PREVIEWS)
