"""Notifications on the screens of browsers: those of closed cards are removed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from django.db import transaction
from django.db.models import QuerySet

from agents.approvals.own_cards import count_pending_cards
from agents.deliveries.channels.push import SILENT_PUSH_HOSTS, Subscription, push
from agents.deliveries.content import Notification
from agents.deliveries.failures import DeliveryError
from agents.notices.models import CARD_KINDS, Channel, Delivery
from agents.notices.texts import MAX_IN_ONE_NOTIFICATION, SEVERAL
from agents.runs.models import Approval, ApprovalStatus

logger = logging.getLogger(__name__)

CLOSED = tuple(status for status in ApprovalStatus if status != ApprovalStatus.PENDING)
MAX_CLOSED = 100


def add_closed_cards(channel: Channel, notification: Notification) -> Notification:
    """Let the notification close the notifications whose cards are closed."""
    closed = _select_closed(channel).values_list("notice__approval", flat=True).distinct()
    return replace(notification, closes=tuple(f"card-{pk}" for pk in closed[:MAX_CLOSED]))


def note_shown(channel: Channel, deliveries: Sequence[Delivery]) -> None:
    """Record that the browser shows these, and no longer those of closed cards."""
    if not channel.host:  # it was added before hosts were stored
        host = Subscription.parse(channel.address).host
        Channel.objects.filter(pk=channel.pk).update(host=host[:200])
    _select_closed(channel).update(is_on_screen=False)
    shown = [each.pk for each in deliveries if each.notice.kind in CARD_KINDS]
    Delivery.objects.filter(pk__in=shown).update(is_on_screen=True)


def withdraw_next() -> bool:
    """Remove the notifications of closed cards from one browser's screen, at most once; return
    False if there are none.

    Where a push service counts notifications that show nothing, the next visible notification
    closes them.
    """
    shown = Delivery.objects.filter(is_on_screen=True, notice__approval__status__in=CLOSED)
    shown = shown.exclude(channel__host__in=SILENT_PUSH_HOSTS)
    if not shown.exists():
        return False
    with transaction.atomic():
        rows = shown.select_for_update(skip_locked=True, no_key=True, of=("self",))
        rows = rows.select_related("channel__membership")
        first = rows.order_by("pk").first()
        if first is None:
            return False
        taken = list(rows.filter(channel=first.channel).order_by("pk")[:MAX_IN_ONE_NOTIFICATION])
        Delivery.objects.filter(pk__in=[each.pk for each in taken]).update(is_on_screen=False)
        cards = (
            Approval.objects.filter(notices__deliveries__in=taken)
            .distinct()
            .values_list("pk", flat=True)
        )
        tags, waiting = (
            [f"card-{pk}" for pk in cards],
            count_pending_cards(first.channel.membership.organization_id),
        )
    tags = tags if waiting else [*tags, SEVERAL]
    try:
        push(first.channel.address, {"close": tags, "waiting": waiting})
    except DeliveryError as error:
        logger.info(
            "channel %s: a closed card stays on its screen: %s", first.channel.pk, error.problem
        )
    return True


def _select_closed(channel: Channel) -> QuerySet[Delivery]:
    """Select the notifications that are on the browser's screen although their cards are closed."""
    return Delivery.objects.filter(
        channel=channel, is_on_screen=True, notice__approval__status__in=CLOSED
    )
