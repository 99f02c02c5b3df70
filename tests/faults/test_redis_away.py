"""While Redis is unavailable, runs still start, wait for decisions and end, and hints are not
recorded as sent."""

from __future__ import annotations

import time

from agents.runs.models import RunStatus
from gadget_site.management.processes import build_sweeper_process, build_worker_process
from tests.awaiting import await_that
from tests.faults.site import Site, effect, reload


def test_a_run_can_start_wait_for_a_decision_and_end_without_redis(site: Site) -> None:
    site.have_workers(1)
    with site.installation.without_redis():
        run = site.submit("Pay", effect("pay"))
        site.approve_next(run)
        site.await_status(run, RunStatus.SUCCEEDED)
    assert sorted(site.recorder.effects.values()) == [1]


def test_without_redis_hints_are_not_recorded_as_sent_and_a_new_worker_drives_the_run(
    site: Site,
) -> None:
    site.have_workers(0)
    with site.installation.without_redis():
        site.start(build_sweeper_process())
        run = site.submit("Pay", effect("pay"))
        swept_until = time.monotonic() + 0.5
        await_that(lambda: time.monotonic() > swept_until, "the sweeper has looked a few times")
        assert reload(run).hinted_at is None
        site.installation.spawn(build_worker_process(9))
        site.approve_next(run)
        site.await_status(run, RunStatus.SUCCEEDED)
