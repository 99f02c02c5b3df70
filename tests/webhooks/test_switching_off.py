"""Webhooks whose receivers fail for a long time are switched off."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from agents.accounts.models import AuditEntry
from agents.accounts.notice_facts import NoticeKind
from agents.deliveries.changes import send_again
from agents.deliveries.channels.webhook import GONE
from agents.notices.audience import Audience
from agents.notices.models import Notice
from agents.runs.engine.timing import timing
from agents.webhooks import changes
from agents.webhooks.models import Webhook, WebhookDelivery, WebhookDeliveryStatus, WebhookKind
from agents.webhooks.sending import KIND, MIN_FAILURES
from tests.features import feature
from tests.webhooks.conftest import add_webhook, send_all
from tests.webhooks.receiver import Receiver
from tests.workshop import Workshop, read_everything

STARTED = [WebhookKind.RUN_STARTED]
THREE_DAYS = timedelta(days=3)


class TestSwitchingOff:
    def fail_long(self, failures: int, time: timedelta) -> None:
        Webhook.objects.update(failures=failures - 1, failing_since=Now() - time * timing().scale)

    @feature(
        "Agents elsewhere",
        "A receiver that fails for three days is switched off, and admins are notified",
        "agents/webhooks/sending.py",
    )
    def test_happens_after_three_days_of_failures(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        webhook, _ = add_webhook(workshop, receiver, kinds=STARTED)
        other, _ = add_webhook(
            workshop, receiver, kinds=STARTED, address="https://example.com/other"
        )
        Webhook.objects.filter(pk=other.pk).update(rests_until=Now() + timedelta(days=1))
        workshop.submit()
        workshop.submit()
        receiver.status = 500
        self.fail_long(MIN_FAILURES, THREE_DAYS)
        send_all()
        webhook.refresh_from_db()
        other.refresh_from_db()
        assert [each.is_active for each in (webhook, other)] == [False, True]
        assert "failed for three days" in webhook.off_reason
        assert {one.status for one in webhook.deliveries.all()} == {WebhookDeliveryStatus.FAILED}
        assert {one.status for one in other.deliveries.all()} == {WebhookDeliveryStatus.WAITING}
        read_everything()
        notice = Notice.objects.get(kind=NoticeKind.WEBHOOK_OFF)
        assert notice.detail == webhook.name
        told = Audience.load(workshop.organization, [notice]).find(notice)
        assert told == [workshop.admin], "admins are told, and nobody else"
        assert AuditEntry.objects.filter(action="webhook_switched_off").count() == 1

    @pytest.mark.parametrize(
        ("failures", "time"),
        [(MIN_FAILURES - 1, THREE_DAYS), (MIN_FAILURES, THREE_DAYS - timedelta(hours=1))],
    )
    def test_does_not_happen_earlier(
        self, workshop: Workshop, receiver: Receiver, failures: int, time: timedelta
    ) -> None:
        add_webhook(workshop, receiver, kinds=STARTED)
        workshop.submit()
        receiver.status = 500
        self.fail_long(failures, time)
        send_all()
        assert Webhook.objects.get().is_active

    def test_happens_immediately_for_a_receiver_that_is_gone(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        add_webhook(workshop, receiver, kinds=STARTED)
        workshop.submit()
        receiver.status = GONE
        send_all()
        assert "410" in Webhook.objects.get().off_reason
        read_everything()
        assert Notice.objects.filter(kind=NoticeKind.WEBHOOK_OFF).exists()

    def test_can_be_undone_after_which_a_failed_delivery_can_be_sent_again(
        self, workshop: Workshop, receiver: Receiver
    ) -> None:
        webhook, _ = add_webhook(workshop, receiver, kinds=STARTED)
        workshop.submit()
        receiver.status = GONE
        send_all()
        changes.switch_webhook(workshop.admin, webhook.pk, is_active=True)
        receiver.status = 200
        failed = WebhookDelivery.objects.get()
        send_again(workshop.admin, KIND, failed.pk)
        assert send_all() == 1
        assert WebhookDelivery.objects.get().status == WebhookDeliveryStatus.SENT
