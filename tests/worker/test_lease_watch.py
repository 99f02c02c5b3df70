"""If the database's clock is set back, the sweeper notices a lost lease by its own clock."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models.functions import Now

from agents.runs.engine import lease
from agents.runs.engine.timing import timing
from agents.runs.models import Run, RunStatus
from agents.runs.queries.due import HELD_LEASES, ObservedLease
from agents.worker.lease_watch import LeaseWatch
from agents.worker.sweeper import Sweeper, _take_unrenewed, sweep_once
from tests.workshop import Workshop, again, event_types, eventually, lose_worker

pytestmark = pytest.mark.django_db(transaction=True)

LEASE_S = timing().lease.total_seconds()
AN_HOUR = timedelta(hours=1)


def abandon(workshop: Workshop) -> Run:
    """Return a run whose worker was killed. Its lease was written before the clock was set back, so
    it appears valid for another hour."""
    run = workshop.submit()
    assert lease.acquire(run.pk)
    Run.objects.filter(pk=run.pk).update(lease_expires_at=Now() + AN_HOUR)
    return run


def make_older(sweeper: Sweeper) -> None:
    """Move the time at which each lease was first seen so far back that all leases have expired."""
    sweeper._watch._since = {
        seen: since - LEASE_S - 1 for seen, since in sweeper._watch._since.items()
    }


class TestTheWatch:
    def test_reports_a_lease_that_was_not_renewed_during_its_whole_duration(self) -> None:
        watch, observed = LeaseWatch(), ObservedLease(1, "w", 1, datetime(2030, 1, 1, tzinfo=UTC))
        assert watch.update([observed], 100.0) == []
        assert watch.update([observed], 100.0 + LEASE_S) == []
        assert watch.update([observed], 100.1 + LEASE_S) == [observed]

    @pytest.mark.parametrize(
        "change", [{"owner": "v"}, {"epoch": 2}, {"expires_at": datetime(2030, 1, 2, tzinfo=UTC)}]
    )
    def test_starts_over_whenever_the_lease_changes(self, change: dict[str, object]) -> None:
        watch, observed = LeaseWatch(), ObservedLease(1, "w", 1, datetime(2030, 1, 1, tzinfo=UTC))
        renewed = observed._replace(**change)  # type: ignore[arg-type]
        assert watch.update([observed], 0.0) == watch.update([renewed], LEASE_S) == []
        assert watch.update([renewed], LEASE_S * 1.5) == []

    def test_forgets_removed_leases(self) -> None:
        watch = LeaseWatch()
        watch.update(
            [
                ObservedLease(number, "w", 1, datetime(2030, 1, 1, tzinfo=UTC))
                for number in range(100)
            ],
            0.0,
        )
        watch.update([ObservedLease(1, "w", 1, datetime(2030, 1, 1, tzinfo=UTC))], 1.0)
        assert len(watch._since) == 1


class TestTheSweeper:
    def test_takes_a_run_if_its_lease_expired_by_the_sweepers_own_clock(
        self, workshop: Workshop
    ) -> None:
        run, sweeper = abandon(workshop), Sweeper()
        sweeper.sweep()
        assert again(run).status == RunStatus.RUNNING
        make_older(sweeper)
        sweeper.sweep()
        run = again(run)
        assert (run.status, run.crash_count, run.lease_owner) == (RunStatus.QUEUED, 1, "")
        assert event_types(run)[-1] == "run_resumed"

    def test_never_takes_a_run_whose_worker_is_alive(self, workshop: Workshop) -> None:
        run, sweeper = workshop.submit(), Sweeper()
        my_lease = lease.acquire(run.pk)
        assert my_lease is not None
        with lease.keep_renewing(my_lease):
            sweeper.sweep()
            before = again(run).lease_expires_at
            eventually(lambda: again(run).lease_expires_at != before)
            make_older(sweeper)
            sweeper.sweep()
            assert again(run).status == RunStatus.RUNNING
        lose_worker(run)

    def test_leaves_a_run_whose_lease_was_renewed_before_the_lock_was_taken(
        self, workshop: Workshop
    ) -> None:
        run = abandon(workshop)
        (seen,) = HELD_LEASES.fetch_all()
        Run.objects.filter(pk=run.pk).update(lease_expires_at=Now() + timing().lease)
        assert not _take_unrenewed(seen)
        assert again(run).status == RunStatus.RUNNING
        lose_worker(run)

    @pytest.mark.usefixtures("redis_url")
    def test_sends_another_hint_if_the_last_hint_is_in_the_future(self, workshop: Workshop) -> None:
        run = workshop.submit()
        Run.objects.filter(pk=run.pk).update(hinted_at=Now() + AN_HOUR)
        assert sweep_once() == 1
        assert again(run).hinted_at is not None
        assert sweep_once() == 0
