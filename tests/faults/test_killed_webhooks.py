"""kill -9 of a worker while it delivers to webhooks: every delivery arrives, and each kill repeats
only the interrupted ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from django.db.models import Sum
from pytest_django import DjangoDbBlocker, Settings

from agents.runs.models import Event, RunStatus
from agents.webhooks.changes import WebhookTerms, make_webhook
from agents.webhooks.models import WebhookDelivery, WebhookDeliveryStatus, WebhookKind
from gadget_site.private_hosts import LOOPBACK
from tests.awaiting import await_that
from tests.emptying import empty_tables
from tests.faults.site import Site, read
from tests.features import feature
from tests.probes import RECORDER_VARIABLE
from tests.processes import Installation
from tests.recorder import Recorder
from tests.webhooks.receiver import Receiver, open_receiver

TIMING_SCALE = 0.25
"""At this scale, an attempt is treated as lost only after its request's time limit, so a delivery
is repeated only after a kill."""
KILLS = 3
RUNS = 4


@pytest.fixture(scope="module")
def installation(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, recorder: Recorder
) -> Iterator[Installation]:
    """Run Gadget with permission to reach receivers on this machine."""
    variables = {RECORDER_VARIABLE: recorder.url, "ALLOWED_PRIVATE_HOSTS": "127.0.0.1"}
    with Installation(timing_scale=TIMING_SCALE, variables=variables, is_forked=True) as running:
        yield running
    with django_db_blocker.unblock():
        empty_tables()


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    settings.ALLOWED_PRIVATE_HOSTS = LOOPBACK
    with open_receiver() as opened:
        yield opened


@feature("Agents elsewhere", "Kills of workers lose no delivery", "agents/deliveries/engine.py")
def test_everything_is_delivered_and_a_kill_repeats_only_interrupted_deliveries(
    site: Site, receiver: Receiver
) -> None:
    terms = WebhookTerms("Other system", receiver.url, WebhookKind.values)
    _, secret = make_webhook(site.workshop.admin, terms)
    receiver.hold()
    site.have_workers(1)
    runs = [site.submit(f"Read {number}", read(f"read{number}")) for number in range(RUNS)]
    for number, run in enumerate(runs):
        site.recorder.await_arrival(f"read{number}")
        site.await_status(run, RunStatus.SUCCEEDED)
    for _ in range(KILLS):
        arrived = len(receiver.received)
        await_that(lambda: len(receiver.received) > arrived, "a delivery is on its way", 120)  # noqa: B023
        site.workers()[0].kill()
        receiver.release()
        receiver.hold()
        site.have_workers(1)
    receiver.release()
    sent = WebhookDelivery.objects.filter(status=WebhookDeliveryStatus.SENT)
    await_that(lambda: sent.count() == 3 * RUNS, "everything is delivered", 120)
    told = Counter(one.headers["webhook-id"] for one in receiver.received)
    deliveries = WebhookDelivery.objects.all()
    assert told.keys() == {one.message_id for one in deliveries}
    assert {one.status for one in deliveries} == {WebhookDeliveryStatus.SENT}
    assert len(deliveries) == 3 * RUNS, "run started, call executed, run finished"
    tries = deliveries.aggregate(all=Sum("tries"))["all"]
    # Each kill costs one attempt, and a delivery that the receiver holds meanwhile may reach its
    # time limit.
    assert sum(told.values()) <= tries <= len(deliveries) + 2 * KILLS
    for one in receiver.received:
        one.verify(secret)
    numbers = Event.objects.filter(run__in=runs).values_list("run_id", "seq")
    assert {(int(one.data["run_id"]), one.data["seq"]) for one in receiver.received} <= set(numbers)
