"""A thousand cards decided in bulk over REST: they are approved, undone before any call has
started, renewed, and denied."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from agents.runs.models import Approval, ApprovalStatus, Run, RunStatus
from tests.awaiting import await_that
from tests.bench.browser import Browser, browsing
from tests.bench.figures import Figure, figure
from tests.bench.site import Worksite, worksite
from tests.processes import Installation

RUNS, CARDS_IN_A_RUN = 50, 20
CARDS = RUNS * CARDS_IN_A_RUN
AT_ONCE = 50
"""The number of cards that one request of the inbox decides."""
GRACE_S = 60
PATIENCE_S = 600
AIM_DECIDING_S, AIM_UNDO_MS = 5.0, 300.0


def thousand(installation: Installation) -> list[Figure]:
    """Measure the bulk approval, undo, renewal and denial only once each, because repetitions would
    add little with a thousand cards."""
    with worksite([{"text": "Done."}]) as site, browsing(installation.url, site.token) as browser:
        _ask(site)
        bulk_id = str(uuid4())
        approved = _measure(lambda: _decide(browser, "approve", bulk_id, {"grace_s": GRACE_S}))
        undone = _measure(lambda: browser.post(f"/approvals/bulks/{bulk_id}/undo", {}))
        renewed = _measure(
            lambda: await_that(lambda: _count_pending() == CARDS, "all wait again", PATIENCE_S)
        )
        assert not Approval.objects.filter(bulk_id=bulk_id, status=ApprovalStatus.CONSUMED).exists()
        denied = _measure(lambda: _decide(browser, "deny", str(uuid4()), {"reason": "Not needed"}))
    return [
        figure(f"bulk: approve {CARDS:,} cards", "s", [approved], AIM_DECIDING_S),
        figure(
            f"bulk: answer to the undo of {CARDS:,} approvals", "ms", [1000 * undone], AIM_UNDO_MS
        ),
        figure(f"bulk: until {CARDS:,} cards are renewed", "s", [renewed]),
        figure(f"bulk: deny {CARDS:,} cards", "s", [denied], AIM_DECIDING_S),
    ]


def _measure(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


def _ask(site: Worksite) -> None:
    """Start every run, and wait until its cards are pending."""
    for run in range(RUNS):
        names = [f"{run}-{number}" for number in range(CARDS_IN_A_RUN)]
        site.enqueue(
            {"calls": [{"tool": "probe.effect", "params": {"name": name}} for name in names]}
        )
        waiting = Run.objects.filter(pk=site.submit().pk, status=RunStatus.WAITING)
        await_that(waiting.exists, "the run waits")


def _count_pending() -> int:
    return Approval.objects.filter(status=ApprovalStatus.PENDING).count()


def _decide(browser: Browser, action: str, bulk_id: str, terms: dict[str, Any]) -> None:
    cards = list(
        Approval.objects.filter(status=ApprovalStatus.PENDING)
        .order_by("pk")
        .values_list("pk", "digest")
    )
    assert len(cards) == CARDS
    for at in range(0, CARDS, AT_ONCE):
        decided = [
            {"approval_id": pk, "action": action, "digest": digest, **terms}
            for pk, digest in cards[at : at + AT_ONCE]
        ]
        answer = browser.post("/approvals/decide", {"decisions": decided, "bulk_id": bulk_id})
        assert {one["status"] for one in answer["outcomes"]} == {200}
