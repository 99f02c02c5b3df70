"""Recompute the due times of notifications if they were set while the clock was ahead."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from agents.deliveries.channels.push import LONGEST_WAIT_S
from agents.deliveries.engine import find_pause
from agents.deliveries.models import DeliveryStatus
from agents.notices.choices import load_pace_rules
from agents.notices.models import ChannelKind, Delivery
from agents.notices.pace import PaceRules
from agents.notices.sending import NoticeOutbox
from agents.platform.bounded_waits import CLOCK_SLACK, MAX_ROWS
from agents.runs.engine.timing import timing

LONGEST_DELAY = timedelta(hours=50)
"""The longest delay of a notification: the wait for the daily digest, then for the end of the quiet
hours. Each takes at most a day and an hour."""
MANY_TRIES = 100


def correct_due_times() -> int:
    """Recompute the due times that are later than is possible; return how many were corrected."""
    return _correct_tried() + _correct_untried()


def _correct_tried() -> int:
    """Retry notifications soon if their pause is too long. They are not retried immediately,
    because a sender may be sending them now."""
    pause, push_pause = find_pause(MANY_TRIES), timedelta(seconds=LONGEST_WAIT_S * timing().scale)
    is_push = Q(channel__kind=ChannelKind.PUSH)
    too_late = Q(due_at__gt=Now() + pause + CLOCK_SLACK) & ~is_push
    too_late |= Q(due_at__gt=Now() + max(pause, push_pause) + CLOCK_SLACK) & is_push
    with transaction.atomic():
        rows = _lock(Delivery.objects.filter(too_late, tries__gt=0))
        soon = Now() + timedelta(seconds=NoticeOutbox.try_s * timing().scale)
        return Delivery.objects.filter(pk__in=[row.pk for row in rows]).update(due_at=soon)


def _correct_untried() -> int:
    """Recompute the due times of notifications that were created while the clock was ahead, from
    their receivers' preferences."""
    was_ahead = Q(created_at__gt=Now() + CLOCK_SLACK) | Q(
        due_at__gt=Now() + LONGEST_DELAY + CLOCK_SLACK
    )
    with transaction.atomic():
        late = Delivery.objects.filter(was_ahead, due_at__gt=Now(), tries=0)
        rows, now = (
            _lock(late.select_related("notice", "channel")),
            timezone.now().replace(microsecond=0),
        )
        rules = load_pace_rules({row.channel.membership_id for row in rows})
        corrected = 0
        for row in rows:
            due_at = _find_due_time(row, rules.get(row.channel.membership_id, PaceRules()), now)
            if due_at < row.due_at:
                corrected += Delivery.objects.filter(pk=row.pk).update(due_at=due_at)
    return corrected


def _find_due_time(delivery: Delivery, rules: PaceRules, now: datetime) -> datetime:
    if delivery.channel.is_shared:
        return now
    return rules.find_due_time(delivery.notice.kind, now) or now


def _lock(rows: QuerySet[Delivery]) -> list[Delivery]:
    free = rows.filter(status=DeliveryStatus.WAITING).select_for_update(
        skip_locked=True, no_key=True, of=("self",)
    )
    return list(free.order_by(F("pk"))[:MAX_ROWS])
