"""What a lost worker costs at the real lease and sweep: less than a minute, or nothing if it may say goodbye."""

from __future__ import annotations

import time

from agents.runs.models import Run, RunStatus
from tests.faults.awaiting import await_that
from tests.faults.site import Site, fresh, leaving
from tests.faults.spots import SETTLED_WITHIN_S, Spots
from tests.processes import RealProcess
from tests.workshop import passes

TIMING_SCALE = 1.0
AT_ONCE_S = 8.0


def test_during_a_model_call_the_run_goes_to_another_worker_at_once(site: Site) -> None:
    site.have_workers(2)
    site.model.hold()
    run = site.submit_to_model()
    site.model.wait_for_held(1, timeout=30)
    first = site.driver_of(run)
    with leaving(first):
        # The leaving worker may take the run up once more and give it back: it hears until it has closed its ears.
        took = await_that(lambda: _is_driven_by_another(run, first), "another worker drives the run", AT_ONCE_S)
        print(f"handed over {took:.2f} s after SIGTERM")
        site.model.wait_for_requests(2)
        site.model.release()
        done = site.await_status(run, RunStatus.SUCCEEDED)
    assert (done.crash_count, len(passes(run))) == (0, 1)
    assert first.exit_code == 0


def test_a_worker_killed_at_five_spots_at_once_costs_less_than_a_minute(site: Site) -> None:
    spots = Spots(site)
    site.have_workers(1)
    for spot in ("waiting", "asking", "reading", "paying", "renaming"):
        spots.bring(spot)
    killed = time.monotonic()
    site.workers()[0].kill()
    spots.let_go()
    site.start_another_worker()
    for spot in ("waiting", "renaming", "reading", "asking", "paying"):
        spots.settle(spot)
    took = time.monotonic() - killed
    print(f"all settled {took:.1f} s after the kill")
    assert took < SETTLED_WITHIN_S


def test_a_worker_killed_between_decision_and_start_costs_less_than_a_minute(site: Site) -> None:
    spots = Spots(site)
    site.have_workers(1)
    spots.bring("decided")
    killed = time.monotonic()
    site.workers()[0].kill()
    site.start_another_worker()
    spots.settle("decided")
    took = time.monotonic() - killed
    print(f"settled {took:.1f} s after the kill")
    assert took < SETTLED_WITHIN_S


def _is_driven_by_another(run: Run, first: RealProcess) -> bool:
    now = fresh(run)
    return now.status == RunStatus.RUNNING and now.lease_owner.partition("-")[0] not in ("", str(first.pid))
