"""Put canaries into every field that models, tools and people write, and search every sent message
for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from email.message import EmailMessage

from django.db.models import CharField, Field, JSONField, Model, TextField
from django.test import override_settings
from django.utils import timezone

from agents.accounts.notice_facts import NoticeKind
from agents.deliveries.channels.push import Subscription, make_key_if_missing
from agents.deliveries.engine import send_next
from agents.notices.channels import add_browser, add_chat
from agents.notices.models import CARD_KINDS, RUN_KINDS, Channel, ChannelKind, FollowedRun, Notice
from agents.notices.outbox import add_notice
from agents.notices.spreading import spread_notices
from agents.runs.models import Approval, Message, Pass
from gadget_site.private_hosts import LOOPBACK
from tests.chat_server import ChatServer
from tests.mail_server import MailServer
from tests.notices.conftest import add_address
from tests.push_service import PushService
from tests.world import World, make_world
from tools.office.records.models import Record

CANARY = "cnry4711"
KINDS = tuple(kind for kind in NoticeKind if kind != NoticeKind.CODE)
KEPT = frozenset(
    {
        "tool",
        "level",
        "origin",
        "provider_call_id",
        "late_effect",
        "ruling",
        "shown_marks",
        "lease_owner",
        "mode",
        "client_request_id",
    }
)
"""Fields whose values are more restricted than their types."""


@dataclass(frozen=True)
class Servers:
    """The servers that receive messages."""

    mail: MailServer
    push: PushService
    chat: ChatServer


@dataclass(frozen=True)
class Sent:
    """Everything that was sent: e-mails with headers and parts, pushes as the browser reads them,
    and chats."""

    mails: list[str]
    pushes: list[str]
    chats: list[str]

    @classmethod
    def by(cls, servers: Servers) -> Sent:
        """Collect the messages of these servers."""
        mails = [read(each.message) for each in servers.mail.received]
        return cls(
            mails,
            *(
                [json.dumps(each) for each in found]
                for found in (servers.push.messages, servers.chat.bodies)
            ),
        )

    def count_canaries(self) -> int:
        return sum(
            text.casefold().count(CANARY) for text in (*self.mails, *self.pushes, *self.chats)
        )


def plant_and_search(cards: int) -> str:
    """Send every kind of notice about this many cards full of canaries, and check that no message
    contains one; report the amount searched."""
    with receive() as (world, servers):
        for number in range(cards):
            card, alone = plant(world), KINDS[number % len(KINDS)]
            tell(world, card, alone)
            send_all()
            for kind in KINDS:
                if kind != alone:
                    tell(world, card, kind)
            send_all()
        sent = Sent.by(servers)
    assert sent.mails
    assert sent.pushes
    assert sent.chats
    assert sent.count_canaries() == 0
    return f"{len(sent.mails):,} e-mails, {len(sent.pushes):,} pushes and {len(sent.chats):,} chat messages"


@contextmanager
def receive() -> Iterator[tuple[World, Servers]]:
    """Yield a world whose admin gets all notices by e-mail, browser and chat."""
    with (
        MailServer() as mail,
        PushService() as push,
        closing(ChatServer()) as chat,
        override_settings(
            DEBUG=True, PRIVATE_PUSH_HOSTS=LOOPBACK, CHAT_HOSTS=LOOPBACK, **mail.settings
        ),
    ):
        world = make_world()
        make_key_if_missing()
        admin = world.member("admin")
        add_address(admin)
        browser = add_browser(admin, Subscription(**push.form), "Chrome on Linux")
        talk = add_chat(admin, f"ntfy://127.0.0.1:{chat.port}/alerts")
        Channel.objects.filter(pk__in=(browser.pk, talk.pk)).update(
            confirmed_at=timezone.now(), code=""
        )
        yield world, Servers(mail, push, chat)


def plant(world: World) -> Approval:
    """Create a card with a canary in every free field of its own row and of the related rows."""
    run = world.run()
    Pass.objects.create(run=run, number=1, text=CANARY, response={}, messages_upto=1)
    card = world.card(run)
    FollowedRun.objects.create(membership=world.member("admin"), run=run)
    for row in (
        card,
        card.tool_call,
        run,
        *Message.objects.filter(run=run),
        *Pass.objects.filter(run=run),
    ):
        fill(row)
    Record.objects.filter(organization=world.acme).update(name=CANARY, notes=CANARY)
    type(world.employee).objects.filter(pk=world.employee.pk).update(instructions=CANARY)
    return Approval.objects.get(pk=card.pk)


def fill(row: Model) -> list[str]:
    """Put a canary into each free text and each JSON field of the row; return the names of the
    fields."""
    values = {
        field.attname: CANARY if isinstance(field, CharField | TextField) else {CANARY: [CANARY]}
        for field in row._meta.concrete_fields
        if is_free(field)
    }
    type(row)._default_manager.filter(pk=row.pk).update(**values)
    return list(values)


def is_free(field: Field[object, object]) -> bool:
    """Return True for a text or JSON field whose value is free, unlike a state, a digest or the
    name of a tool."""
    is_text = isinstance(field, CharField | TextField) and not field.choices
    is_hash = field.name.endswith(("digest", "hash", "signature", "key")) or field.name == "shape"
    return (is_text or isinstance(field, JSONField)) and not is_hash and field.name not in KEPT


def tell(world: World, card: Approval, kind: NoticeKind) -> None:
    """Write a notice of this kind; only names that people have given are free of canaries."""
    notice = Notice(organization=world.acme, kind=kind, key=f"{kind}:{card.pk}", detail="Dana")
    if kind in CARD_KINDS or kind in (NoticeKind.CARD_EXPIRED, NoticeKind.BREAK_GLASS):
        notice.run_id, notice.approval_id = card.run_id, card.pk
    elif kind in RUN_KINDS:
        notice.run_id = card.run_id
    elif kind == NoticeKind.SCHEDULE:
        notice.user = world.users["admin"]
    assert add_notice(notice)


def send_all() -> None:
    while (
        spread_notices()
        or send_next(ChannelKind.EMAIL)
        or send_next(ChannelKind.PUSH)
        or send_next(ChannelKind.CHAT)
    ):
        pass


def read(message: EmailMessage) -> str:
    """Return the headers, and each part as plain text."""
    parts = [str(part.get_content()) for part in message.walk() if not part.is_multipart()]
    return "\n".join([*(f"{name}: {value}" for name, value in message.items()), *parts])
