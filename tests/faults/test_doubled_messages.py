"""A queue message is only a hint: fifty copies start one driver."""

from __future__ import annotations

import redis

from agents.platform.notify import ADVANCE_JOB
from agents.runs.models import RunStatus
from tests.awaiting import await_that
from tests.faults.site import Site, reload
from tests.workshop import event_types, passes

COPIES = 50


def _all_are_taken(site: Site) -> bool:
    with redis.Redis.from_url(site.installation.redis.url) as client:
        return not client.llen(site.installation.queue) and not client.hlen("unacked")


def test_fifty_copies_of_a_message_start_only_one_driver(site: Site) -> None:
    site.have_workers(2)
    site.model.hold()
    run = site.submit_to_model()
    site.send(ADVANCE_JOB, *[run] * COPIES)
    site.model.wait_for_held(1, timeout=30)
    site.send(ADVANCE_JOB, *[run] * COPIES)
    await_that(lambda: _all_are_taken(site), "every copy has been taken", 20)
    assert reload(run).lease_epoch == 1
    site.model.release()
    done = site.await_status(run, RunStatus.SUCCEEDED)
    site.send(ADVANCE_JOB, *[run] * COPIES)
    await_that(lambda: _all_are_taken(site), "every copy has been taken", 20)
    assert reload(run).lease_epoch == done.lease_epoch == 1
    assert len(site.model.requests) == len(passes(run)) == 1
    assert event_types(run) == ["run_started", "pass_started", "assistant_message", "run_finished"]
