"""A worker drives runs that the queue did not hand to any worker, as long as it has free slots."""

from __future__ import annotations

import threading

import pytest

from agents.runs.engine import lease
from agents.runs.models import RunStatus
from agents.worker.jobs import advance_run
from agents.worker.run_poller import RunPoller
from tests.workshop import Workshop, again, eventually

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_run_that_is_due_at_two_successive_polls_is_driven(workshop: Workshop) -> None:
    workshop.play()
    run = workshop.submit()
    poller = RunPoller(2, advance_run)
    assert [poller.poll(), poller.poll()] == [0, 1]
    eventually(lambda: again(run).status == RunStatus.SUCCEEDED)
    poller.stop()


def test_no_more_runs_are_driven_than_there_are_free_slots(workshop: Workshop) -> None:
    for _ in range(5):
        workshop.submit()
    driven: list[int] = []
    poller = RunPoller(2, driven.append)
    assert [poller.poll(), poller.poll()] == [0, 2]
    eventually(lambda: len(driven) == 2)
    poller.stop()


def test_a_run_is_chosen_only_once_before_its_lease_is_acquired(workshop: Workshop) -> None:
    workshop.submit()
    may_acquire = threading.Event()

    def drive(_: int) -> None:
        may_acquire.wait()

    poller = RunPoller(2, drive)
    polls = [poller.poll() for _ in range(4)]
    may_acquire.set()
    poller.stop()
    assert polls == [0, 1, 0, 0]


def test_a_worker_that_shuts_down_does_not_start_runs(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.submit()
    poller = RunPoller(2, advance_run)
    poller.poll()
    monkeypatch.setattr(lease, "_shutting_down", True)
    assert poller.poll() == 0
    poller.stop()
