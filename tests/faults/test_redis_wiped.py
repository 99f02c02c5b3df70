"""Redis is wiped while runs wait and pages are open: decisions resume the runs within 10 s, and
sockets stay open."""

from __future__ import annotations

import json
import time
import urllib.request

import pytest

from agents.accounts.membership import issue_token
from agents.runs.models import Approval, Event, RunStatus
from gadget_site.management.processes import build_web_process
from tests.awaiting import await_that
from tests.faults.follower import Follower, SocketOpener
from tests.faults.site import Site, effect

TIMING_SCALE = 1.0
RESUMES_WITHIN_S = 10


def _approve_over_rest(site: Site, card: Approval) -> None:
    secret = issue_token(site.workshop.approver, "fault test")[1]
    request = urllib.request.Request(
        f"{site.installation.url}/api/approvals/{card.pk}/approve",
        data=json.dumps({"digest": card.digest}).encode(),
        headers={"Authorization": f"Bearer {secret}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        assert response.status == 200


@pytest.mark.alone
def test_a_decision_after_the_wipe_resumes_the_run_and_appears_on_the_socket(site: Site) -> None:
    site.have_workers(1, build_web_process())
    over_rest, without_a_hint = (
        site.submit("Pay", effect("pay")),
        site.submit("Pay again", effect("again")),
    )
    cards = [site.await_card(over_rest), site.await_card(without_a_hint)]
    with Follower(SocketOpener(site.installation, site.workshop.operator), over_rest) as follower:
        await_that(
            lambda: "run_waiting" in follower.types, "the socket shows that the run waits", 10
        )
        site.installation.wipe_redis()
        decided = time.monotonic()
        _approve_over_rest(site, cards[0])
        site.workshop.approve(cards[1])
        for run in (over_rest, without_a_hint):
            site.await_status(run, RunStatus.SUCCEEDED, seconds=RESUMES_WITHIN_S)
        print(f"both done {time.monotonic() - decided:.1f} s after the decision")
        stored = list(
            Event.objects.filter(run=over_rest).order_by("seq").values_list("seq", "type")
        )
        await_that(lambda: "run_finished" in follower.types, "the socket shows the end", 10)
        assert list(zip(follower.numbers, follower.types, strict=True)) == stored
        assert follower.connections == 1
    assert sorted(site.recorder.effects.values()) == [1, 1]
