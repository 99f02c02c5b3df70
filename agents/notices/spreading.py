"""Spread notices: make a delivery for each person that a notice is for, and each of their channels."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from agents.accounts.models import Organization
from agents.notices.audience import Audience
from agents.notices.choices import load_pace_rules
from agents.notices.models import Channel, Delivery, Notice
from agents.notices.pace import PaceRules
from agents.platform.error_boundary import log_and_continue

logger = logging.getLogger(__name__)

MAX_NOTICES = 200
_RELATED = ("run__employee", "approval__tool_call", "approval__run__employee")


def spread_notices() -> int:
    """Spread the oldest notices of one organization; return their number.

    A notice that cannot be spread is given up, so that it never stands in the way of others.
    """
    oldest = Notice.objects.filter(spread_at=None).order_by("pk").values_list("pk", flat=True).first()
    if oldest is None:
        return 0
    done = 0
    for most in (MAX_NOTICES, 1):
        with log_and_continue("spreading notices") as failure:
            done = _spread_oldest(most)
        if done or failure.outage or not failure.is_failed:
            return done
    logger.error("notice %s reaches nobody, because it could not be spread", oldest)
    return Notice.objects.filter(pk=oldest, spread_at=None).update(spread_at=Now())


def _spread_oldest(most: int) -> int:
    """Spread in one transaction. Notices that another worker spreads at this moment are left to it."""
    with transaction.atomic():
        waiting = Notice.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
        waiting = waiting.filter(spread_at=None).select_related(*_RELATED).order_by("pk")
        first = waiting.first()
        if first is None:
            return 0
        notices = list(waiting.filter(organization_id=first.organization_id)[:most])
        Delivery.objects.bulk_create(_build_deliveries(notices), ignore_conflicts=True)
        Notice.objects.filter(pk__in=[notice.pk for notice in notices]).update(spread_at=Now())
    return len(notices)


def _build_deliveries(notices: Collection[Notice]) -> list[Delivery]:
    organization = Organization.objects.get(pk=next(iter(notices)).organization_id)
    channels = defaultdict(list)
    for channel in Channel.objects.filter(membership__organization=organization, confirmed_at__isnull=False):
        channels[channel.membership_id].append(channel)
    if not channels:
        return []
    audience, rules = Audience.load(organization, notices), load_pace_rules(channels.keys())
    now, default = timezone.now(), PaceRules()
    return [
        Delivery(notice=notice, channel=channel, due_at=due_at)
        for notice in notices
        for member in audience.find(notice)
        if channels[member.pk] and (due_at := rules.get(member.pk, default).find_due_time(notice.kind, now))
        for channel in channels[member.pk]
    ]
