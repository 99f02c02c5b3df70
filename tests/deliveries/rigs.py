"""One rig for each channel: tests use it to create, hold, refuse and count deliveries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import Any

from django.db.models.functions import Now
from django.utils import timezone

from agents.accounts.notice_facts import NoticeKind
from agents.deliveries.changes import send_again
from agents.deliveries.outboxes import MAX_TRIES, OUTBOXES, Outbox
from agents.notices.models import Channel, ChannelKind, Delivery
from agents.notices.outbox import add_notice, build_card_notice
from agents.notices.spreading import spread_notices
from agents.webhooks.models import Webhook, WebhookDelivery, WebhookKind
from agents.webhooks.sending import KIND
from tests.chat_server import ChatServer
from tests.mail_server import MailServer
from tests.push_service import PushService
from tests.webhooks.conftest import add_webhook
from tests.webhooks.receiver import Receiver
from tests.workshop import Workshop, read_everything
from tests.world import World


class Rig(ABC):
    """A channel whose server runs in this process.

    Attributes:
        model, receivers: the tables of its deliveries and receivers.
        good, bad: responses of the server; after the bad response, the delivery is retried.
    """

    kind: str
    model: type[Any]
    receivers: type[Any]
    good: Any = 200
    bad: Any = 503

    @property
    def outbox(self) -> Outbox[Any, Any]:
        return OUTBOXES[self.kind]

    @property
    def delivery(self) -> Any:
        """The newest delivery, reloaded from the database."""
        return self.model.objects.latest("pk")

    @abstractmethod
    def write(self) -> None:
        """Create another delivery for each receiver, due immediately."""

    @abstractmethod
    def answer(self, response: Any) -> None:
        """Make the server return this response from now on."""

    @abstractmethod
    def hold(self) -> None:
        """Make the server wait until it is released."""

    @abstractmethod
    def release(self) -> None:
        """Make the server respond again."""

    @abstractmethod
    def count(self) -> int:
        """Count the messages that reached the server while its response was good; some servers
        count all messages."""

    @abstractmethod
    def add_receiver(self) -> Any:
        """Add a receiver at the same host as the first one."""

    @abstractmethod
    def move(self, receiver: Any) -> None:
        """Move a receiver to another host."""

    @abstractmethod
    def let_all_be_due(self) -> None:
        """End all pauses and attempts, so that every waiting delivery is due."""

    @abstractmethod
    def use_up(self) -> None:
        """Use up all attempts of the delivery except the last."""

    @abstractmethod
    def send_again(self) -> None:
        """Send the delivery again, as a person can do on a page."""


class NoticeRig(Rig):
    """A channel that sends notices to the world's approver."""

    model, receivers = Delivery, Channel

    def __init__(self, world: World) -> None:
        self.world = world

    def write(self) -> None:
        add_notice(build_card_notice(NoticeKind.CARD, self.world.card()))
        spread_notices()

    def add_receiver(self) -> Channel:
        first = Channel.objects.earliest("pk")
        Channel.objects.filter(pk=first.pk).update(host="same.example.com")
        values = {name: getattr(first, name) for name in ("kind", "address", "label", "membership")}
        fingerprint = str(Channel.objects.count())
        return Channel.objects.create(
            **values, host="same.example.com", fingerprint=fingerprint, confirmed_at=timezone.now()
        )

    def move(self, receiver: Channel) -> None:
        Channel.objects.filter(pk=receiver.pk).update(host="other.example.com")

    def let_all_be_due(self) -> None:
        Delivery.objects.filter(status="waiting").update(due_at=Now() - timedelta(seconds=1))

    def use_up(self) -> None:
        Delivery.objects.update(tries=MAX_TRIES - 1)

    def send_again(self) -> None:
        send_again(self.world.member("approver"), self.kind, self.delivery.pk)


class MailRig(NoticeRig):
    """E-mail, sent through a mail server."""

    kind, good, bad = ChannelKind.EMAIL, "250 OK", "451 try later"

    def __init__(self, world: World, mail: MailServer) -> None:
        super().__init__(world)
        self.mail = mail

    def answer(self, response: str) -> None:
        self.mail.reply = response

    def hold(self) -> None:
        self.mail.hold()

    def release(self) -> None:
        self.mail.release()

    def count(self) -> int:
        return len(self.mail.received)


class PushRig(NoticeRig):
    """Browser push, sent through a push service."""

    kind, good = ChannelKind.PUSH, 201

    def __init__(self, world: World, service: PushService) -> None:
        super().__init__(world)
        self.service = service

    def answer(self, response: int) -> None:
        self.service.status = response

    def hold(self) -> None:
        self.service.answering.clear()

    def release(self) -> None:
        self.service.answering.set()

    def count(self) -> int:
        return len(self.service.raw)


class ChatRig(NoticeRig):
    """A chat service."""

    kind = ChannelKind.CHAT

    def __init__(self, world: World, server: ChatServer) -> None:
        super().__init__(world)
        self.server = server

    def answer(self, response: int) -> None:
        self.server.status = response

    def hold(self) -> None:
        self.server.answering.clear()

    def release(self) -> None:
        self.server.answering.set()

    def count(self) -> int:
        return len(self.server.bodies)


class WebhookRig(Rig):
    """A webhook that receives an event when a run starts."""

    kind, model, receivers = KIND, WebhookDelivery, Webhook

    def __init__(self, workshop: Workshop, receiver: Receiver) -> None:
        self.workshop, self.receiver = workshop, receiver
        self.add_receiver()

    def write(self) -> None:
        self.workshop.submit()
        read_everything()

    def answer(self, response: int) -> None:
        self.receiver.status = response

    def hold(self) -> None:
        self.receiver.hold()

    def release(self) -> None:
        self.receiver.release()

    def count(self) -> int:
        return len(self.receiver.received)

    def add_receiver(self) -> Webhook:
        return add_webhook(self.workshop, self.receiver, kinds=[WebhookKind.RUN_STARTED])[0]

    def move(self, receiver: Webhook) -> None:
        receiver.address = self.receiver.url.replace("127.0.0.1", "localhost")
        receiver.save()

    def let_all_be_due(self) -> None:
        WebhookDelivery.objects.update(due_at=Now() - timedelta(seconds=1))
        Webhook.objects.update(busy_until=None, rests_until=None)

    def use_up(self) -> None:
        WebhookDelivery.objects.update(wanted_at=Now() - timedelta(days=3))

    def send_again(self) -> None:
        send_again(self.workshop.admin, self.kind, self.delivery.pk)
