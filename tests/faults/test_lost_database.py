"""The database becomes unavailable while a worker is busy: its work is neither lost nor done twice.

PostgreSQL ends every connection, as at a restart. SQLite has no server to lose, so another
connection holds its lock.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from django.db import connection

from agents.runs.models import CallStatus, ExitReason, RunStatus
from tests.faults.site import Site, effect, read, reload, rename
from tests.workshop import calls, event_types, passes
from tests.workshop.conditions import locked_database

BUSY_S = 1.0
TIMING_SCALE = 0.2
"""After an outage, a worker has two heartbeats to renew its lease: 2 s here, enough on a busy
machine."""
LOCKED_S = 12.0
"""Twice the length of a lease, and six times as long as PostgreSQL lets a statement wait for a
lock."""
END_ALL_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@contextmanager
def lost_database() -> Iterator[None]:
    """End all connections before the block; on SQLite, block all writes until a second after it."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(END_ALL_OTHERS)
            assert len(cursor.fetchall()) > 1, "somebody was connected"
        yield
        return
    with closing(
        sqlite3.connect(connection.settings_dict["NAME"], timeout=20, isolation_level=None)
    ) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        time.sleep(BUSY_S)
        other.execute("ROLLBACK")


def test_a_response_during_the_outage_is_recorded_once(site: Site) -> None:
    site.have_workers(1)
    site.model.hold()
    run = site.submit_to_model()
    site.model.wait_for_held(1, timeout=30)
    with lost_database():
        site.model.release()
    site.await_status(run, RunStatus.SUCCEEDED)
    assert (len(passes(run)), reload(run).crash_count) == (1, 0)


def test_the_result_of_a_read_during_the_outage_is_recorded_once(site: Site) -> None:
    site.have_workers(1)
    site.recorder.hold("read")
    run = site.submit("Read", read("read"))
    site.recorder.await_arrival("read")
    with lost_database():
        site.recorder.release("read")
    site.await_status(run, RunStatus.SUCCEEDED)
    assert [call.status for call in calls(run)] == [CallStatus.SUCCEEDED]


def test_the_result_of_an_outside_write_during_the_outage_is_recorded_once(site: Site) -> None:
    site.have_workers(1)
    site.recorder.hold("pay")
    run = site.submit("Pay", effect("pay"))
    site.approve_next(run)
    site.recorder.await_arrival("pay")
    with lost_database():
        site.recorder.release("pay")
    site.await_status(run, RunStatus.SUCCEEDED)
    (call,) = calls(run)
    assert (call.status, call.attempts, reload(run).crash_count) == (CallStatus.SUCCEEDED, 1, 0)
    assert site.recorder.effects[call.idempotency_key] == 1


def test_a_lock_that_is_held_longer_than_every_lease_and_timeout_does_not_end_a_run(
    site: Site,
) -> None:
    """A migration may hold such a lock. The result of a write is kept, and no worker is treated as
    lost."""
    site.have_workers(1)
    site.model.hold()
    site.recorder.hold("read")
    site.recorder.hold("pay")
    asking = site.submit_to_model()
    reading, paying = site.submit("Read", read("read")), site.submit("Pay", effect("pay"))
    site.approve_next(paying)
    site.model.wait_for_held(1, timeout=30)
    site.recorder.await_arrival("read")
    site.recorder.await_arrival("pay")
    with locked_database():
        site.model.release()
        site.recorder.release("read")
        site.recorder.release("pay")
        time.sleep(LOCKED_S)
    for run in (asking, reading, paying):
        done = site.await_status(run, RunStatus.SUCCEEDED)
        assert (done.crash_count, done.exit_reason) == (0, ExitReason.FINAL_ANSWER)
    (call,) = calls(paying)
    assert (call.status, call.attempts, event_types(paying).count("call_resolved")) == (
        CallStatus.SUCCEEDED,
        1,
        0,
    )


def test_a_transactional_write_during_the_outage_happens_once(site: Site) -> None:
    """On SQLite, the write itself holds the only lock, so there the database is locked just before
    it."""
    site.have_workers(1)
    gate = "inside" if connection.vendor == "postgresql" else ""
    record = site.workshop.record(name="Old")
    run = site.submit("Rename", rename(record.pk, "New", gate))
    card = site.await_card(run)
    if gate:
        site.recorder.hold(gate)
    site.workshop.approve(card)
    if gate:
        site.recorder.await_arrival(gate)
    with lost_database():
        site.recorder.release("inside")
    site.await_status(run, RunStatus.SUCCEEDED)
    record.refresh_from_db()
    (call,) = calls(run)
    assert (record.name, call.attempts, call.status) == ("New", 1, CallStatus.SUCCEEDED)
