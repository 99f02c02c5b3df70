"""The outboxes of notices, by mail, push and chat. All due notices of one channel are sent in one
notification."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from django.conf import settings
from django.db.models import QuerySet
from typing_extensions import override

from agents.accounts.models import Membership
from agents.accounts.notice_facts import NoticeKind
from agents.deliveries.channels import get_channel
from agents.deliveries.content import Notification
from agents.deliveries.failures import DeliveryError
from agents.deliveries.models import DeliveryStatus
from agents.deliveries.outboxes import DeliveryBatch, DeliveryEnding, Outbox
from agents.notices.audience import Audience
from agents.notices.channels import note_failed, note_reached
from agents.notices.deliveries import select_deliveries
from agents.notices.models import KNOWN_KINDS, Channel, ChannelKind, Delivery
from agents.notices.on_screen import list_closed, name_cards, note_removed, note_shown
from agents.notices.texts import MAX_IN_ONE_NOTIFICATION, write_notification

_Batch = DeliveryBatch[Delivery, Channel]


class NoticeOutbox(Outbox[Delivery, Channel]):
    """The outbox of the notices that one kind of channel sends."""

    model = Delivery
    receiver = "channel"
    host_column = "channel__host"
    repeatable, noun, other_state = (DeliveryStatus.FAILED,), "notification", "has not failed"
    related = (
        *("channel__membership__organization", "notice__organization", "notice__run__employee"),
        *("notice__approval__tool_call", "notice__approval__run__employee"),
    )

    def __init__(self, kind: ChannelKind) -> None:
        self.kind = kind.value

    @override
    def select_due(self, *, only_healthy: bool) -> QuerySet[Delivery]:
        due = super().select_due(only_healthy=only_healthy)
        return due.filter(channel__kind=self.kind, notice__kind__in=KNOWN_KINDS)

    @override
    def select_visible(self, member: Membership) -> QuerySet[Delivery]:
        return select_deliveries(member, of_all=True).filter(channel__kind=self.kind)

    @override
    def choose(self, first: Delivery, same: QuerySet[Delivery]) -> tuple[Delivery, ...]:
        if first.notice.kind == NoticeKind.CODE:
            return (first,)
        return tuple(same.exclude(notice__kind=NoticeKind.CODE)[:MAX_IN_ONE_NOTIFICATION])

    @override
    def explain_drops(self, batch: _Batch) -> dict[int, str]:
        channel, notices = batch.receiver, [each.notice for each in batch.deliveries]
        audience = Audience.load(channel.membership.organization, notices)
        objections = {
            each.pk: audience.find_objection(each.notice, channel) for each in batch.deliveries
        }
        return {pk: objection.why for pk, objection in objections.items() if objection is not None}

    @override
    def send(self, batch: _Batch) -> DeliveryEnding:
        way = get_channel(self.kind)
        if not way.is_available():
            is_code = batch.deliveries[0].notice.kind == NoticeKind.CODE
            if is_code and not settings.GADGET_SHOWS_MESSAGES:
                raise DeliveryError(way.lacking)
            return DeliveryEnding(DeliveryStatus.SHOWN)
        if not batch.receiver.address:
            raise DeliveryError(
                "the address cannot be read, because its encryption key is missing", is_final=True
            )
        notices = [each.notice for each in batch.deliveries]
        self.transmit(batch.receiver, write_notification(notices, batch.receiver, batch.key))
        return DeliveryEnding()

    def transmit(self, channel: Channel, notification: Notification) -> None:
        """Send one notification by the channel.

        Raises:
            DeliveryError: the notification was not sent.
        """
        get_channel(self.kind).send(channel.address, notification)

    @override
    def note_sent(self, batch: _Batch) -> None:
        note_reached(batch.receiver)

    @override
    def note_failure(self, batch: _Batch, error: DeliveryError, pause: timedelta | None) -> None:
        note_failed(batch.receiver, error, pause)


class PushOutbox(NoticeOutbox):
    """The outbox of the notices to browsers; each notification also makes the browser close the
    notifications of closed cards."""

    @override
    def transmit(self, channel: Channel, notification: Notification) -> None:
        closed = list_closed(channel)
        super().transmit(channel, replace(notification, closes=name_cards(closed)))
        note_removed(closed)

    @override
    def note_sent(self, batch: _Batch) -> None:
        note_shown(batch.receiver, batch.deliveries)
        super().note_sent(batch)


OUTBOXES_OF_NOTICES = (
    *(NoticeOutbox(kind) for kind in ChannelKind if kind is not ChannelKind.PUSH),
    PushOutbox(ChannelKind.PUSH),
)
