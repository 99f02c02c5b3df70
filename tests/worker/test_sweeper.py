"""The sweeper recovers runs after a hint or a worker was lost; two simultaneous sweeps have the
effect of one."""

import threading
import time
from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models.functions import Now

from agents.runs.engine import lease
from agents.runs.engine.ending import end_if_overdue
from agents.runs.engine.timing import timing
from agents.runs.models import CallStatus, ExitReason, Run, RunStatus
from agents.worker.sweeper import _take_expired, sweep_forever, sweep_once
from agents.worker.upkeep import Upkeep
from tests.queued_jobs import QueuedJob, take_jobs
from tests.recorder import Recorder
from tests.workshop import (
    Workshop,
    again,
    all_at_once,
    asking,
    beside,
    call,
    die_while_executing,
    event_types,
    eventually,
    make_due,
    statuses,
)
from tests.workshop.conditions import locked_database

pytestmark = pytest.mark.django_db(transaction=True)


def set_columns(run: Run, **times: object) -> None:
    Run.objects.filter(pk=run.pk).update(**times)


@pytest.mark.usefixtures("redis_url")
class TestAQueuedRun:
    def test_gets_a_hint_at_most_once_in_ten_seconds(self, workshop: Workshop) -> None:
        run = workshop.submit()
        assert [sweep_once(), sweep_once()] == [1, 0]
        set_columns(run, hinted_at=Now() - timing().hint_interval - timedelta(seconds=1))
        assert sweep_once() == 1

    def test_does_not_get_a_hint_before_it_is_due(self, workshop: Workshop) -> None:
        run = workshop.submit()
        set_columns(run, next_wake_at=Now() + timedelta(hours=1))
        assert sweep_once() == 0
        make_due(run)
        assert sweep_once() == 1

    def test_gets_another_hint_whenever_it_is_queued_again(self, workshop: Workshop) -> None:
        workshop.play()
        run = workshop.submit()
        sweep_once()
        workshop.drive(run)
        workshop.say(run)
        assert again(run).hinted_at is None
        assert sweep_once() == 1

    def test_is_represented_in_the_queue_only_by_its_id(
        self, workshop: Workshop, redis_url: str
    ) -> None:
        run = workshop.submit()
        take_jobs(redis_url)
        found: list[QueuedJob] = []

        def is_hinted() -> bool:
            set_columns(run, hinted_at=None)
            sweep_once()
            found.extend(take_jobs(redis_url))
            return any(job.arguments == [run.pk] for job in found)

        eventually(is_hinted)
        assert all(job.keywords == {} for job in found)


