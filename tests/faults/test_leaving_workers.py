"""SIGTERM of a worker: what it has begun outside is ended first, and nobody counts that as a crash."""

from __future__ import annotations

from agents.runs.models import CallStatus, RunStatus
from tests.faults.site import Site, effect, leaving
from tests.workshop import calls


def test_during_a_write_outside_its_result_is_recorded_before_the_worker_goes(site: Site) -> None:
    site.have_workers(2)
    site.recorder.hold("pay")
    run = site.submit("Pay", effect("pay"))
    site.approve_next(run)
    site.recorder.await_arrival("pay")
    worker = site.driver_of(run)
    with leaving(worker):
        worker.await_line("shutdown", 10)
        site.recorder.release("pay")
        done = site.await_status(run, RunStatus.SUCCEEDED)
    (call,) = calls(run)
    assert (call.status, call.attempts, done.crash_count) == (CallStatus.SUCCEEDED, 1, 0)
    assert site.recorder.effects[call.idempotency_key] == 1
