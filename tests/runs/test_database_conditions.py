"""If the database is locked, full, read-only or starting, the engine waits and does not count this
as a failure of the run."""

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
from tests.workshop import (
    Workshop,
    again,
    asking,
    call,
    calls,
    eventually,
    make_due,
    statuses,
    write_in_flight,
)
from tests.workshop.conditions import (
    Provoke,
    be_full,
    be_locked,
    be_read_only,
    impatience,
    locked_database,
    say,
)

pytestmark = pytest.mark.django_db(transaction=True)

CONDITIONS = [
    (be_locked, "holds a lock"),
    (be_read_only, "read-only"),
    (be_full, "database disk is full"),
]
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
    """Return the run after its driver has met the provoked condition."""
    my_lease = lease.acquire(run.pk)
    assert my_lease is not None
    with pytest.raises(DatabaseError), lease.keep_renewing(my_lease):
        provoke()
    eventually(lambda: again(run).status == RunStatus.QUEUED)
    return again(run)


@pytest.mark.parametrize(("provoke", "text"), CONDITIONS)
def test_a_driver_gives_its_run_back_and_reports_the_condition(
    workshop: Workshop, provoke: Provoke, text: str
) -> None:
    run = end_driving(workshop.submit(), provoke)
    assert run.crash_count == 0
    assert text in run.problem
    assert run.next_wake_at is not None, "it is not tried again at once"


def test_database_conditions_are_recognized_by_postgresqls_error_codes(workshop: Workshop) -> None:
    if connection.vendor != "postgresql":
        return
    for state, text in STATES.items():
        run = end_driving(workshop.submit(), lambda state=state: say(state))  # type: ignore[misc]
        assert (run.crash_count, text in run.problem) == (0, True), state
    for state in NO_CONDITIONS:
        run = end_driving(workshop.submit(), lambda state=state: say(state))  # type: ignore[misc]
        assert (run.crash_count, run.problem) == (1, ENGINE_FAILED), state


def test_other_errors_are_not_database_conditions() -> None:
    assert describe_outage(ValueError("database is locked")) == ""
    assert describe_outage(DatabaseError("database is locked")) == "", "its cause is unknown"


class TestAReport:
    """A busy database must not turn the known result of an outside write into an unknown one."""

    def test_waits_while_the_database_is_locked(
        self, workshop: Workshop, recorder: Recorder, caplog: pytest.LogCaptureFixture
    ) -> None:
        with impatience(), write_in_flight(workshop, recorder) as run, locked_database():
            recorder.release("a")
            eventually(lambda: caplog.text.count("recording what call") > 4)
        assert statuses(run) == [CallStatus.SUCCEEDED]
        assert again(run).crash_count == 0
        workshop.drive(run)

    def test_waits_while_the_database_is_locked_even_if_it_is_late(
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
    def test_stays_approved_and_starts_later_if_the_database_is_locked(
        self, workshop: Workshop
    ) -> None:
        record = workshop.record()
        workshop.play(asking(call("probe.rename", record_id=record.pk, to="New")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        if connection.vendor == "postgresql":  # SQLite has one lock for everything
            with impatience(), locked_database("records_record"), pytest.raises(DatabaseError):
                workshop.drive(run)
            assert (statuses(run), again(run).crash_count) == ([CallStatus.APPROVED], 0)
            make_due(run)
        workshop.drive(run)
        assert statuses(run) == [CallStatus.SUCCEEDED]


class TestTheSweeper:
    def test_ends_its_sweep_once_the_database_is_locked(
        self, workshop: Workshop, caplog: pytest.LogCaptureFixture
    ) -> None:
        runs = [workshop.submit() for _ in range(3)]
        for run in runs:
            assert lease.acquire(run.pk)
            expire_lease(run)
        my_sweeper = sweeper.Sweeper()
        with impatience(), locked_database():
            assert my_sweeper.sweep() == 0
            assert not sweeper._try_database(for_writes=True)
        assert my_sweeper.is_blocked
        assert caplog.text.count("holds a lock") == 2
        assert sweeper._try_database(for_writes=True)
        assert my_sweeper.sweep() >= 3
        assert not my_sweeper.is_blocked

    def test_does_not_take_runs_in_a_sweep_that_waited_for_a_lock(self, workshop: Workshop) -> None:
        """While the database was locked, no worker could renew its lease."""
        run = workshop.submit()
        assert lease.acquire(run.pk)
        expire_lease(run)
        my_sweeper = sweeper.Sweeper()
        is_locked, may_end = threading.Event(), threading.Event()

        def hold() -> None:
            with locked_database():
                is_locked.set()
                may_end.wait(0.8)
            connection.close()

        locker = threading.Thread(target=hold)
        locker.start()
        is_locked.wait(10)
        assert my_sweeper.sweep() == 0
        locker.join()
        assert (my_sweeper.is_blocked, again(run).status) == (True, RunStatus.RUNNING)
        assert my_sweeper.sweep() >= 1
        assert again(run).crash_count == 1


def expire_lease(run: Run) -> None:
    """Let the run's lease expire without any other change."""
    Run.objects.filter(pk=run.pk).update(lease_expires_at=Now() - timedelta(days=1))
