"""kill -9 of workers while they renew the cards of a withheld bulk: no call starts, and each card
is renewed once."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

from django.db.models import F

from agents.approvals import bulk, decisions
from agents.approvals.withheld_bulks import read_state, withhold
from agents.runs.models import Approval, ApprovalStatus, RunStatus
from tests import sampling
from tests.awaiting import await_that
from tests.faults.site import Pass, Site
from tests.features import feature
from tests.workshop import asking, call

RUNS, CALLS = 3, 15
EVERYTHING = RUNS * CALLS
KILLS = 20 if sampling.is_whole() else 3


@feature(
    "The inbox", "A killed worker loses no card of an undone bulk", "agents/worker/card_renewer.py"
)
def test_the_cards_of_a_withheld_bulk_are_renewed_once_even_if_workers_are_killed(
    site: Site,
) -> None:
    site.have_workers(1)
    runs = [site.submit(f"Task {number}", build_pass()) for number in range(RUNS)]
    for run in runs:
        site.await_status(run, RunStatus.WAITING)
    bulk_id = uuid4()
    for run in runs:
        items = [
            (card.pk, "approve", decisions.Decision(digest=card.digest, grace_s=60))
            for card in site.workshop.cards(run)
        ]
        assert {one.status for one in bulk.decide_many(site.workshop.approver, items, bulk_id)} == {
            200
        }
    assert withhold(site.workshop.approver, bulk_id).left == EVERYTHING
    Approval.objects.update(
        start_after=F("start_after") - timedelta(seconds=120), valid_until=F("expires_at")
    )
    kills = 0
    while count_left(site, bulk_id) > 0:
        left = count_left(site, bulk_id)
        await_that(lambda: count_left(site, bulk_id) < left, "a card is renewed")  # noqa: B023
        if count_left(site, bulk_id) > 0 and kills < KILLS:
            (victim,) = site.workers()
            victim.kill()
            kills += 1
            site.start_another_worker()
    assert kills > 0, "the worker died in the middle"
    state = read_state(site.workshop.approver, bulk_id)
    assert (state.cards, state.started, state.waiting_again) == (EVERYTHING, 0, EVERYTHING)
    waiting = Approval.objects.filter(status=ApprovalStatus.PENDING)
    assert list(waiting.values_list("sequence", flat=True)) == [2] * EVERYTHING
    assert not site.recorder.effects


def build_pass() -> Pass:
    return asking(*[call("probe.effect", name=str(number)) for number in range(CALLS)])


def count_left(site: Site, bulk_id: UUID) -> int:
    return Approval.objects.filter(bulk_id=bulk_id, status=ApprovalStatus.APPROVED).count()
