"""Due notices are sent at least once, together in one notification, without values, and again after
a failure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django import Settings

from agents.accounts.models import Membership, Role
from agents.accounts.notice_facts import NoticeKind
from agents.approvals.decisions import Decision, deny
from agents.deliveries import changes
from agents.deliveries import engine as sending
from agents.deliveries.engine import find_pause, send_next
from agents.deliveries.failures import DeliveryError
from agents.deliveries.models import DeliveryStatus
from agents.deliveries.outboxes import MAX_TRIES
from agents.notices.audience import Audience
from agents.notices.channels import add_email
from agents.notices.deliveries import select_deliveries, send_notice_again
from agents.notices.models import Channel, ChannelKind, Delivery, Notice, NoticeChoices
from agents.notices.outbox import add_notice, build_card_notice, build_run_notice
from agents.notices.spreading import spread_notices
from agents.platform.refusals import Conflict, NotFound
from agents.runs.engine.timing import timing
from agents.runs.models import Run
from tests.awaiting import await_that
from tests.features import feature
from tests.mail_server import MailServer
from tests.notices.conftest import add_address
from tests.world import World, change

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]

CANARY = "canary-4711"


def send_all() -> None:
    while spread_notices() or send_next(ChannelKind.EMAIL):
        pass


def tell_card(world: World, **more: object) -> None:
    add_notice(build_card_notice(NoticeKind.CARD, world.card(**more)))  # type: ignore[arg-type]


def let_all_be_due() -> None:
    Delivery.objects.filter(status=DeliveryStatus.WAITING).update(due_at=Now())


def test_a_notification_names_the_tool_and_the_employee_with_a_link(
    world: World, mail: MailServer
) -> None:
    add_address(world.member("approver"))
    card = world.card()
    add_notice(build_card_notice(NoticeKind.CARD, card))
    send_all()
    (received,) = mail.received
    assert received.recipient == "approver@example.com"
    assert received.subject == "A decision is waiting: Update a record, asked by Dana"
    assert f"http://127.0.0.1:8000/approvals/{card.pk}/" in received.text
    assert Delivery.objects.get().status == DeliveryStatus.SENT


@feature(
    "The gate",
    "People who can decide a card are notified by e-mail, without values",
    "agents/notices/spreading.py",
)
def test_a_notification_contains_no_values(world: World, mail: MailServer) -> None:
    add_address(world.member("approver"))
    run = world.run(task=f"Set the phone {CANARY}", title=f"Phone {CANARY}")
    world.records[0].name = f"Acme {CANARY}"
    world.records[0].save()
    tell_card(world, run=run, params=change(world.records[0], CANARY))
    send_all()
    (received,) = mail.received
    assert CANARY not in received.message.as_string()
    assert CANARY not in received.subject + received.text


def test_a_notification_names_the_marks_of_its_card_without_their_values(
    world: World, mail: MailServer
) -> None:
    add_address(world.member("approver"))
    changes = {"email": f"ann@{CANARY}.example", "notes": "H\u0430rbor"}
    tell_card(world, params={"record_id": str(world.records[0].pk), "changes": changes})
    send_all()
    (received,) = mail.received
    assert received.subject.endswith("asked by Dana. Marked: Mixed alphabets, New here")
    assert CANARY not in received.message.as_string() + received.text


def test_names_with_line_breaks_cannot_add_a_header(world: World, mail: MailServer) -> None:
    add_address(world.member("approver"))
    world.employee.name = "Dana\r\nBcc: everybody@example.com\u202e"
    world.employee.save()
    tell_card(world)
    send_all()
    (received,) = mail.received
    assert (
        received.subject.strip()
        == "A decision is waiting: Update a record, asked by Dana Bcc: everybody@example.com⟦U+202E⟧"
    )
    assert received.message["Bcc"] is None


def test_all_due_notices_are_sent_in_one_notification(world: World, mail: MailServer) -> None:
    add_address(world.member("approver"))
    for _ in range(3):
        tell_card(world)
    while spread_notices():
        pass
    send_all()
    (received,) = mail.received
    assert received.subject == "3 decisions are waiting"
    assert received.text.count("A decision is waiting: Update a record, asked by Dana") == 3


def test_a_notice_about_a_decided_card_is_not_sent(world: World, mail: MailServer) -> None:
    add_address(world.member("approver"))
    card = world.card()
    add_notice(build_card_notice(NoticeKind.CARD, card))
    spread_notices()
    deny(world.member("admin"), card.pk, Decision(card.digest))
    send_all()
    assert mail.received == []
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.problem) == (DeliveryStatus.DROPPED, "the card is closed")


def test_a_person_who_can_no_longer_decide_gets_nothing(world: World, mail: MailServer) -> None:
    add_address(world.member("approver"))
    tell_card(world)
    spread_notices()
    Membership.objects.filter(user=world.users["approver"]).update(role=Role.VIEWER)
    send_all()
    assert mail.received == []
    assert Delivery.objects.get().problem == "it is no longer for this person"


def test_a_failed_delivery_is_retried_after_its_pause(world: World, mail: MailServer) -> None:
    add_address(world.member("approver"))
    tell_card(world)
    mail.reply = "451 try later"
    send_all()
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.tries) == (DeliveryStatus.WAITING, 1)
    assert delivery.problem == "the mail server responded: 451 try later"
    assert Channel.objects.get().failing_since is not None
    send_all()
    delivery.refresh_from_db()
    assert delivery.tries == 1, "it waits for its pause"
    mail.reply = "250 OK"
    let_all_be_due()
    send_all()
    assert len(mail.received) == 1
    channel = Channel.objects.get()
    assert (channel.failing_since, channel.problem) == (None, "")


def test_a_delivery_fails_after_its_last_attempt_and_can_be_resent(
    world: World, mail: MailServer
) -> None:
    add_address(world.member("approver"))
    tell_card(world)
    mail.reply = "451 try later"
    for _ in range(MAX_TRIES):
        send_all()
        let_all_be_due()
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.tries) == (DeliveryStatus.FAILED, MAX_TRIES)
    mail.reply = "250 OK"
    send_notice_again(world.member("approver"), delivery.pk)
    send_all()
    assert len(mail.received) == 1
    with pytest.raises(Conflict):
        send_notice_again(world.member("approver"), delivery.pk)


def test_only_admins_can_resend_the_deliveries_of_other_people(world: World) -> None:
    add_address(world.member("approver"))
    tell_card(world)
    spread_notices()
    delivery = Delivery.objects.get()
    Delivery.objects.update(status=DeliveryStatus.FAILED, ended_at=Now())
    for name in ("operator", "outsider"):
        with pytest.raises(NotFound):
            send_notice_again(world.member(name), delivery.pk)
    send_notice_again(world.member("admin"), delivery.pk)


@pytest.mark.parametrize("kind", ChannelKind)
def test_a_delivery_is_resent_only_by_the_outbox_of_its_channel(
    world: World, kind: ChannelKind
) -> None:
    add_address(world.member("approver"))
    tell_card(world)
    spread_notices()
    delivery = Delivery.objects.get()
    Delivery.objects.update(status=DeliveryStatus.FAILED, ended_at=Now())
    with nullcontext() if kind == ChannelKind.EMAIL else pytest.raises(NotFound):
        changes.send_again(world.member("approver"), kind, delivery.pk)
    delivery.refresh_from_db()
    assert (delivery.status == DeliveryStatus.WAITING) is (kind == ChannelKind.EMAIL)


def test_a_refused_address_is_not_retried(world: World, mail: MailServer) -> None:
    add_address(world.member("approver"))
    tell_card(world)
    mail.recipient_reply = "550 no such user"
    send_all()
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.problem) == (
        DeliveryStatus.FAILED,
        "the mail server refused the address: 550 no such user",
    )


def test_another_sender_takes_over_from_a_killed_sender(world: World, mail: MailServer) -> None:
    add_address(world.member("approver"))
    tell_card(world)
    spread_notices()
    assert sending._take_batch(ChannelKind.EMAIL) is not None  # and the sender is killed
    assert not send_next(ChannelKind.EMAIL), "its time is not over"
    assert Delivery.objects.get().due_at <= timezone.now() + timedelta(seconds=30 * timing().scale)
    Delivery.objects.update(due_at=Now() - timedelta(seconds=1))
    assert send_next(ChannelKind.EMAIL)
    assert len(mail.received) == 1
    assert Delivery.objects.get().tries == 2


def test_a_slow_attempt_is_left_to_its_sender(
    world: World, mail: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "RENEWED_EVERY_S", 0.05)
    add_address(world.member("approver"))
    tell_card(world)
    spread_notices()
    slow = sending._take_batch(ChannelKind.EMAIL)
    assert slow is not None
    with sending._renewing(slow):
        Delivery.objects.update(due_at=Now())
        await_that(
            lambda: Delivery.objects.filter(due_at__gt=Now()).exists(),
            "the sender has renewed its try",
        )
        assert not send_next(ChannelKind.EMAIL)
    assert not mail.received


def test_an_overtaken_attempt_counts_only_if_it_succeeds(world: World, mail: MailServer) -> None:
    add_address(world.member("approver"))
    tell_card(world)
    spread_notices()
    slow = sending._take_batch(ChannelKind.EMAIL)
    assert slow is not None
    let_all_be_due()
    mail.reply = "451 try later"
    assert send_next(ChannelKind.EMAIL)
    sending._end(slow, DeliveryStatus.FAILED)
    assert Delivery.objects.get().status == DeliveryStatus.WAITING
    sending._end(slow, DeliveryStatus.SENT)
    assert Delivery.objects.get().status == DeliveryStatus.SENT


def test_without_a_mail_server_notices_are_only_shown(world: World) -> None:
    add_address(world.member("approver"))
    tell_card(world)
    send_all()
    assert Delivery.objects.get().status == DeliveryStatus.SHOWN


def test_an_address_of_another_organization_gets_nothing(world: World, mail: MailServer) -> None:
    add_address(world.member("outsider"))
    tell_card(world)
    send_all()
    assert mail.received == []
    assert not Delivery.objects.exists()


def test_a_code_is_sent_in_a_separate_notification(world: World, mail: MailServer) -> None:
    member = world.member("approver")
    add_email(member, "ann@example.com")
    send_all()
    (received,) = mail.received
    assert received.subject == "Your code for Gadget"
    assert Channel.objects.get().code in received.text


def test_pauses_between_attempts_grow_to_an_hour() -> None:
    scale = find_pause(1).total_seconds() / 15
    assert [find_pause(tries).total_seconds() / scale for tries in (1, 2, 3, 4, 5, 8)] == [
        15,
        60,
        240,
        960,
        3600,
        3600,
    ]


def test_an_immediate_notice_is_due_at_a_whole_second(world: World) -> None:
    add_address(world.member("approver"))
    tell_card(world)
    spread_notices()
    assert Delivery.objects.get().due_at.microsecond == 0


def test_a_delivery_whose_sender_always_crashes_is_given_up(world: World, mail: MailServer) -> None:
    add_address(world.member("approver"))
    tell_card(world)
    spread_notices()
    for _ in range(MAX_TRIES):
        assert sending._take_batch(ChannelKind.EMAIL) is not None
        let_all_be_due()
    assert send_next(ChannelKind.EMAIL)
    delivery = Delivery.objects.get()
    assert delivery.status == DeliveryStatus.FAILED
    assert "without a result" in delivery.problem
    assert mail.received == []


def test_a_delivery_to_an_address_that_cannot_be_decrypted_fails(
    world: World, mail: MailServer
) -> None:
    channel = add_address(world.member("approver"))
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE notices_channel SET address = 'of another key' WHERE id = %s", [channel.pk]
        )
    tell_card(world)
    send_all()
    assert (
        Delivery.objects.get().problem
        == "the address cannot be read, because its encryption key is missing"
    )
    assert mail.received == []


@feature(
    "The gate",
    "A notice that cannot be sent or spread stands in nobody's way",
    "agents/notices/spreading.py",
)
def test_a_notice_that_cannot_be_spread_does_not_block_others(
    world: World, mail: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_address(world.member("approver"))
    bad = world.card()
    add_notice(build_card_notice(NoticeKind.CARD, bad))
    tell_card(world)
    find = Audience.find

    def fail(self: Audience, notice: Notice) -> list[Membership]:
        if notice.approval_id == bad.pk:
            raise ZeroDivisionError
        return find(self, notice)

    monkeypatch.setattr(Audience, "find", fail)
    assert [spread_notices(), spread_notices(), spread_notices()] == [1, 1, 0]
    send_all()
    assert len(mail.received) == 1


def test_a_notice_that_another_worker_is_spreading_is_not_given_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell_card(world)
    monkeypatch.setattr("agents.notices.spreading._spread", lambda _: 0)
    assert spread_notices() == 0
    assert Notice.objects.get().spread_at is None


def test_a_notice_of_a_newer_version_waits_for_newer_workers_and_does_not_block_others(
    world: World, mail: MailServer
) -> None:
    add_address(world.member("approver"))
    newer = Notice(organization=world.acme, key="eclipse:1", kind="eclipse")
    with kinds_of_a_newer_version():
        newer.save()
        tell_card(world)
        older = Notice.objects.exclude(pk=newer.pk).get()
        send_all()
        assert [each.subject for each in mail.received] == [
            "A decision is waiting: Update a record, asked by Dana"
        ]
        newer.refresh_from_db()
        assert newer.spread_at is None
        Delivery.objects.create(notice=newer, channel=Channel.objects.get(), due_at=Now())
        assert not send_next(ChannelKind.EMAIL)
        shown = select_deliveries(world.member("approver"), of_all=False)
        assert [each.notice_id for each in shown] == [older.pk]


@contextmanager
def kinds_of_a_newer_version() -> Iterator[None]:
    """Let the table accept notices of any kind during the block, and remove those of unknown kinds
    afterwards."""
    name = "notice_kind_is_known"
    is_postgresql = connection.vendor == "postgresql"
    check = next(each for each in Notice._meta.constraints if each.name == name)
    with connection.cursor() as cursor:
        if is_postgresql:
            cursor.execute(f"ALTER TABLE notices_notice DROP CONSTRAINT {name}")
        else:
            cursor.execute("PRAGMA ignore_check_constraints = ON")
    try:
        yield
    finally:
        Delivery.objects.exclude(notice__kind__in=NoticeKind.values).delete()
        Notice.objects.exclude(kind__in=NoticeKind.values).delete()
        if is_postgresql:
            with connection.schema_editor() as editor:
                editor.add_constraint(Notice, check)
        else:
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA ignore_check_constraints = OFF")


def test_unreadable_preferences_are_treated_as_the_defaults(world: World, mail: MailServer) -> None:
    for name in ("approver", "admin"):
        add_address(world.member(name))
    NoticeChoices.objects.create(membership=world.member("admin"), time_zone="Mars/Base")
    tell_card(world)
    send_all()
    assert sorted(each.recipient for each in mail.received) == [
        "admin@example.com",
        "approver@example.com",
    ]


def test_notices_of_two_organizations_are_sent_separately(world: World, mail: MailServer) -> None:
    for name in ("approver", "outsider"):
        add_address(world.member(name))
    other = Run.objects.create(
        organization=world.globex,
        employee=world.others_employee,
        created_by=world.users["outsider"],
        task="x",
    )
    tell_card(world)
    add_notice(build_run_notice(NoticeKind.RUN_FAILED, other, 1))
    send_all()
    told = {each.recipient: each.subject for each in mail.received}
    assert told == {
        "approver@example.com": "A decision is waiting: Update a record, asked by Dana",
        "outsider@example.com": f"A run failed: run {other.pk} of Hank",
    }


def test_a_failing_address_does_not_delay_others(world: World, mail: MailServer) -> None:
    for name in ("approver", "admin"):
        add_address(world.member(name))
    bad = Channel.objects.get(membership=world.member("approver"))
    Channel.objects.filter(pk=bad.pk).update(failing_since=Now())
    tell_card(world)
    spread_notices()
    Delivery.objects.filter(channel=bad).update(due_at=Now() - timedelta(hours=1))
    assert send_next(ChannelKind.EMAIL)
    assert [each.recipient for each in mail.received] == ["admin@example.com"]


def test_notices_for_a_failing_address_wait_for_its_next_attempt(
    world: World, mail: MailServer
) -> None:
    add_address(world.member("approver"))
    tell_card(world)
    spread_notices()
    mail.reply = "451 try later"
    batch = sending._take_batch(ChannelKind.EMAIL)
    assert batch is not None
    tell_card(world)
    spread_notices()
    sending._record_failure(batch, DeliveryError("away"))
    assert not send_next(ChannelKind.EMAIL)


def test_a_code_and_a_card_are_never_in_one_notification(world: World, mail: MailServer) -> None:
    channel = add_address(world.member("approver"))
    tell_card(world)
    spread_notices()
    notice = Notice.objects.create(
        organization=world.acme, key="code:1", kind=NoticeKind.CODE, spread_at=Now()
    )
    Delivery.objects.create(notice=notice, channel=channel, due_at=Now())
    Channel.objects.filter(pk=channel.pk).update(confirmed_at=None)
    send_all()
    assert sorted(each.subject for each in mail.received) == [
        "A decision is waiting: Update a record, asked by Dana",
        "Your code for Gadget",
    ]


def test_a_code_is_shown_only_in_the_demo(world: World, settings: Settings) -> None:
    settings.EMAIL_HOST, settings.DEBUG = "", False  # as in a worker, which switches DEBUG off
    settings.GADGET_SHOWS_MESSAGES = True
    add_email(world.member("approver"), "ann@example.com")
    settings.GADGET_SHOWS_MESSAGES = False
    send_all()
    assert Delivery.objects.get().problem == "there is no mail server"
    settings.GADGET_SHOWS_MESSAGES = True
    let_all_be_due()
    send_all()
    assert Delivery.objects.get().status == DeliveryStatus.SHOWN
