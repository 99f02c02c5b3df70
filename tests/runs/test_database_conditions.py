"""A database that is locked, full, read-only or starting is waited for, and nothing is counted against a run."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection
from django.db.models.functions import Now

from agents.accounts.models import AuditEntry
from agents.platform.database_outages import describe_outage
from agents.runs.engine import lease
from agents.runs.engine.next_step import ENGINE_FAILED
from agents.runs.models import CallStatus, Run, RunStatus
from agents.worker import sweeper
from tests.recorder import Recorder
from tests.workshop import Workshop, again, asking, call, calls, eventually, make_due, statuses, write_in_flight
from tests.workshop.conditions import Provoke, be_full, be_locked, be_read_only, impatience, locked_database, say

pytestmark = pytest.mark.django_db(transaction=True)

CONDITIONS = [(be_locked, "holds a lock"), (be_read_only, "read-only"), (be_full, "database disk is full")]
STATES = {
    "53300": "no free connections or memory",
    "57014": "holds a lock",
    "57P01": "starting or stopping",
    "57P02": "starting or stopping",
    "57P03": "starting or stopping",
    "58030": "cannot read or write its disk",
}
NO_CONDITIONS = ("23505", "40P01", "42601", "XX000")


def end_driving(run: Run, provoke: Provoke) -> Run:
    """Return the run after its driver met the provoked condition."""
    held = lease.claim(run.pk)
    assert held is not None
    with pytest.raises(DatabaseError), lease.keep_renewing(held):
        provoke()
    eventually(lambda: again(run).status == RunStatus.QUEUED)
    return again(run)


@pytest.mark.parametrize(("provoke", "told"), CONDITIONS)
def test_a_driver_that_meets_one_gives_its_run_back_and_says_so(
    workshop: Workshop, provoke: Provoke, told: str
) -> None:
    run = end_driving(workshop.submit(), provoke)
    assert run.crash_count == 0
    assert told in run.problem
    assert run.next_wake_at is not None, "it is not tried again at once"


def test_postgresql_says_the_others_by_their_states(workshop: Workshop) -> None:
    if connection.vendor != "postgresql":
        return
    for state, told in STATES.items():
        run = end_driving(workshop.submit(), lambda state=state: say(state))  # type: ignore[misc]
        assert (run.crash_count, told in run.problem) == (0, True), state
    for state in NO_CONDITIONS:
        run = end_driving(workshop.submit(), lambda state=state: say(state))  # type: ignore[misc]
        assert (run.crash_count, run.problem) == (1, ENGINE_FAILED), state


def test_what_is_no_error_of_the_database_is_no_condition() -> None:
    assert describe_outage(ValueError("database is locked")) == ""
    assert describe_outage(DatabaseError("database is locked")) == "", "nobody knows where this comes from"


class TestAReport:
    """The report of an outside write is known: a busy database must not make it unknown."""

    def test_waits_for_the_database(
        self, workshop: Workshop, recorder: Recorder, caplog: pytest.LogCaptureFixture
    ) -> None:
        with impatience(), write_in_flight(workshop, recorder) as run, locked_database():
            recorder.release("a")
            eventually(lambda: caplog.text.count("recording what call") > 4)
        assert statuses(run) == [CallStatus.SUCCEEDED]
        assert again(run).crash_count == 0
        workshop.drive(run)

    def test_that_comes_late_waits_too(
        self, workshop: Workshop, recorder: Recorder, caplog: pytest.LogCaptureFixture
    ) -> None:
        recorder.hold("slow")
        workshop.play(asking(call("probe.shortEffect", name="slow")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        with impatience():
            workshop.drive(run)
            with locked_database():
                recorder.release("slow")
                eventually(lambda: caplog.text.count("recording the late report") > 4)
            eventually(lambda: AuditEntry.objects.filter(action="late_report").exists())
        assert calls(run)[0].status == CallStatus.SUCCEEDED


class TestATransactionalWrite:
    def test_starts_later_and_stays_approved_meanwhile(self, workshop: Workshop) -> None:
        record = workshop.record()
        workshop.play(asking(call("probe.rename", record_id=record.pk, to="New")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        if connection.vendor == "postgresql":  # SQLite has one lock for all, with which nobody could claim the run
            with impatience(), locked_database("records_record"), pytest.raises(DatabaseError):
                workshop.drive(run)
            assert (statuses(run), again(run).crash_count) == ([CallStatus.APPROVED], 0)
            make_due(run)
        workshop.drive(run)
        assert statuses(run) == [CallStatus.SUCCEEDED]


class TestTheSweeper:
    def test_ends_its_sweep_at_the_first_condition(self, workshop: Workshop, caplog: pytest.LogCaptureFixture) -> None:
        runs = [workshop.submit() for _ in range(3)]
        for run in runs:
            assert lease.claim(run.pk)
            lose_lease(run)
        mine = sweeper.Sweeper()
        with impatience(), locked_database():
            assert mine.sweep() == 0
            assert not sweeper._is_database_available(for_writes=True)
        assert mine.is_blocked
        assert caplog.text.count("holds a lock") == 2
        assert sweeper._is_database_available(for_writes=True)
        assert mine.sweep() >= 3
        assert not mine.is_blocked

    def test_takes_no_run_whose_lease_nobody_could_renew(self, workshop: Workshop) -> None:
        """The sweeper got the lock first, while everybody waited for it."""
        run = workshop.submit()
        assert lease.claim(run.pk)
        lose_lease(run)
        mine = sweeper.Sweeper()
        is_locked, may_end = threading.Event(), threading.Event()

        def hold() -> None:
            with locked_database():
                is_locked.set()
                may_end.wait(0.8)
            connection.close()

        stranger = threading.Thread(target=hold)
        stranger.start()
        is_locked.wait(10)
        assert mine.sweep() == 0
        stranger.join()
        assert (mine.is_blocked, again(run).status) == (True, RunStatus.RUNNING)
        assert mine.sweep() >= 1
        assert again(run).crash_count == 1


def lose_lease(run: Run) -> None:
    """The lease is over, and nothing else was done about it."""
    Run.objects.filter(pk=run.pk).update(lease_expires_at=Now() - timedelta(days=1))
