"""kill -9 of a worker while it reads events: the consequences of each event are written once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from agents.notices.models import Notice
from agents.readers.models import ReaderCursor
from agents.readers.reading import READERS
from agents.runs.descriptions import describe
from agents.runs.event_facts import FactKind
from agents.runs.models import Event, EventType, RunStatus
from agents.webhooks.changes import WebhookTerms, make_webhook
from agents.webhooks.models import WebhookDelivery, WebhookKind
from tests.awaiting import await_that
from tests.faults.site import Site, read
from tests.features import feature
from tests.workshop import beside

KILLS = 3
_IS_BLOCKED = (
    "SELECT 1 FROM pg_locks WHERE relation = 'webhooks_webhookdelivery'::regclass AND NOT granted"
)


@contextmanager
def holding_readers() -> Iterator[None]:
    """Block readers in the middle of their transaction, before they write deliveries; on SQLite,
    which cannot lock a table, block nothing."""
    if connection.vendor != "postgresql":
        yield
        return
    is_held, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE webhooks_webhookdelivery IN EXCLUSIVE MODE")
            is_held.set()
            assert may_end.wait(60)

    with beside(hold):
        assert is_held.wait(60)
        yield
        may_end.set()


def is_blocked() -> bool:
    """Return True if a reader waits in the middle of its transaction; always True on SQLite."""
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute(_IS_BLOCKED)
        return cursor.fetchone() is not None


def is_all_read() -> bool:
    cursors = {each.reader: each for each in ReaderCursor.objects.all()}
    return all(
        reader.name in cursors
        and not cursors[reader.name].holes
        and not reader.select().filter(pk__gt=cursors[reader.name].position).exists()
        for reader in READERS
    )


@feature(
    "Agents elsewhere",
    "A killed reader of events neither loses nor repeats a delivery or a notice",
    "agents/readers/reading.py",
)
def test_nothing_is_lost_or_repeated_if_a_reader_of_events_is_killed(site: Site) -> None:
    make_webhook(
        site.workshop.admin, WebhookTerms("Other", "https://example.com/x", WebhookKind.values)
    )
    for number in range(KILLS):
        site.have_workers(1)
        site.recorder.hold(f"read{number}")
        run = site.submit(f"Read {number}", read(f"read{number}"))
        site.recorder.await_arrival(f"read{number}")
        with holding_readers():
            site.recorder.release(f"read{number}")
            site.await_status(run, RunStatus.SUCCEEDED)
            await_that(is_blocked, "a reader has begun to write")
            site.workers()[0].kill()
    site.have_workers(2)
    await_that(is_all_read, "every event is read")
    told = list(WebhookDelivery.objects.values_list("run_id", "seq", "kind"))
    facts = [
        (event.run_id, event.seq, fact.kind.value)
        for event in Event.objects.all()
        for fact in describe(event).facts
        if fact.kind != FactKind.ASK_ANSWERED
    ]
    assert sorted(told) == sorted(facts)
    assert len(told) == 3 * KILLS, "run started, call executed, run finished"
    ends = Event.objects.filter(type=EventType.RUN_FINISHED).values_list("run_id", flat=True)
    assert sorted(Notice.objects.values_list("run_id", flat=True)) == sorted(ends)
