"""One driver at a time: a lease is acquired once, heartbeats renew it, and a lost lease stays
lost."""

import sqlite3
from contextlib import closing
from datetime import datetime, timedelta

import pytest
from django.db import IntegrityError, InterfaceError, OperationalError, connection
from django.db.models.functions import Now

from agents.runs.engine import lease
from agents.runs.engine.history import OpenCalls
from agents.runs.engine.loop import advance, start_driving
from agents.runs.engine.passes import ask_model
from agents.runs.engine.timing import MAX_CRASHES, clock_s, timing
from agents.runs.engine.transaction import NO_STEP, Action, NextStep
from agents.runs.models import CallStatus, ExitReason, Run, RunStatus
from tests.model_server import ModelServer
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    again,
    all_at_once,
    asking,
    call,
    calls,
    event_types,
    eventually,
    lose_worker,
    make_due,
    passes,
    statuses,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _running_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo a simulated shutdown after the test."""
    monkeypatch.setattr(lease, "_shutting_down", False)


def acquire_lease(run: Run) -> lease.Lease:
    my_lease = lease.acquire(run.pk)
    assert my_lease is not None
    return my_lease


def renew(*leases: lease.Lease) -> None:
    """Renew these leases with one heartbeat, as if their drivers were alive."""
    for each in leases:
        each.expect_step(1)
    lease._get_heartbeat()._renew(list(leases))


def lease_end(run: Run) -> object:
    return Run.objects.values_list("lease_expires_at", flat=True).get(pk=run.pk)


class TestAcquiringALease:
    def test_succeeds_for_only_one_of_twenty_drivers(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        run = workshop.submit()
        all_at_once([lambda: advance(run.pk)] * 20)
        run = again(run)
        assert (run.status, run.lease_epoch) == (RunStatus.SUCCEEDED, 1)
        assert len(model.requests) == 1
        assert len(passes(run)) == 1

    def test_lets_twenty_drivers_start_an_approved_write_once(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        all_at_once([lambda: advance(run.pk)] * 20)
        assert again(run).status == RunStatus.SUCCEEDED
        assert list(recorder.effects.values()) == [1]
        assert event_types(run).count("tool_start") == 1

    def test_records_the_owner_and_increases_the_epoch(self, workshop: Workshop) -> None:
        run = workshop.submit()
        my_lease = acquire_lease(run)
        run = again(run)
        assert (run.status, run.lease_owner, run.lease_epoch) == (RunStatus.RUNNING, lease.OWNER, 1)
        assert my_lease.epoch == 1
        assert run.lease_expires_at is not None
        assert run.started_at is not None
        assert acquire_lease(lose_worker(run)).epoch == 2

    def test_fails_for_a_run_that_is_not_due(self, workshop: Workshop) -> None:
        run = workshop.submit()
        Run.objects.filter(pk=run.pk).update(next_wake_at=Now() + timedelta(hours=1))
        assert lease.acquire(run.pk) is None
        assert lease.acquire(999_999_999) is None

    def test_fails_for_a_driven_waiting_or_ended_run(self, workshop: Workshop) -> None:
        driven = workshop.submit()
        acquire_lease(driven)
        workshop.play(asking(call("probe.effect", name="a")))
        waiting = workshop.work()
        workshop.play()
        ended = workshop.work()
        for run in (driven, waiting, ended):
            assert lease.acquire(run.pk) is None
        assert [again(run).status for run in (driven, waiting, ended)] == [
            "running",
            "waiting",
            "succeeded",
        ]


class TestAFrozenDriver:
    """A driver is stopped between two statements, while another driver takes the run."""

    @pytest.fixture
    def frozen_driver(self, workshop: Workshop) -> tuple[lease.Lease, NextStep, Run]:
        """The frozen driver's lease and next step, and the run as the next driver left it: with a
        card."""
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.submit()
        my_lease = acquire_lease(run)
        step = start_driving(my_lease)
        assert step.action == Action.ASK
        return my_lease, step, workshop.drive(lose_worker(run))

    def test_does_not_change_the_next_drivers_work(
        self, frozen_driver: tuple[lease.Lease, NextStep, Run]
    ) -> None:
        my_lease, step, run = frozen_driver
        with pytest.raises(lease.LeaseLost):
            ask_model(my_lease, step)
        assert (again(run).status, again(run).crash_count, len(passes(run))) == (
            RunStatus.WAITING,
            0,
            1,
        )

    def test_fails_at_an_open_call_if_it_still_has_the_lease(
        self, frozen_driver: tuple[lease.Lease, NextStep, Run]
    ) -> None:
        my_lease, step, run = frozen_driver
        columns = {
            "status": RunStatus.RUNNING,
            "lease_owner": lease.OWNER,
            "lease_epoch": my_lease.epoch,
        }
        Run.objects.filter(pk=run.pk).update(
            **columns, lease_expires_at=Now() + timedelta(minutes=1)
        )
        with pytest.raises(OpenCalls):
            ask_model(my_lease, step)


class TestTheHeartbeat:
    def test_renews_the_lease_of_a_living_driver(self, workshop: Workshop) -> None:
        run = workshop.submit()
        my_lease = acquire_lease(run)
        with lease.keep_renewing(my_lease):
            before = lease_end(run)
            eventually(lambda: lease_end(run) != before)
        lose_worker(run)

    def test_does_not_renew_the_lease_of_a_driver_beyond_its_own_deadline(
        self, workshop: Workshop
    ) -> None:
        stuck, alive = workshop.submit(), workshop.submit()
        stuck_lease, living_lease = acquire_lease(stuck), acquire_lease(alive)
        with lease.keep_renewing(stuck_lease), lease.keep_renewing(living_lease):
            stuck_lease.alive_until = 0.0
            eventually(lambda: lease_end(alive) > lease_end(stuck))  # type: ignore[operator]
            before, kept = lease_end(stuck), lease_end(alive)
            eventually(lambda: lease_end(alive) != kept)
            assert lease_end(stuck) == before
        for run in (stuck, alive):
            lose_worker(run)

    def test_stops_the_driver_that_lost_its_run(self, workshop: Workshop) -> None:
        run = workshop.submit()
        my_lease = acquire_lease(run)
        with lease.keep_renewing(my_lease):
            lose_worker(run)
            assert my_lease.stopped.wait(10)

    def test_renews_only_the_lease_of_its_own_epoch(self, workshop: Workshop) -> None:
        run = workshop.submit()
        my_lease = acquire_lease(run)
        assert acquire_lease(lose_worker(run)).epoch == 2, "the same process has acquired it again"
        before = lease_end(run)
        renew(my_lease)
        assert (lease_end(run), my_lease.stopped.is_set()) == (before, True)
        lose_worker(run)

    def test_does_not_renew_the_lease_of_a_driver_that_gave_up(self, workshop: Workshop) -> None:
        run = workshop.submit()
        my_lease = acquire_lease(run)
        my_lease.has_given_up = True
        before = lease_end(run)
        renew(my_lease)
        assert lease_end(run) == before
        lose_worker(run)

    def test_skips_a_run_that_it_cannot_lock(self, workshop: Workshop) -> None:
        run = workshop.submit()
        my_lease, other_lease = acquire_lease(run), lease.Lease(999_999_999, 1)
        before = lease_end(run)
        renew(other_lease, my_lease)
        assert lease_end(run) != before
        assert not other_lease.stopped.is_set()
        lose_worker(run)

    def test_tells_the_driver_that_the_run_is_cancelled(self, workshop: Workshop) -> None:
        run = workshop.submit()
        my_lease = acquire_lease(run)
        with lease.keep_renewing(my_lease):
            workshop.cancel(run)
            assert my_lease.stopped.wait(10)
        lose_worker(run)


class TestTheLastCheck:
    """A write starts only while its lease is certain to last for another heartbeat."""

    def test_allows_a_start_until_one_heartbeat_before_the_end_of_the_lease(
        self, workshop: Workshop
    ) -> None:
        run = workshop.submit()
        before = clock_s()
        my_lease = acquire_lease(run)
        duration = timing().lease.total_seconds()
        assert before + duration <= my_lease.holds_until <= clock_s() + duration
        assert my_lease.may_begin_effect()
        my_lease.holds_until = clock_s() + timing().heartbeat_s
        assert not my_lease.may_begin_effect()
        lose_worker(run)

    def test_counts_the_lease_from_the_last_committed_heartbeat(self, workshop: Workshop) -> None:
        run = workshop.submit()
        my_lease = acquire_lease(run)
        my_lease.holds_until = 0.0
        with lease.keep_renewing(my_lease):
            eventually(my_lease.may_begin_effect)
            end = again(run).lease_expires_at
            assert end is not None
            assert (
                my_lease.holds_until - clock_s() <= (end - database_time()).total_seconds() + 0.01
            )
        lose_worker(run)

    def test_counts_the_lease_from_a_transaction_that_renews_it(self, workshop: Workshop) -> None:
        run = workshop.submit()
        my_lease = acquire_lease(run)
        Run.objects.filter(pk=run.pk).update(lease_expires_at=Now())
        my_lease.holds_until = 0.0
        with my_lease.transaction(renews=True):
            pass
        assert my_lease.may_begin_effect()
        assert (again(run).lease_expires_at or database_time()) > database_time()
        lose_worker(run)

    def test_does_not_count_a_rolled_back_renewal(self, workshop: Workshop) -> None:
        run = workshop.submit()
        my_lease = acquire_lease(run)
        my_lease.holds_until = 0.0
        with pytest.raises(ValueError, match="no"), my_lease.transaction(renews=True):
            raise ValueError("no")
        assert not my_lease.may_begin_effect()
        lose_worker(run)


def database_time() -> datetime:
    now: datetime = Run.objects.values_list(Now(), flat=True)[0]
    return now


class TestADriverThatLostItsLease:
    def test_cannot_write(self, workshop: Workshop) -> None:
        run = workshop.submit()
        my_lease = acquire_lease(run)
        lose_worker(run)
        with pytest.raises(lease.LeaseLost), my_lease.transaction():
            pytest.fail("the block must not begin")
        acquire_lease(run)
        with pytest.raises(lease.LeaseLost), my_lease.transaction():
            pytest.fail("the block must not begin")
        lose_worker(run)

    def test_cannot_write_even_under_its_own_epoch(self, workshop: Workshop) -> None:
        """After a restore, another worker may drive the run in an epoch that was used before."""
        run = workshop.submit()
        my_lease = acquire_lease(run)
        Run.objects.filter(pk=run.pk).update(lease_owner="another")
        with pytest.raises(lease.LeaseLost), my_lease.transaction():
            pytest.fail("the block must not begin")
        lose_worker(run)

    def test_stops_without_an_error_even_if_its_tool_is_still_running(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        recorder.hold("slow")
        workshop.play(asking(call("probe.gate", name="slow")))
        run = workshop.submit()
        with workshop.driving(run) as driver:
            recorder.await_arrival("slow")
            lose_worker(run)
            driver.join(20)
            assert not driver.is_alive(), "the heartbeat stops it, although its tool still runs"
            recorder.release("slow")
        assert statuses(run) == [CallStatus.EXECUTING]

    def test_gives_the_run_back_after_an_error_and_counts_a_crash(self, workshop: Workshop) -> None:
        """Without the count, a run that the database refuses each time would be driven forever."""
        for error in (OperationalError, InterfaceError, IntegrityError, ValueError):
            run = workshop.submit()
            my_lease = acquire_lease(run)
            with pytest.raises(error), lease.keep_renewing(my_lease):
                raise error("refused")
            assert my_lease not in lease._get_heartbeat().leases()
            assert again(run).status == RunStatus.QUEUED
            assert again(run).crash_count == 1

    def test_does_not_count_a_crash_if_the_database_is_lost_or_busy(
        self, workshop: Workshop
    ) -> None:
        """On PostgreSQL, the driver's session ends. SQLite has no sessions; there, another
        connection keeps the database busy with a write."""
        run = workshop.submit()
        with pytest.raises(OperationalError), lease.keep_renewing(acquire_lease(run)):
            _lose_session_or_be_refused()
        run = again(run)
        assert (run.status, run.crash_count) == (RunStatus.QUEUED, 0)
        assert run.next_wake_at is not None, "it is not tried again at once"

    def test_gives_the_run_back_and_keeps_its_earlier_problem(self, workshop: Workshop) -> None:
        run = workshop.submit()
        my_lease = acquire_lease(run)
        Run.objects.filter(pk=run.pk).update(problem="The model was away.")
        lease.give_back(my_lease)
        assert (again(run).status, again(run).problem) == (RunStatus.QUEUED, "The model was away.")

    def test_ends_the_run_with_an_internal_error_after_repeated_errors(
        self, workshop: Workshop
    ) -> None:
        run = workshop.submit()
        for _ in range(MAX_CRASHES):
            make_due(run)
            with (
                pytest.raises(ValueError, match="refused"),
                lease.keep_renewing(acquire_lease(run)),
            ):
                raise ValueError("refused")
        make_due(run)
        ended = workshop.drive(run)
        assert (ended.status, ended.exit_reason) == (RunStatus.FAILED, ExitReason.INTERNAL_ERROR)


class TestYielding:
    def test_requeues_the_run_after_its_time_slice(self, workshop: Workshop) -> None:
        workshop.play()
        run = workshop.submit()
        my_lease = acquire_lease(run)
        my_lease.slice_ends = 0.0
        assert start_driving(my_lease) == NO_STEP
        run = again(run)
        assert (run.status, run.lease_owner, run.next_wake_at, run.crash_count) == (
            RunStatus.QUEUED,
            "",
            None,
            0,
        )
        assert workshop.drive(run).status == RunStatus.SUCCEEDED

    def test_requeues_the_run_when_the_worker_shuts_down(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.sleep", ms=0)))
        run = workshop.submit()
        lease.shut_down()
        run = workshop.drive(run)
        assert (run.status, run.crash_count, run.pass_number) == (RunStatus.QUEUED, 0, 0)

    def test_lets_executing_calls_finish_when_the_worker_shuts_down(
        self, workshop: Workshop, recorder: Recorder
    ) -> None:
        gates = [f"gate {number}" for number in range(10)]
        for gate in gates:
            recorder.hold(gate)
        frozen_driver = call("probe.sleep", ms=0)
        workshop.play(asking(*[call("probe.gate", name=gate) for gate in gates], frozen_driver))
        run = workshop.submit()
        with workshop.driving(run):
            for gate in gates:
                recorder.await_arrival(gate)
            lease.shut_down()
            for gate in gates:
                recorder.release(gate)
        run = again(run)
        assert (run.status, run.crash_count) == (RunStatus.QUEUED, 0)
        assert [row.status for row in calls(run)] == ["succeeded"] * 10 + ["ready"]

    def test_interrupts_the_model_when_the_worker_shuts_down(
        self, workshop: Workshop, model: ModelServer
    ) -> None:
        model.hold()
        run = workshop.submit()
        with workshop.driving(run):
            model.wait_for_held()
            lease.shut_down()
        run = again(run)
        assert (run.status, run.pass_number, run.crash_count) == (RunStatus.QUEUED, 0, 0)
        assert not passes(run)


def _lose_session_or_be_refused() -> None:
    """End the PostgreSQL session; on SQLite, write without waiting while another connection holds
    the lock."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return
    with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 0")
            cursor.execute("UPDATE runs_run SET title = title")
