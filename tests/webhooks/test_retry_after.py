"""A receiver that asks Gadget to wait gets no requests for as long as it asks, within the limits of
pauses and rests."""

from __future__ import annotations

import pytest
from django.utils import timezone

from agents.runs.engine.timing import timing
from agents.webhooks.models import Webhook, WebhookDelivery, WebhookKind
from tests.webhooks.conftest import add_webhook, send_all
from tests.webhooks.receiver import Receiver
from tests.workshop import Workshop

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("retry_after", "waits_s", "rests_s"),
    [("600", 600, 600), ("", 15, 15), ("soon", 15, 15), ("9" * 9, 4 * 3600, 900)],
)
def test_a_receiver_that_asks_gadget_to_wait_gets_no_requests_during_that_time(
    workshop: Workshop, receiver: Receiver, retry_after: str, waits_s: int, rests_s: int
) -> None:
    add_webhook(workshop, receiver, kinds=[WebhookKind.RUN_STARTED])
    workshop.submit()
    receiver.status, receiver.retry_after = 429, retry_after
    assert send_all() == 1
    rests_until = Webhook.objects.get().rests_until
    assert rests_until is not None
    found = (WebhookDelivery.objects.get().due_at, rests_until)
    waits = [(until - timezone.now()).total_seconds() / timing().scale for until in found]
    assert waits == pytest.approx([waits_s, rests_s], abs=10)
