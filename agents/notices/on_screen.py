"""Remove the notifications of closed cards from the screens of browsers."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.approvals.own_cards import count_pending_cards
from agents.deliveries.channels.push import SILENT_PUSH_HOSTS, Subscription, push
from agents.deliveries.engine import find_pause, record_attempt
from agents.deliveries.failures import DeliveryError
from agents.deliveries.outboxes import MAX_TRIES, Outbox
from agents.notices.channels import note_failed, note_reached
from agents.notices.models import CARD_KINDS, Channel, Delivery
from agents.notices.texts import SEVERAL
from agents.runs.engine.timing import timing
from agents.runs.models import ApprovalStatus

logger = logging.getLogger(__name__)

CLOSED = tuple(status for status in ApprovalStatus if status != ApprovalStatus.PENDING)
MAX_CLOSED = 100
"""The maximum number of notifications that one push can close."""
MAX_TRIES_TOGETHER = 2 * MAX_TRIES
"""The maximum number of attempts to send a notification and to remove it again, counted
together."""


def list_closed(channel: Channel) -> list[Delivery]:
    """List the notifications on the browser's screen whose cards are closed, the oldest first."""
    closed = _select_closed().filter(channel=channel).select_related("notice")
    return list(closed.order_by("pk")[:MAX_CLOSED])


def name_cards(deliveries: Collection[Delivery]) -> tuple[str, ...]:
    """Return the tags of these notifications, such as `card-17`, without repeats."""
    return tuple(dict.fromkeys(f"card-{each.notice.approval_id}" for each in deliveries))


def note_removed(deliveries: Collection[Delivery]) -> None:
    """Record that the browser no longer shows these notifications."""
    Delivery.objects.filter(pk__in=[each.pk for each in deliveries]).update(is_on_screen=False)


def note_shown(channel: Channel, deliveries: Sequence[Delivery]) -> None:
    """Record that the browser shows these notifications, so that they are removed as soon as their
    cards close."""
    if not channel.host:  # it was added before hosts were stored
        host = Subscription.parse(channel.address).host
        Channel.objects.filter(pk=channel.pk).update(host=host[:200])
    shown = [each.pk for each in deliveries if each.notice.kind in CARD_KINDS]
    Delivery.objects.filter(pk__in=shown).update(is_on_screen=True, due_at=Now())


def withdraw_next() -> bool:
    """Remove the notifications of closed cards from one browser's screen; return False if none is
    due.

    A failed attempt is repeated after a pause. After the last attempt, and for the services in
    SILENT_PUSH_HOSTS, the next visible notification closes them instead.
    """
    taken = _take_closed()
    if not taken:
        return False
    channel, tries = taken[0].channel, max(each.tries for each in taken)
    waiting = count_pending_cards(channel.membership.organization_id)
    tags = [*name_cards(taken), *(() if waiting else (SEVERAL,))]
    try:
        push(channel.address, {"close": tags, "waiting": waiting})
    except DeliveryError as error:
        logger.info("channel %s: a closed card stays on its screen: %s", channel.pk, error.problem)
        note_failed(channel, error, find_pause(tries, asked_s=error.retry_after_s))
    else:
        note_removed(taken)
        note_reached(channel)
    return True


def _take_closed() -> list[Delivery]:
    """Load the notifications of closed cards that are due to be removed from one browser's screen,
    and record that an attempt begins."""
    due = _select_closed().filter(due_at__lte=Now(), tries__lt=MAX_TRIES_TOGETHER)
    due = due.exclude(channel__host__in=SILENT_PUSH_HOSTS)
    if not due.exists():
        return []
    with transaction.atomic():
        rows = due.select_for_update(skip_locked=True, no_key=True, of=("self",))
        rows = rows.select_related("notice", "channel__membership")
        first = rows.order_by("due_at", "pk").first()
        if first is None:
            return []
        taken = list(rows.filter(channel=first.channel).order_by("pk")[:MAX_CLOSED])
        until = Now() + timedelta(seconds=Outbox.try_s * timing().scale)
        record_attempt(Delivery.objects.all(), taken, until)
    return taken


def _select_closed() -> QuerySet[Delivery]:
    """Select the notifications that are on a screen although their cards are closed."""
    return Delivery.objects.filter(is_on_screen=True, notice__approval__status__in=CLOSED)
