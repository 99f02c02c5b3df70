"""The outboxes of notices, by mail, push and chat: all due notices of one channel are sent in one
notification."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce, Now
from typing_extensions import override

from agents.accounts.models import Membership
from agents.accounts.notice_facts import NoticeKind
from agents.deliveries.channels import get_channel
from agents.deliveries.content import Notification
from agents.deliveries.failures import DeliveryError
from agents.deliveries.models import MAX_PROBLEM, DeliveryStatus
from agents.deliveries.outboxes import DeliveryBatch, DeliveryEnding, Outbox
from agents.notices.audience import Audience
from agents.notices.channels import forget_channel
from agents.notices.deliveries import select_deliveries
from agents.notices.models import KNOWN_KINDS, Channel, ChannelKind, Delivery
from agents.notices.on_screen import add_closed_cards, note_shown
from agents.notices.texts import MAX_IN_ONE_NOTIFICATION, write_notification

MAX_GONE_RESPONSES = 3
_Batch = DeliveryBatch[Delivery, Channel]


class NoticeOutbox(Outbox[Delivery, Channel]):
    """The notices by one kind of channel."""

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
        way.send(batch.receiver.address, self.write(batch))
        return DeliveryEnding()

    def write(self, batch: _Batch) -> Notification:
        """Write one notification about all notices of the batch."""
        return write_notification(
            [each.notice for each in batch.deliveries], batch.receiver, batch.key
        )

    @override
    def note_sent(self, batch: _Batch) -> None:
        failing = Channel.objects.filter(pk=batch.receiver.pk, failing_since__isnull=False)
        failing.update(failing_since=None, problem="", gone_answers=0)

    @override
    def note_failure(self, batch: _Batch, error: DeliveryError, pause: timedelta | None) -> None:
        channel = Channel.objects.filter(pk=batch.receiver.pk)
        channel.update(
            failing_since=Coalesce("failing_since", Now()),
            problem=error.problem[:MAX_PROBLEM],
            gone_answers=F("gone_answers") + 1 if error.is_gone else 0,
        )
        if error.is_gone and channel.filter(gone_answers__gte=MAX_GONE_RESPONSES).exists():
            forget_channel(batch.receiver)
        elif pause is not None:  # the other notifications wait, too
            waiting = Delivery.objects.filter(channel=batch.receiver, status=DeliveryStatus.WAITING)
            waiting.filter(due_at__lt=Now() + pause).update(due_at=Now() + pause)


class PushOutbox(NoticeOutbox):
    """The notices to browsers, whose notifications also close notifications on the screen."""

    @override
    def write(self, batch: _Batch) -> Notification:
        return add_closed_cards(batch.receiver, super().write(batch))

    @override
    def note_sent(self, batch: _Batch) -> None:
        note_shown(batch.receiver, batch.deliveries)
        super().note_sent(batch)


OUTBOXES_OF_NOTICES = (
    *(NoticeOutbox(kind) for kind in ChannelKind if kind is not ChannelKind.PUSH),
    PushOutbox(ChannelKind.PUSH),
)