class TestARunningRun:
    def test_restarts_at_a_random_moment_if_it_has_lost_its_worker_repeatedly(
        self, workshop: Workshop
    ) -> None:
        """If these runs restarted together, a run that kills its worker would take the others down
        with it each time."""
        runs = [workshop.submit() for _ in range(3)]
        for run in runs:
            assert lease.acquire(run.pk) is not None
            set_columns(run, lease_expires_at=Now() - timedelta(seconds=1), crash_count=1)
        assert sweep_once() >= 3  # runs that are already due get a hint, too
        moments = {again(run).next_wake_at for run in runs}
        assert None not in moments
        assert len(moments) == 3

    def test_is_left_to_its_worker_until_the_lease_expires(self, workshop: Workshop) -> None:
        run = workshop.submit()
        assert lease.acquire(run.pk) is not None
        assert sweep_once() == 0
        assert again(run).status == RunStatus.RUNNING

    def test_is_recovered_once_by_many_sweepers_after_its_lease_expired(
        self, workshop: Workshop
    ) -> None:
        run = workshop.submit()
        assert lease.acquire(run.pk) is not None
        set_columns(run, lease_expires_at=Now() - timedelta(seconds=1))
        all_at_once([sweep_once] * 8)
        run = again(run)
        assert (run.status, run.crash_count, run.lease_epoch) == (RunStatus.QUEUED, 1, 1)

    def test_is_checked_again_once_it_is_locked(self, workshop: Workshop) -> None:
        """The worker may have renewed the lease after the sweeper read it."""
        run = workshop.submit()
        assert lease.acquire(run.pk) is not None
        assert not _take_expired(run.pk)
        assert again(run).status == RunStatus.RUNNING

    def test_is_left_to_its_worker_by_a_delayed_sweep(self, workshop: Workshop) -> None:
        """No lease could be renewed during the delay, so workers get the first chance. The next
        sweep takes the runs whose leases were not renewed after that."""
        run = workshop.submit()
        assert lease.acquire(run.pk) is not None
        set_columns(run, lease_expires_at=Now() - timedelta(seconds=1))
        with ExitStack() as lock:
            lock.enter_context(locked_database())
            with beside(sweep_once):
                until = time.monotonic() + 2 * timing().heartbeat_s
                eventually(lambda: time.monotonic() > until)
                lock.close()
        assert again(run).status == RunStatus.RUNNING
        sweep_once()
        assert again(run).status == RunStatus.QUEUED

    def test_is_left_to_its_worker_for_two_heartbeats_after_a_long_round_of_the_sweeper(
        self, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The sweeper may have waited for a lock under which no lease could be renewed."""
        run = workshop.submit()
        assert lease.acquire(run.pk) is not None
        stop, ended = threading.Event(), threading.Event()

        def do_what_is_due(upkeep: Upkeep) -> None:
            if not ended.is_set():
                set_columns(run, lease_expires_at=Now() - timedelta(seconds=1))
                long = time.monotonic() + timing().lease.total_seconds()
                eventually(lambda: time.monotonic() > long)
                ended.set()

        monkeypatch.setattr(Upkeep, "do_what_is_due", do_what_is_due)
        with beside(lambda: sweep_forever(stop)):
            assert ended.wait(30)
            began = time.monotonic()
            eventually(lambda: again(run).status == RunStatus.QUEUED)
            waited_s = time.monotonic() - began
            stop.set()
        assert waited_s >= 2 * timing().heartbeat_s

    def test_is_left_to_its_worker_while_its_row_is_locked(self, workshop: Workshop) -> None:
        """The sweeper skips a locked row; if the whole database is locked, it waits and checks
        again."""
        run = workshop.submit()
        assert lease.acquire(run.pk) is not None
        set_columns(run, lease_expires_at=Now() - timedelta(seconds=1))
        with transaction.atomic():
            Run.objects.select_for_update(no_key=True).get(pk=run.pk)
            set_columns(run, lease_expires_at=Now() + timedelta(seconds=60))
        assert sweep_once() == 0
        assert again(run).status == RunStatus.RUNNING


class TestARunBeyondItsDeadline:
    def test_fails_while_queued(self, workshop: Workshop) -> None:
        run = workshop.submit()
        set_columns(run, deadline_at=Now() - timedelta(seconds=1))
        sweep_once()
        run = again(run)
        assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.DEADLINE)
        assert "gave no answer: time limit reached" in run.answer

    def test_fails_while_waiting_and_cancels_its_cards(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.work()
        set_columns(run, deadline_at=Now() - timedelta(seconds=1))
        sweep_once()
        assert again(run).exit_reason == ExitReason.DEADLINE
        assert statuses(run) == [CallStatus.CANCELLED]
        assert not workshop.cards(run)

    def test_fails_while_running_once_its_calls_have_ended(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.sleep", ms=0)))
        run = workshop.submit()
        set_columns(run, deadline_at=Now() + timedelta(hours=1))
        die_while_executing(run)
        set_columns(
            run,
            lease_expires_at=Now() - timedelta(seconds=1),
            deadline_at=Now() - timedelta(seconds=1),
        )
        with transaction.atomic():
            sweep_once()
        run = workshop.drive(run)
        assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.DEADLINE)

    def test_waits_for_the_resolution_of_an_unknown_outcome_first(self, workshop: Workshop) -> None:
        workshop.play(asking(call("probe.failingEffect", code="NETWORK_ERROR")))
        run = workshop.work()
        workshop.approve(workshop.card(run))
        run = workshop.drive(run)
        set_columns(run, deadline_at=Now() - timedelta(seconds=1))
        assert sweep_once() == 0
        assert again(run).status == RunStatus.NEEDS_ATTENTION
        workshop.resolve(run.tool_calls.get())
        run = workshop.drive(run)
        assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.DEADLINE)

    def test_is_checked_again_once_it_is_locked(self, workshop: Workshop) -> None:
        """A person may have given the run more time since the sweeper read it."""
        run = workshop.submit()
        set_columns(run, deadline_at=Now() + timedelta(hours=1))
        assert not end_if_overdue(run.pk)
        assert again(run).status == RunStatus.QUEUED

    def test_gets_a_new_deadline_when_a_person_sends_a_message(self, workshop: Workshop) -> None:
        workshop.employee.run_minutes = 10
        workshop.employee.save()
        workshop.play()
        run = workshop.submit()
        set_columns(run, deadline_at=Now() - timedelta(seconds=1))
        sweep_once()
        assert again(run).status == RunStatus.FAILED
        workshop.say(run)
        assert sweep_once() == 1, "a hint"
        assert workshop.drive(run).status == RunStatus.SUCCEEDED


class TestTheEndOfTheGracePeriod:
    def test_resumes_the_run_once(self, workshop: Workshop, recorder: Recorder) -> None:
        workshop.play(asking(call("probe.effect", name="a")))
        run = workshop.work()
        workshop.approve(workshop.card(run), grace_s=60)
        make_due(run)
        all_at_once([sweep_once] * 6)
        assert again(run).status == RunStatus.QUEUED
        assert event_types(run).count("run_resumed") == 1
        assert statuses(workshop.drive(run)) == [CallStatus.SUCCEEDED]


def test_a_sweep_with_nothing_due_changes_nothing(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.effect", name="a")))
    waiting, ended = workshop.work(), workshop.submit()
    workshop.cancel(ended)
    before = list(Run.objects.order_by("pk").values())
    assert sweep_once() == 0
    assert list(Run.objects.order_by("pk").values()) == before
    assert again(waiting).status == RunStatus.WAITING
