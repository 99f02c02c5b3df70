"""Deliveries are signed, sent at least once and only through the network client, and retried if a
receiver fails."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from pytest_django import Settings
from standardwebhooks import WebhookVerificationError

from agents.accounts.notice_facts import NoticeKind
from agents.deliveries.changes import send_again
from agents.deliveries.channels import webhook as channel
from agents.deliveries.channels.webhook import GONE
from agents.deliveries.engine import FIRST_PAUSE_S, find_pause
from agents.gateway.asks import AskedRequest, submit
from agents.notices.models import Notice
from agents.platform.log_context import correlate, restoring_correlation
from agents.runs.engine.timing import timing
from agents.runs.models import Run
from agents.webhooks import changes, sending
from agents.webhooks.models import (
    Webhook,
    WebhookDelivery,
    WebhookDeliveryStatus,
    WebhookKind,
    WebhookSecret,
)
from agents.webhooks.sending import KIND, MIN_FAILURES
from gadget_site.private_hosts import LOOPBACK
from tests.awaiting import await_that
from tests.features import feature
from tests.gateway.conftest import make_key
from tests.webhooks.conftest import add_webhook, send_all, send_next_delivery
from tests.webhooks.receiver import Receiver
from tests.workshop import Workshop, beside, read_everything
from tools.contract import Level, PrivateHosts
from tools.contract.correlation import get_correlation_id

STARTED = [WebhookKind.RUN_STARTED]
THREE_DAYS = timedelta(days=3)


def make_due() -> None:
    """End the pauses of all deliveries and the rests of all webhooks."""
    WebhookDelivery.objects.update(due_at=Now())
    Webhook.objects.update(rests_until=None)


def test_a_delivery_contains_the_correlation_id_of_its_run(
    workshop: Workshop, receiver: Receiver
) -> None:
    add_webhook(workshop, receiver, kinds=STARTED)
    with restoring_correlation():
        correlate("order-4711")
        workshop.submit()
        correlate("")
        alone, deleted = workshop.submit(), workshop.submit()
    read_everything()
    WebhookDelivery.objects.filter(run_id=deleted.pk).update(run_id=Run.objects.latest("pk").pk + 1)
    before = get_correlation_id()
    assert send_all() == 3
    carried = [one.headers.get("x-request-id") for one in receiver.received]
    assert carried == ["order-4711", f"run-{alone.pk}", None]
    assert get_correlation_id() == before, "the thread sends for other runs next"


class TestSignature:
    def test_is_accepted_by_the_standards_library(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        webhook, secret = add_webhook(workshop, receiver, kinds=STARTED)
        add_webhook(workshop, receiver, kinds=[WebhookKind.RUN_FAILED])
        workshop.submit()
        send_all()
        (one,) = receiver.received
        one.verify(secret)
        assert len(one.headers["webhook-signature"].split()) == 1, "no other webhook's secret signs"
        assert one.headers["webhook-id"] == WebhookDelivery.objects.get(webhook=webhook).message_id
        one.body += b" "
        with pytest.raises(WebhookVerificationError):
            one.verify(secret)

    @feature(
        "Agents elsewhere",
        "Deliveries are signed as Standard Webhooks says, and two secrets are valid for a day after a change",
        "agents/deliveries/channels/webhook.py",
    )
    def test_uses_the_old_and_the_new_secret_for_a_day(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        webhook, old = add_webhook(workshop, receiver, kinds=STARTED)
        _, new = changes.rotate_secret(workshop.admin, webhook.pk)
        workshop.submit()
        send_all()
        receiver.received[0].verify(old)
        receiver.received[0].verify(new)
        WebhookSecret.objects.exclude(valid_until=None).update(
            valid_until=Now() - timedelta(seconds=1)
        )
        workshop.submit()
        send_all()
        receiver.received[1].verify(new)
        with pytest.raises(WebhookVerificationError):
            receiver.received[1].verify(old)

    def test_is_impossible_if_the_secret_is_undecryptable_so_nothing_is_sent(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        webhook, _ = add_webhook(workshop, receiver, kinds=STARTED)
        WebhookSecret.objects.filter(webhook=webhook).delete()
        workshop.submit()
        send_all()
        assert not receiver.received
        assert "cannot be read" in WebhookDelivery.objects.get().problem

    def test_that_fails_inside_gadget_is_not_counted_as_a_failure_of_the_receiver(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        webhook, _ = add_webhook(workshop, receiver, kinds=STARTED)
        secret = WebhookSecret.objects.get()
        secret.secret = "whsec_?"
        secret.save()
        workshop.submit()
        assert send_all() == 1
        assert not receiver.received
        webhook.refresh_from_db()
        assert (webhook.failures, webhook.failing_since, webhook.rests_until) == (0, None, None)
        delivery = WebhookDelivery.objects.get()
        assert (delivery.status, "the log of the workers" in delivery.problem) == ("waiting", True)
        assert delivery.due_at > delivery.created_at

    def test_of_a_late_attempt_does_not_release_a_webhook_that_another_worker_holds(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        webhook, _ = add_webhook(workshop, receiver, kinds=STARTED)
        workshop.submit()
        receiver.hold()
        with beside(send_all):
            await_that(lambda: bool(receiver.received), "the delivery is on its way")
            Webhook.objects.update(busy_until=Now() + timedelta(minutes=1))
            receiver.release()
        webhook.refresh_from_db()
        assert webhook.busy_until is not None


class TestConcurrentChanges:
    @pytest.mark.parametrize("status", [200, GONE, 500])
    def test_by_an_admin_are_not_overwritten_by_a_response(
        self, workshop: Workshop, receiver: Receiver, status: int
    ) -> None:
        webhook, _ = add_webhook(workshop, receiver, kinds=STARTED)
        workshop.submit()
        receiver.status = status
        receiver.hold()
        with beside(send_all):
            await_that(lambda: bool(receiver.received), "the delivery is on its way")
            changes.switch_webhook(workshop.admin, webhook.pk, is_active=False)
            due_at = WebhookDelivery.objects.get().due_at
            receiver.release()
        webhook.refresh_from_db()
        delivery = WebhookDelivery.objects.get()
        assert (delivery.answer_status, delivery.status) == (status, WebhookDeliveryStatus.FAILED)
        assert (delivery.problem, delivery.due_at) == ("the webhook was switched off", due_at)
        assert (webhook.off_reason, Notice.objects.filter(kind=NoticeKind.WEBHOOK_OFF).count()) == (
            "",
            0,
        )

    @pytest.mark.parametrize(("status", "ends_as"), [(200, "sent"), (500, "waiting")])
    def test_let_only_a_success_of_an_earlier_attempt_count(
        self, workshop: Workshop, receiver: Receiver, status: int, ends_as: str
    ) -> None:
        add_webhook(workshop, receiver, kinds=STARTED)
        workshop.submit()
        receiver.status = status
        receiver.hold()
        read_everything()
        with beside(send_next_delivery):
            await_that(lambda: bool(receiver.received), "the delivery is on its way")
            WebhookDelivery.objects.update(tries=2)
            receiver.release()
        delivery = WebhookDelivery.objects.get()
        assert (delivery.status, delivery.problem) == (ends_as, ""), (
            "the later try writes its own problem"
        )

    def test_of_failures_are_counted_separately_for_each_webhook(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver, kinds=[WebhookKind.RUN_FAILED])
        Webhook.objects.update(failures=MIN_FAILURES, failing_since=Now() - THREE_DAYS)
        add_webhook(workshop, receiver, kinds=STARTED)
        workshop.submit()
        receiver.status = 500
        send_all()
        assert [each.failures for each in Webhook.objects.order_by("pk")] == [MIN_FAILURES, 1]
        assert [each.is_active for each in Webhook.objects.all()] == [True, True]

    def test_of_problems_are_recorded_separately_for_each_delivery(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver, kinds=STARTED)
        for status in (400, 404):
            workshop.submit()
            receiver.status = status
            assert send_all() == 1
        assert [each.problem[-3:] for each in WebhookDelivery.objects.order_by("pk")] == [
            "400",
            "404",
        ]
        assert [each.answer_status for each in WebhookDelivery.objects.order_by("pk")] == [400, 404]


class TestDelivery:
    def test_records_status_and_duration(self, workshop: Workshop, receiver: Receiver) -> None:
        add_webhook(workshop, receiver, kinds=STARTED)
        workshop.submit()
        workshop.submit()
        read_everything()
        assert send_next_delivery()
        delivery, other = WebhookDelivery.objects.order_by("pk")
        assert (other.status, other.tries, other.answer_status) == (
            WebhookDeliveryStatus.WAITING,
            0,
            None,
        )
        assert (delivery.status, delivery.tries, delivery.answer_status) == (
            WebhookDeliveryStatus.SENT,
            1,
            200,
        )
        assert None not in (delivery.duration_ms, delivery.ended_at)

    @pytest.mark.parametrize("status", [0, 302, 400, 404, 500, 503])
    def test_is_retried_with_the_same_id_after_a_failure(
        self, workshop: Workshop, receiver: Receiver, status: int
    ) -> None:
        add_webhook(workshop, receiver, kinds=STARTED)
        workshop.submit()
        receiver.status, receiver.location = status, receiver.url if status == 302 else ""
        assert send_all() == 1, "a failed delivery pauses"
        assert WebhookDelivery.objects.get().status == WebhookDeliveryStatus.WAITING
        receiver.status = 200
        make_due()
        assert send_all() == 1
        assert len({one.headers["webhook-id"] for one in receiver.received}) == 1
        assert [one.path for one in receiver.received] == ["/events", "/events"]
        webhook = Webhook.objects.get()
        assert (webhook.failures, webhook.failing_since, webhook.problem) == (0, None, "")

    def test_does_not_follow_a_redirect(self, workshop: Workshop, receiver: Receiver) -> None:
        add_webhook(workshop, receiver, kinds=STARTED)
        workshop.submit()
        receiver.status, receiver.location = 307, f"{receiver.url}/elsewhere"
        send_all()
        assert [one.path for one in receiver.received] == ["/events"]
        assert WebhookDelivery.objects.get().answer_status == 307

    def test_pauses_for_up_to_four_hours_and_its_webhook_rests_for_up_to_fifteen_minutes(
        self,
    ) -> None:
        pauses = [
            find_pause(tries, sending.LONGEST_PAUSE_S).total_seconds() for tries in range(1, 9)
        ]
        scale = pauses[0] / FIRST_PAUSE_S
        assert [pause / scale for pause in pauses] == [15, 60, 240, 960, 3840, 14400, 14400, 14400]
        assert find_pause(50, sending.LONGEST_REST_S).total_seconds() / scale == 900

    def test_to_an_unreachable_receiver_makes_the_webhook_rest(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver, kinds=STARTED)
        for _ in range(5):
            workshop.submit()
        receiver.status = 503
        assert send_all() == 1, "the others wait, too"
        receiver.status = 200
        make_due()
        assert send_all() == 5

    @pytest.mark.parametrize(
        ("status", "rests"), [(400, False), (404, False), (408, True), (429, True), (500, True)]
    )
    def test_that_is_refused_makes_the_webhook_rest_only_after_certain_statuses(
        self, workshop: Workshop, receiver: Receiver, status: int, rests: bool
    ) -> None:
        add_webhook(workshop, receiver, kinds=STARTED)
        workshop.submit()
        workshop.submit()
        receiver.status = status
        assert send_all() == (1 if rests else 2)

    def test_succeeds_despite_a_long_response(self, workshop: Workshop, receiver: Receiver) -> None:
        receiver.answer = b"x" * 100_000
        add_webhook(workshop, receiver, kinds=STARTED)
        workshop.submit()
        send_all()
        assert WebhookDelivery.objects.get().status == WebhookDeliveryStatus.SENT

    def test_that_cannot_be_built_does_not_prevent_deliveries_to_other_webhooks(
        self, workshop: Workshop, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add_webhook(workshop, receiver, kinds=[WebhookKind.ASK_ANSWERED])
        ask, _ = submit(make_key(workshop), AskedRequest("deploy", {"version": "1"}, Level.WRITE))
        workshop.deny(workshop.card(ask.run))
        add_webhook(workshop, receiver, kinds=STARTED)
        workshop.submit()
        monkeypatch.setattr(sending, "load_state", lambda _: 1 / 0)
        send_all()
        assert receiver.kinds == ["run.started"]
        failed = WebhookDelivery.objects.get(kind=WebhookKind.ASK_ANSWERED)
        assert (failed.status, "log of the workers" in failed.problem) == (
            WebhookDeliveryStatus.WAITING,
            True,
        )

    def test_is_tried_for_three_more_days_when_it_is_sent_again(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver, kinds=STARTED)
        workshop.submit()
        send_all()
        WebhookDelivery.objects.update(created_at=Now() - THREE_DAYS, wanted_at=Now() - THREE_DAYS)
        send_again(workshop.admin, KIND, WebhookDelivery.objects.get().pk)
        receiver.status = 500
        send_all()
        assert WebhookDelivery.objects.get().status == WebhookDeliveryStatus.WAITING

    def test_is_still_tried_on_the_third_day(self, workshop: Workshop, receiver: Receiver) -> None:
        add_webhook(workshop, receiver, kinds=STARTED)
        workshop.submit()
        receiver.status = 500
        read_everything()
        WebhookDelivery.objects.update(
            wanted_at=Now() - (THREE_DAYS - timedelta(hours=1)) * _scale()
        )
        send_all()
        assert WebhookDelivery.objects.get().status == WebhookDeliveryStatus.WAITING
        make_due()
        receiver.status = 200
        send_all()
        assert WebhookDelivery.objects.get().status == WebhookDeliveryStatus.SENT

    def test_is_given_up_after_three_days(self, workshop: Workshop, receiver: Receiver) -> None:
        add_webhook(workshop, receiver, kinds=STARTED)
        workshop.submit()
        receiver.status = 500
        read_everything()
        WebhookDelivery.objects.update(wanted_at=Now() - THREE_DAYS)
        send_all()
        delivery = WebhookDelivery.objects.get()
        assert (delivery.status, delivery.problem) == (
            WebhookDeliveryStatus.FAILED,
            "the receiver responded with 500",
        )

    @feature(
        "Agents elsewhere",
        "Deliveries reach no private address unless the installation allows it, and follow no redirect",
        "agents/deliveries/channels/webhook.py",
    )
    def test_to_a_private_address_is_refused_unless_the_installation_allows_it(
        self, workshop: Workshop, receiver: Receiver, settings: Settings
    ) -> None:
        add_webhook(workshop, receiver, kinds=STARTED)
        settings.ALLOWED_PRIVATE_HOSTS = PrivateHosts()
        workshop.submit()
        send_all()
        assert not receiver.received
        assert "private" in WebhookDelivery.objects.get().problem

    @pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
    def test_to_a_name_or_address_that_resolves_to_a_private_address_is_refused(
        self, workshop: Workshop, receiver: Receiver, settings: Settings, host: str
    ) -> None:
        settings.ALLOWED_PRIVATE_HOSTS = LOOPBACK
        port = receiver.url.rpartition(":")[2].partition("/")[0]
        add_webhook(workshop, receiver, kinds=STARTED, address=f"https://{host}:{port}/events")
        settings.ALLOWED_PRIVATE_HOSTS = PrivateHosts()
        workshop.submit()
        send_all()
        delivery = WebhookDelivery.objects.get()
        assert (delivery.answer_status, receiver.received) == (None, [])
        assert "private" in delivery.problem or "this machine" in delivery.problem

    def test_to_a_receiver_that_hangs_is_abandoned(
        self, workshop: Workshop, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add_webhook(workshop, receiver, kinds=STARTED)
        workshop.submit()
        monkeypatch.setattr(channel, "LIMITS", replace(channel.LIMITS, total_s=0.3))
        receiver.hold()
        assert send_all() == 1
        delivery = WebhookDelivery.objects.get()
        assert (delivery.status, delivery.answer_status) == (WebhookDeliveryStatus.WAITING, None)
        assert Webhook.objects.get().busy_until is None

    def test_that_fails_unexpectedly_is_counted_as_a_failed_attempt(
        self, workshop: Workshop, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add_webhook(workshop, receiver, kinds=STARTED)
        workshop.submit()
        with monkeypatch.context() as patched:
            patched.setattr(channel, "sign", lambda *_: 1 / 0)
            send_all()
        assert "the log of the workers says why" in WebhookDelivery.objects.get().problem
        make_due()
        assert send_all() == 1


def _scale() -> float:
    return timing().scale
