"""Many workers send in parallel: only one delivery of a webhook at a time, and a webhook does not
delay another webhook."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.deliveries import engine
from agents.deliveries.outboxes import Outbox
from agents.webhooks import sending
from agents.webhooks.models import Webhook, WebhookDelivery, WebhookKind
from tests.awaiting import await_that
from tests.webhooks.conftest import add_webhook, send_all, send_next_delivery
from tests.webhooks.receiver import Receiver
from tests.workshop import Workshop, beside, read_everything

STARTED = [WebhookKind.RUN_STARTED]
pytestmark = pytest.mark.django_db(transaction=True)


def test_only_one_delivery_of_a_webhook_is_sent_at_a_time(
    workshop: Workshop, receiver: Receiver
) -> None:
    add_webhook(workshop, receiver, kinds=STARTED)
    workshop.submit()
    workshop.submit()
    read_everything()
    receiver.hold()
    with beside(send_next_delivery):
        await_that(lambda: len(receiver.received) == 1, "the first one is on its way")
        assert not send_next_delivery()
        receiver.release()
    assert send_next_delivery()


def test_a_webhook_locked_by_another_worker_does_not_delay_other_webhooks(
    workshop: Workshop, receiver: Receiver
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no locks of rows")
    busy, _ = add_webhook(workshop, receiver, kinds=STARTED)
    other, _ = add_webhook(workshop, receiver, kinds=STARTED)
    workshop.submit()
    read_everything()
    busy.deliveries.update(due_at=Now() - timedelta(minutes=1))
    held, sent = threading.Event(), threading.Event()

    def take() -> None:
        with transaction.atomic():
            Webhook.objects.select_for_update(no_key=True).get(pk=busy.pk)
            held.set()
            assert sent.wait(20)

    with beside(take):
        assert held.wait(20)
        assert send_next_delivery()
        assert not send_next_delivery()
        sent.set()
    assert WebhookDelivery.objects.get(status="sent").webhook == other
    assert send_next_delivery(), "control"


def test_the_webhook_with_the_longest_due_delivery_comes_first(
    workshop: Workshop, receiver: Receiver
) -> None:
    webhooks = [add_webhook(workshop, receiver, kinds=STARTED)[0] for _ in range(2)]
    workshop.submit()
    read_everything()
    for webhook, due_s in zip(webhooks, (5, 50), strict=True):
        webhook.deliveries.update(due_at=Now() - timedelta(seconds=due_s))
    assert send_next_delivery()
    assert WebhookDelivery.objects.get(status="sent").webhook == webhooks[1]


def test_the_next_delivery_is_not_sent_early_if_another_worker_sends_the_due_delivery(
    workshop: Workshop, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_webhook(workshop, receiver, kinds=STARTED)
    workshop.submit()
    workshop.submit()
    read_everything()
    later = WebhookDelivery.objects.latest("pk")
    WebhookDelivery.objects.filter(pk=later.pk).update(due_at=Now() + timedelta(hours=1))
    lock = engine._find_first

    def lock_late(outbox: Outbox[Any, Any], rows: QuerySet[Any]) -> object:
        monkeypatch.setattr(engine, "_find_first", lock)
        assert send_next_delivery(), "the other worker"
        return lock(outbox, rows)

    monkeypatch.setattr(engine, "_find_first", lock_late)
    assert not send_next_delivery()
    assert len(receiver.received) == 1


def test_a_delivery_is_not_sent_while_another_worker_holds_the_webhook(
    workshop: Workshop, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_webhook(workshop, receiver, kinds=STARTED)
    workshop.submit()
    read_everything()
    lock = engine._find_first

    def lock_late(outbox: Outbox[Any, Any], rows: QuerySet[Any]) -> object:
        Webhook.objects.update(busy_until=Now() + timedelta(minutes=1))  # as the other worker does
        return lock(outbox, rows)

    monkeypatch.setattr(engine, "_find_first", lock_late)
    assert not send_next_delivery()
    assert not receiver.received


def test_the_end_of_an_attempt_releases_only_the_webhook_of_that_attempt(
    workshop: Workshop, receiver: Receiver
) -> None:
    webhook, _ = add_webhook(workshop, receiver, kinds=STARTED)
    other, _ = add_webhook(workshop, receiver, kinds=[WebhookKind.RUN_FAILED])
    workshop.submit()
    read_everything()
    receiver.hold()
    with beside(send_next_delivery):
        await_that(lambda: len(receiver.received) == 1, "the delivery is on its way")
        webhook.refresh_from_db()
        other.refresh_from_db()
        assert other.busy_until is None
        Webhook.objects.filter(pk=other.pk).update(busy_until=webhook.busy_until)
        receiver.release()
    assert list(Webhook.objects.filter(busy_until=None)) == [webhook]


def test_a_response_clears_only_the_failures_of_the_webhook_that_received_it(
    workshop: Workshop, receiver: Receiver
) -> None:
    failing, _ = add_webhook(workshop, receiver, kinds=[WebhookKind.RUN_FAILED])
    add_webhook(workshop, receiver, kinds=STARTED)
    Webhook.objects.update(failures=3, failing_since=Now())
    workshop.submit()
    assert send_all() == 1
    assert sorted(Webhook.objects.values_list("failures", flat=True)) == [0, 3]
    assert Webhook.objects.get(pk=failing.pk).failing_since is not None


def test_the_last_response_decides_whether_a_receiver_is_slow(
    workshop: Workshop, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_webhook(workshop, receiver, kinds=STARTED)
    for took_ms, is_slow in ((sending.SLOW_MS, False), (sending.SLOW_MS + 1, True)):
        monkeypatch.setattr(sending, "_measure", lambda _, took_ms=took_ms: took_ms)
        workshop.submit()
        send_all()
        assert Webhook.objects.get().is_slow is is_slow


def test_a_sender_for_quick_receivers_skips_slow_and_failing_receivers(
    workshop: Workshop, receiver: Receiver
) -> None:
    add_webhook(workshop, receiver, kinds=STARTED)
    Webhook.objects.update(is_slow=True)
    workshop.submit()
    read_everything()
    assert not send_next_delivery(only_quick=True)
    Webhook.objects.update(is_slow=False, failing_since=Now())
    assert not send_next_delivery(only_quick=True)
    Webhook.objects.update(failing_since=None)
    assert send_next_delivery(only_quick=True)


def test_a_lost_attempt_is_repeated(workshop: Workshop, receiver: Receiver) -> None:
    add_webhook(workshop, receiver, kinds=STARTED)
    workshop.submit()
    read_everything()
    Webhook.objects.update(busy_until=Now() + timedelta(minutes=1))
    assert not send_next_delivery()
    Webhook.objects.update(busy_until=Now() - timedelta(seconds=1))
    assert send_next_delivery()
