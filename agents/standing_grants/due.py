"""The compiled queries for standing grants whose maker has lost the right to decide, and for cards
of ended standing grants."""

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from agents.accounts.models import DECIDERS, Membership
from agents.platform.queries.compiled import compile_ids
from agents.runs.models import (
    Approval,
    ApprovalStatus,
)
from agents.standing_grants.models import StandingGrant

MAX_PREVIEWS = 2


def _select_unentitled_grants() -> QuerySet[StandingGrant]:
    """Select standing grants in force whose maker can no longer decide cards."""
    makers = Membership.objects.filter(
        organization=OuterRef("organization"),
        user=OuterRef("made_by"),
        user__is_active=True,
        role__in=DECIDERS,
    )
    in_force = StandingGrant.objects.filter(
        revoked_at__isnull=True, ended_at__isnull=True, expires_at__gt=Now()
    )
    return in_force.filter(~Exists(makers)).order_by("pk")


def _select_withdrawn_preapprovals() -> QuerySet[Approval]:
    """Select cards of standing grants that ended before the calls started. The order is random,
    because a card that fails must not block the others."""
    has_ended = Q(standing_grant__revoked_at__isnull=False) | Q(
        standing_grant__ended_at__isnull=False
    )
    return Approval.objects.filter(has_ended, status=ApprovalStatus.APPROVED).order_by("?")


UNENTITLED_GRANTS = compile_ids(_select_unentitled_grants)
WITHDRAWN_PREAPPROVALS = compile_ids(_select_withdrawn_preapprovals, MAX_PREVIEWS)
