"""With the real durations, the runs of a killed worker settle within a minute, and a worker that
shuts down hands its run over immediately."""

from __future__ import annotations

import time

from agents.runs.models import Run, RunStatus
from tests.awaiting import await_that
from tests.faults.site import Site, reload, stopping
from tests.faults.spots import SETTLED_WITHIN_S, Spots
from tests.processes import RealProcess
from tests.workshop import passes

TIMING_SCALE = 1.0
AT_ONCE_S = 20.0


def test_a_worker_that_shuts_down_during_a_model_call_hands_its_run_over_immediately(
    site: Site,
) -> None:
    site.have_workers(2)
    site.model.hold()
    run = site.submit_to_model()
    site.model.wait_for_held(1, timeout=30)
    first = site.driver_of(run)
    with stopping(first):
        # Before it stops receiving messages, the worker may acquire the lease once more and give it
        # back.
        duration = await_that(
            lambda: _is_driven_by_another(run, first), "another worker drives the run", AT_ONCE_S
        )
        print(f"handed over {duration:.2f} s after SIGTERM")
        site.model.wait_for_requests(2)
        site.model.release()
        done = site.await_status(run, RunStatus.SUCCEEDED)
    assert (done.crash_count, len(passes(run))) == (0, 1)
    assert first.exit_code == 0


def test_runs_at_five_points_settle_within_a_minute_after_their_worker_is_killed(
    site: Site,
) -> None:
    spots = Spots(site)
    site.have_workers(1)
    for spot in ("waiting", "asking", "reading", "paying", "renaming"):
        spots.bring(spot)
    killed = time.monotonic()
    site.workers()[0].kill()
    spots.release()
    site.start_another_worker()
    for spot in ("waiting", "renaming", "reading", "asking", "paying"):
        spots.settle(spot)
    duration = time.monotonic() - killed
    print(f"all settled {duration:.1f} s after the kill")
    assert duration < SETTLED_WITHIN_S


def test_an_approved_call_settles_within_a_minute_if_its_worker_is_killed_before_the_start(
    site: Site,
) -> None:
    spots = Spots(site)
    site.have_workers(1)
    spots.bring("decided")
    killed = time.monotonic()
    site.workers()[0].kill()
    site.start_another_worker()
    spots.settle("decided")
    duration = time.monotonic() - killed
    print(f"settled {duration:.1f} s after the kill")
    assert duration < SETTLED_WITHIN_S


def _is_driven_by_another(run: Run, first: RealProcess) -> bool:
    now = reload(run)
    return now.status == RunStatus.RUNNING and now.lease_owner.partition("-")[0] not in (
        "",
        str(first.pid),
    )
