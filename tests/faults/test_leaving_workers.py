"""SIGTERM of a worker: what it does is ended or handed over at once, and nobody counts that as a crash."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agents.models import CallStatus, RunStatus
from tests.engine.workshop import calls, passes
from tests.faults.awaiting import await_that
from tests.faults.site import Site, effect, fresh
from tests.processes import RealProcess

AT_ONCE_S = 8.0


@contextmanager
def _leaving(worker: RealProcess) -> Iterator[None]:
    """SIGTERM; when the block has ended, the worker must have gone by itself."""
    going = threading.Thread(target=worker.stop, args=(20.0,))
    going.start()
    yield
    going.join()


@pytest.mark.alone
def test_during_a_model_call_the_run_goes_to_another_worker_at_once(site: Site) -> None:
    site.installation.timing_scale = 1.0
    site.start_workers(2)
    site.model.hold()
    run = site.submit_to_model()
    site.model.wait_for_held(1, timeout=30)
    first = site.driver_of(run)
    with _leaving(first):
        took = await_that(lambda: fresh(run).lease_epoch == 2, "another worker drives the run", AT_ONCE_S)
        print(f"handed over {took:.2f} s after SIGTERM")
        site.model.wait_for_requests(2)
        assert site.driver_of(run) is not first
        site.model.release()
        done = site.await_status(run, RunStatus.SUCCEEDED)
    assert (done.crash_count, len(passes(run))) == (0, 1)
    assert first.exit_code == 0


def test_during_a_write_outside_its_result_is_recorded_before_the_worker_goes(site: Site) -> None:
    site.start_workers(2)
    site.recorder.hold("pay")
    run = site.submit("Pay", effect("pay"))
    site.approve_next(run)
    site.recorder.await_arrival("pay")
    worker = site.driver_of(run)
    with _leaving(worker):
        worker.await_line("shutdown", 10)
        site.recorder.release("pay")
        done = site.await_status(run, RunStatus.SUCCEEDED)
    (call,) = calls(run)
    assert (call.status, call.attempts, done.crash_count) == (CallStatus.SUCCEEDED, 1, 0)
    assert site.recorder.effects == {call.idempotency_key: 1}
