"""Deputies whom members name for a limited time; a deputy does not get more rights than the member
has."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from agents.accounts import audit
from agents.accounts.models import DECIDERS, Membership, Role
from agents.approval_rules.models import Deputy
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound

MAX_DAYS = 90
"""The maximum length of a deputy's period, and the maximum time until the period begins, in
days."""
MAX_NAMED = 5
"""The maximum number of deputies that a member may have at one time, including future ones."""


def list_deputies(member: Membership) -> QuerySet[Deputy]:
    """List the member's deputies whose period is not over, sorted by its start."""
    mine = Deputy.objects.filter(member=member, ends_at__gt=Now())
    return mine.select_related("deputy__user").order_by("starts_at", "pk")


def list_represented(member: Membership) -> QuerySet[Deputy]:
    """List the people for whom the member is a deputy, now or later."""
    theirs = Deputy.objects.filter(deputy=member, ends_at__gt=Now())
    return theirs.select_related("member__user").order_by("starts_at", "pk")


def list_choices(member: Membership) -> QuerySet[Membership]:
    """List the people whom the member may name as a deputy: the other active approvers of the
    organization."""
    mine = Membership.objects.filter(organization_id=member.organization_id)
    others = mine.filter(role__in=DECIDERS, user__is_active=True)
    return others.exclude(pk=member.pk).select_related("user").order_by("user__username")


def name_deputy(
    member: Membership, deputy_id: int, starts_at: datetime, ends_at: datetime
) -> Deputy:
    """Name another member as the deputy who decides in this member's name between the two times.

    Args:
        deputy_id: the id of the deputy's membership.

    Raises:
        Forbidden: the member may not decide cards.
        Invalid, Conflict
    """
    _require_approver(member)
    _check_time(starts_at, ends_at)
    with transaction.atomic():
        # Lock the member, so that two simultaneous requests count each other's deputies.
        Membership.objects.select_for_update().get(pk=member.pk)
        deputy = list_choices(member).filter(pk=deputy_id).first()
        if deputy is None:
            raise Invalid("deputy", "Choose another active approver of this organization.")
        if list_deputies(member).count() >= MAX_NAMED:
            raise Conflict(f"You have {MAX_NAMED} deputies. End one before you name another.")
        row = Deputy.objects.create(
            member=member, deputy=deputy, starts_at=starts_at, ends_at=ends_at
        )
        times = {"starts_at": starts_at.isoformat(), "ends_at": ends_at.isoformat()}
        _record(member, "deputy_added", row, deputy=deputy.user.get_username(), **times)
    return row


def end_deputy(member: Membership, deputy_id: int) -> Deputy:
    """End the period of one of the member's deputies now, or remove a future one.

    Args:
        deputy_id: the id of the `Deputy` row.

    Raises:
        NotFound: the member does not have this deputy.
    """
    with transaction.atomic():
        row = list_deputies(member).select_for_update(of=("self",)).filter(pk=deputy_id).first()
        if row is None:
            raise NotFound(f"You have no current or future deputy {deputy_id}.")
        if Deputy.objects.filter(pk=row.pk, starts_at__lt=Now()).update(ends_at=Now()):
            _record(
                member, "deputy_changed", row, deputy=row.deputy.user.get_username(), ended=True
            )
        else:
            _record(member, "deputy_deleted", row, deputy=row.deputy.user.get_username())
            Deputy.objects.filter(pk=row.pk).delete()
    return row


def _require_approver(member: Membership) -> None:
    if not member.may(Role.APPROVER):
        raise Forbidden("Only approvers can add a deputy.")


def _check_time(starts_at: datetime, ends_at: datetime) -> None:
    now, longest = timezone.now(), timedelta(days=MAX_DAYS)
    if ends_at <= now:
        raise Invalid("until", "This day is in the past. Choose a later day.")
    if ends_at <= starts_at:
        raise Invalid("until", "This is before the first day. Choose a later day.")
    if starts_at > now + longest:
        raise Invalid("from", f"Choose a day within the next {MAX_DAYS} days.")
    if ends_at - max(starts_at, now) > longest:
        raise Invalid(
            "until", f"A deputy decides for at most {MAX_DAYS} days. Choose an earlier day."
        )


def _record(member: Membership, action: str, row: Deputy, **payload: Any) -> None:
    audit.record(member, action, f"deputy:{row.pk}", **payload)
