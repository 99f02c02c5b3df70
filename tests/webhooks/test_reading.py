"""Webhook deliveries are created from committed events: once for each event, and never for events
from before the webhook was added."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.readers.reading import read_logs
from agents.runs.engine.transaction import run_transaction
from agents.runs.events import QuestionAnswered
from agents.runs.models import Event, EventType
from agents.webhooks.changes import forget_old_deliveries, remove_webhook
from agents.webhooks.models import Webhook, WebhookDelivery, WebhookKind
from tests.features import feature
from tests.gateway.conftest import make_key
from tests.gateway.test_asks import ask as make_ask
from tests.webhooks.conftest import add_webhook, send_all
from tests.webhooks.receiver import Receiver
from tests.workshop import Workshop, build_workshop, read_everything

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nothing_is_given_up(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test in which a row could not be read, because the reader would skip the row and hide
    the reason."""
    yield
    assert not [each for each in caplog.get_records("call") if "given up" in each.getMessage()]


@feature(
    "Agents elsewhere",
    "Webhooks are written after the commit of their fact, without a statement in the run's own transactions",
    "agents/webhooks/outbox.py",
)
def test_a_runs_transaction_does_not_contain_a_statement_about_webhooks(
    workshop: Workshop, receiver: Receiver
) -> None:
    add_webhook(workshop, receiver)
    run = workshop.submit()
    with CaptureQueriesContext(connection) as queries, run_transaction(run.pk) as tx:
        tx.publish(QuestionAnswered("1", "1", "yes", "dana"))
    assert queries.captured_queries
    assert not [one["sql"] for one in queries if "webhook" in one["sql"]]


def test_a_batch_of_events_needs_a_constant_number_of_sql_statements(
    workshop: Workshop, receiver: Receiver
) -> None:
    add_webhook(workshop, receiver)
    counts = []
    for runs in (1, 1, 5):  # the first reading creates the cursor
        for _ in range(runs):
            workshop.submit()
        with CaptureQueriesContext(connection) as queries:
            read_logs()
        counts.append(len(queries))
    assert counts[1] == counts[2]
    assert WebhookDelivery.objects.count() == 7


def test_an_event_that_was_rolled_back_is_not_sent(workshop: Workshop, receiver: Receiver) -> None:
    add_webhook(workshop, receiver)
    run = workshop.submit()
    read_everything()
    before = WebhookDelivery.objects.count()

    class LostError(Exception):
        pass

    def publish_and_fail() -> None:
        with run_transaction(run.pk) as tx:
            tx.publish(QuestionAnswered("1", "1", "yes", "dana"))
            tx.write()
            raise LostError

    with pytest.raises(LostError):
        publish_and_fail()
    read_everything()
    assert WebhookDelivery.objects.count() == before


def test_a_new_webhook_does_not_get_past_facts(workshop: Workshop, receiver: Receiver) -> None:
    workshop.submit()
    add_webhook(workshop, receiver, kinds=[WebhookKind.RUN_STARTED])
    read_everything()
    assert not WebhookDelivery.objects.exists()
    later = workshop.submit()
    read_everything()
    assert WebhookDelivery.objects.get().run_id == later.pk


def test_a_fact_has_the_time_at_which_it_happened(workshop: Workshop, receiver: Receiver) -> None:
    add_webhook(workshop, receiver, kinds=[WebhookKind.RUN_STARTED])
    happened = workshop.submit().events.get().created_at
    read_everything()
    told = WebhookDelivery.objects.get()
    assert (told.created_at, told.wanted_at) == (happened, happened)


def test_an_event_whose_delivery_was_created_by_an_older_process_is_sent_once(
    workshop: Workshop, receiver: Receiver
) -> None:
    webhook, _ = add_webhook(workshop, receiver, kinds=[WebhookKind.RUN_STARTED])
    older, newer = workshop.submit(), workshop.submit()
    WebhookDelivery.objects.create(webhook=webhook, kind="run.started", run_id=older.pk, seq=1)
    read_everything()
    told = WebhookDelivery.objects.order_by("run_id").values_list("run_id", flat=True)
    assert list(told) == [older.pk, newer.pk]


def test_an_approval_undone_before_its_event_is_read_is_not_sent(
    workshop: Workshop, receiver: Receiver
) -> None:
    add_webhook(workshop, receiver, kinds=[WebhookKind.ASK_ANSWERED])
    asked = make_ask(make_key(workshop))
    workshop.undo(workshop.approve(workshop.card(asked.run), grace_s=30))
    workshop.approve(workshop.card(asked.run))
    read_everything()
    told = WebhookDelivery.objects.get()
    approved = Event.objects.filter(run=asked.run, type=EventType.APPROVAL_DECIDED).latest("seq")
    assert (told.seq, told.previous_seq) == (approved.seq, None)


def test_only_active_webhooks_of_the_organization_get_a_fact(
    workshop: Workshop, receiver: Receiver
) -> None:
    add_webhook(build_workshop("globex"), receiver)
    ours, _ = add_webhook(workshop, receiver)
    switched_off, _ = add_webhook(workshop, receiver)
    Webhook.objects.filter(pk=switched_off.pk).update(is_active=False)
    workshop.submit()
    read_everything()
    assert set(WebhookDelivery.objects.values_list("webhook", flat=True)) == {ours.pk}


def test_a_webhook_that_was_removed_in_the_meantime_does_not_block_other_webhooks(
    workshop: Workshop, receiver: Receiver
) -> None:
    webhook, _ = add_webhook(workshop, receiver)
    workshop.submit()
    read_everything()
    remove_webhook(workshop.admin, webhook.pk)
    add_webhook(workshop, receiver)
    workshop.submit()
    assert send_all() == 1
    assert forget_old_deliveries() == 1
