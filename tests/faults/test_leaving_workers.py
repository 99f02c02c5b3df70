"""SIGTERM to a worker: it finishes its outside write first, and no crash is counted."""

from __future__ import annotations

from agents.runs.models import CallStatus, RunStatus
from tests.faults.site import Site, effect, stopping
from tests.workshop import calls


def test_a_worker_records_the_result_of_an_outside_write_before_it_ends(site: Site) -> None:
    site.have_workers(2)
    site.recorder.hold("pay")
    run = site.submit("Pay", effect("pay"))
    site.approve_next(run)
    site.recorder.await_arrival("pay")
    worker = site.driver_of(run)
    with stopping(worker):
        worker.await_line("shutdown")
        site.recorder.release("pay")
        done = site.await_status(run, RunStatus.SUCCEEDED)
    (call,) = calls(run)
    assert (call.status, call.attempts, done.crash_count) == (CallStatus.SUCCEEDED, 1, 0)
    assert site.recorder.effects[call.idempotency_key] == 1
