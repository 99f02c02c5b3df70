"""Notifications on screens: when a card is closed, its notifications are removed from every
browser, and no others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from agents.accounts.notice_facts import NoticeKind
from agents.approvals.decisions import Decision, deny
from agents.deliveries.channels.push import SILENT_PUSH_HOSTS, Subscription
from agents.deliveries.engine import send_next
from agents.notices.channels import add_browser
from agents.notices.models import Channel, ChannelKind, Delivery
from agents.notices.on_screen import MAX_TRIES_TOGETHER, _take_closed, withdraw_next
from agents.notices.outbox import add_notice, build_card_notice
from agents.notices.spreading import spread_notices
from agents.runs.engine.timing import timing
from agents.runs.models import Approval, ApprovalStatus
from tests.notices.test_web_push import send_all, send_and_close, tell_card
from tests.push_service import PushService
from tests.world import World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]


@pytest.fixture
def second(world: World, channel: Channel) -> Iterator[PushService]:
    """Yield the service of the admin's browser; `channel` is the approver's."""
    with PushService() as running:
        added = add_browser(world.member("admin"), Subscription(**running.form), "Firefox")
        Channel.objects.filter(pk=added.pk).update(confirmed_at=timezone.now(), code="")
        Delivery.objects.all().delete()
        yield running


def deny_card(world: World, pk: int) -> None:
    deny(world.member("admin"), pk, Decision(Approval.objects.get(pk=pk).digest))


def list_on_screen(channel: Channel) -> list[int | None]:
    shown = Delivery.objects.filter(channel=channel, is_on_screen=True).order_by("pk")
    return list(shown.values_list("notice__approval", flat=True))


def test_a_closed_card_is_removed_from_each_browser_with_a_separate_push(
    world: World, service: PushService, second: PushService, channel: Channel
) -> None:
    pk = tell_card(world)
    send_all()
    deny_card(world, pk)
    service.messages.clear()
    second.messages.clear()
    assert [withdraw_next(), withdraw_next(), withdraw_next()] == [True, True, False]
    assert (
        service.messages == second.messages == [{"close": [f"card-{pk}", "several"], "waiting": 0}]
    )


def test_a_push_closes_only_cards_that_its_browser_shows(
    world: World, service: PushService, second: PushService, channel: Channel
) -> None:
    closed, waiting = tell_card(world), tell_card(world)
    send_all()
    deny_card(world, closed)
    other = Channel.objects.exclude(pk=channel.pk).get()
    Delivery.objects.filter(channel=channel, notice__approval=closed).update(is_on_screen=False)
    service.messages.clear()
    second.messages.clear()
    newest = tell_card(world)
    send_all()
    assert [message.get("close") for message in service.messages] == [None]
    assert [message.get("close") for message in second.messages] == [[f"card-{closed}"]]
    assert list_on_screen(channel) == list_on_screen(other) == [waiting, newest]
    assert Delivery.objects.filter(is_on_screen=False).count() == 2, "control"


def test_a_browser_without_a_stored_host_gets_one_and_other_browsers_keep_theirs(
    world: World, second: PushService, channel: Channel
) -> None:
    other = Channel.objects.exclude(pk=channel.pk)
    Channel.objects.filter(pk=channel.pk).update(host="")
    other.update(host="kept.example.com")
    tell_card(world)
    send_all()
    assert (Channel.objects.get(pk=channel.pk).host, other.get().host) == (
        "127.0.0.1",
        "kept.example.com",
    )


def test_silent_pushes_are_not_sent_to_a_service_that_limits_them(
    world: World, service: PushService, channel: Channel
) -> None:
    Channel.objects.filter(pk=channel.pk).update(host=SILENT_PUSH_HOSTS[0])
    first = tell_card(world)
    send_all()
    deny(world.member("admin"), first, Decision(Approval.objects.get(pk=first).digest))
    service.messages.clear()
    assert not withdraw_next()
    second = tell_card(world)
    send_all()
    (message,) = service.messages
    assert message["close"] == [f"card-{first}"]
    assert message["title"]
    assert [each.notice.approval_id for each in Delivery.objects.filter(is_on_screen=True)] == [
        second
    ]


def test_the_notification_of_a_decided_card_is_removed_once(
    world: World, service: PushService, channel: Channel
) -> None:
    first, second = tell_card(world), tell_card(world)
    send_all()
    assert not withdraw_next(), "both wait"
    digest = Delivery.objects.get(notice__approval=first).notice.approval.digest  # type: ignore[union-attr]
    deny(world.member("admin"), first, Decision(digest))
    service.messages.clear()
    assert withdraw_next()
    assert service.messages == [{"close": [f"card-{first}"], "waiting": 1}]
    assert not withdraw_next()
    assert Delivery.objects.get(is_on_screen=True).notice.approval_id == second


def test_a_group_of_notifications_is_removed_with_its_last_card(
    world: World, service: PushService, channel: Channel
) -> None:
    cards = [tell_card(world), tell_card(world)]
    send_all()
    assert service.messages[0]["tag"] == "several"
    service.messages.clear()
    for pk in cards:
        deny(world.member("admin"), pk, Decision(Approval.objects.get(pk=pk).digest))
    assert withdraw_next()
    assert service.messages == [
        {"close": [f"card-{pk}" for pk in cards] + ["several"], "waiting": 0}
    ]


@pytest.fixture
def closed(world: World, service: PushService, channel: Channel) -> int:
    """Return the id of a card that was decided while the browser shows it."""
    pk = tell_card(world)
    send_all()
    deny_card(world, pk)
    service.messages.clear()
    return pk


def end_pauses() -> None:
    Delivery.objects.update(due_at=Now())


def test_removing_a_notification_is_retried_after_the_push_service_fails_once(
    service: PushService, channel: Channel, closed: int
) -> None:
    service.status = 503
    assert withdraw_next()
    assert list_on_screen(channel) == [closed]
    assert Channel.objects.get().problem == "127.0.0.1 responded with 503"
    service.status = 201
    assert not withdraw_next(), "it pauses"
    end_pauses()
    assert withdraw_next()
    assert service.messages == [{"close": [f"card-{closed}", "several"], "waiting": 0}]
    assert (list_on_screen(channel), Channel.objects.get().failing_since) == ([], None)


def test_a_withdrawal_that_is_given_up_is_sent_with_the_next_notification(
    world: World, service: PushService, channel: Channel, closed: int
) -> None:
    service.status = 503
    attempts = 0
    while withdraw_next():
        attempts += 1
        end_pauses()
    assert 1 < attempts < MAX_TRIES_TOGETHER
    service.status = 201
    newest = tell_card(world)
    send_all()
    assert [message.get("close") for message in service.messages] == [[f"card-{closed}"]]
    assert list_on_screen(channel) == [newest]


def test_a_withdrawal_whose_worker_dies_is_repeated_after_its_attempt_times_out(
    service: PushService, channel: Channel, closed: int
) -> None:
    assert _take_closed()  # and the worker is killed
    assert not withdraw_next(), "its attempt has not timed out"
    end_pauses()
    assert withdraw_next()
    assert [message["close"] for message in service.messages] == [[f"card-{closed}", "several"]]


def test_a_failed_withdrawal_keeps_the_pause_that_the_service_asks_for(
    world: World, service: PushService, channel: Channel, closed: int
) -> None:
    waiting = tell_card(world)
    service.status, service.retry_after = 503, "7200"
    assert withdraw_next()
    asked = timezone.now() + timedelta(seconds=7000 * timing().scale)
    assert {each.notice.approval_id for each in Delivery.objects.filter(due_at__gt=asked)} == {
        closed,
        waiting,
    }


def test_a_failed_notification_pauses_withdrawals_from_its_browser(
    world: World, service: PushService, channel: Channel, closed: int
) -> None:
    tell_card(world)
    service.status = 503
    assert send_next(ChannelKind.PUSH)
    assert not withdraw_next()


def test_a_browser_that_is_gone_is_forgotten_after_three_withdrawals(
    service: PushService, channel: Channel, closed: int
) -> None:
    service.status = 410
    for _ in range(3):
        assert Channel.objects.exists()
        end_pauses()
        assert withdraw_next()
    assert not Channel.objects.exists()


def test_a_card_that_closes_while_a_notification_is_sent_is_withdrawn_afterwards(
    world: World, service: PushService, channel: Channel
) -> None:
    closed = tell_card(world)
    send_all()
    tell_card(world)
    service.answering.clear()
    sender = threading.Thread(target=send_and_close)
    sender.start()
    assert service.hanging.acquire(timeout=20)
    deny_card(world, closed)
    service.answering.set()
    sender.join(20)
    service.messages.clear()
    assert withdraw_next()
    assert service.messages == [{"close": [f"card-{closed}"], "waiting": 1}]


def test_the_notification_of_an_expired_card_stays(
    world: World, service: PushService, channel: Channel
) -> None:
    card = world.card()
    Approval.objects.filter(pk=card.pk).update(status=ApprovalStatus.EXPIRED)
    add_notice(build_card_notice(NoticeKind.CARD_EXPIRED, card))
    spread_notices()
    send_all()
    assert [message["title"] for message in service.messages] == [
        "A card expired: Update a record, asked by Dana"
    ]
    assert not withdraw_next()
