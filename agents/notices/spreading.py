"""Spread notices: create a delivery for each person to notify and each of that person's
channels."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection
from typing import assert_never

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from agents.accounts.models import Organization
from agents.accounts.notice_facts import NoticeKind
from agents.notices.audience import Audience
from agents.notices.channels import ensure_break_glass_channel
from agents.notices.choices import load_pace_rules
from agents.notices.models import KNOWN_KINDS, Channel, ChannelKind, Delivery, Notice
from agents.notices.pace import PaceRules
from agents.platform.error_boundary import log_and_continue

logger = logging.getLogger(__name__)

MAX_NOTICES = 200
_RELATED = ("run__employee", "approval__tool_call", "approval__run__employee")


def spread_notices() -> int:
    """Spread the oldest notices of one organization; return their number.

    A notice that cannot be spread is given up, so that it never blocks other notices.
    """
    known = Notice.objects.filter(spread_at=None, kind__in=KNOWN_KINDS)
    oldest = known.order_by("pk").values_list("pk", flat=True).first()
    if oldest is None:
        return 0
    done = 0
    with log_and_continue("spreading notices") as failure:
        done = _spread(known)
    if not failure.is_failed:
        return done
    with log_and_continue(f"spreading notice {oldest}") as failure:
        done = _spread(known.filter(pk=oldest))
    if failure.is_failed and not failure.outage:
        # The failed notice is skipped: it notifies nobody.
        done = known.filter(pk=oldest).update(spread_at=Now())
    return done


def _spread(notices: QuerySet[Notice]) -> int:
    """Spread the oldest unspread notices of one organization in one transaction; skip notices that
    another worker has locked."""
    with transaction.atomic():
        waiting = notices.select_for_update(skip_locked=True, no_key=True, of=("self",))
        waiting = waiting.select_related(*_RELATED).order_by("pk")
        first = waiting.first()
        if first is None:
            return 0
        found = list(waiting.filter(organization_id=first.organization_id)[:MAX_NOTICES])
        Delivery.objects.bulk_create(_build_deliveries(found), ignore_conflicts=True)
        Notice.objects.filter(pk__in=[notice.pk for notice in found]).update(spread_at=Now())
    return len(found)


def _build_deliveries(notices: Collection[Notice]) -> list[Delivery]:
    organization = Organization.objects.get(pk=next(iter(notices)).organization_id)
    channels, shared = defaultdict(list), []
    confirmed = Channel.objects.filter(
        membership__organization=organization, confirmed_at__isnull=False
    )
    for channel in confirmed.select_related("membership"):
        if not channel.is_shared:
            channels[channel.membership_id].append(channel)
            continue
        kind = ChannelKind(channel.kind)
        match kind:
            case ChannelKind.CHAT:
                shared.append(channel)
            case ChannelKind.EMAIL:
                pass  # the address for break-glass, which gets no other notices
            case ChannelKind.PUSH:
                logger.error("channel %s: a browser cannot be shared, so it is skipped", channel.pk)
            case _:
                assert_never(kind)
    broken = [notice for notice in notices if notice.kind == NoticeKind.BREAK_GLASS]
    watcher = ensure_break_glass_channel(organization) if broken else None
    if not channels and not shared and not watcher:
        return []
    audience, rules = Audience.load(organization, notices), load_pace_rules(channels.keys())
    # Whole seconds: SQLite compares times as text, and its clock has only milliseconds, so a time
    # with microseconds could seem to be in the future.
    now, default = (
        timezone.now().replace(microsecond=0),
        PaceRules(),
    )
    to_watcher = [
        Delivery(notice=notice, channel=watcher, due_at=now) for notice in broken if watcher
    ]
    to_all = [
        Delivery(notice=notice, channel=channel, due_at=now)
        for notice in notices
        if shared and audience.concerns_all(notice)
        for channel in shared
        if audience.is_led(channel)
    ]
    to_members = [
        Delivery(notice=notice, channel=channel, due_at=due_at)
        for notice in notices
        for member in audience.find(notice)
        if channels[member.pk]
        and (due_at := rules.get(member.pk, default).find_due_time(notice.kind, now))
        for channel in channels[member.pk]
    ]
    return [*to_watcher, *to_all, *to_members]
