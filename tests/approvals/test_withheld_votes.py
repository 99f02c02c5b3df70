"""Undoing a bulk approval also withdraws its votes on cards that need more people."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from agents.accounts.models import Membership
from agents.approval_rules.models import ApproverGroup
from agents.approvals import bulk
from agents.approvals.decisions import Decision
from agents.approvals.votes import list_voters
from agents.approvals.withheld_bulks import read_state, renew_some, withhold
from agents.platform.refusals import NotFound
from agents.runs.models import Approval, ApprovalStatus, Run, Vote, WithheldBulk
from tests.approvals.test_votes import fay, finance, fred, make_rule, standing_of  # noqa: F401
from tests.approvals.test_withheld_bulks import renew_all
from tests.recorder import Recorder
from tests.workshop import Workshop, asking, call, payloads

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(workshop: Workshop, recorder: Recorder, finance: ApproverGroup) -> Run:  # noqa: F811
    """A run with two waiting cards; each needs the approval of two people of Finance."""
    make_rule(workshop, needed=2, group=finance, tool="probe.effect")
    workshop.play(asking(call("probe.effect", name="one"), call("probe.effect", name="two")))
    return workshop.work()


def vote_together(workshop: Workshop, run: Run, member: Membership) -> UUID:
    bulk_id = uuid4()
    items = [(card.pk, "approve", Decision(card.digest)) for card in workshop.cards(run)]
    assert {one.status for one in bulk.decide_many(member, items, bulk_id)} == {202}
    return bulk_id


def start_now(run: Run) -> None:
    Approval.objects.filter(run=run, status=ApprovalStatus.APPROVED).update(
        start_after=timezone.now()
    )


def test_votes_of_an_undone_bulk_do_not_count(
    workshop: Workshop,
    recorder: Recorder,
    run: Run,
    fay: Membership,  # noqa: F811
    fred: Membership,  # noqa: F811
) -> None:
    cards = workshop.cards(run)
    bulk_id = vote_together(workshop, run, fay)
    assert standing_of(cards[0]).approved_by == ["fay"], "control"
    withhold(fay, bulk_id)
    assert list_voters(run.organization_id) == {}
    assert [workshop.approve(card, by=fred).status for card in cards] == [
        ApprovalStatus.PENDING
    ] * 2
    workshop.drive(run)
    assert not recorder.effects
    assert read_state(fay, bulk_id).text == "2 votes withdrawn."


def test_only_the_votes_of_an_undone_bulk_are_withdrawn_and_the_panel_shows_it(
    workshop: Workshop,
    run: Run,
    fay: Membership,  # noqa: F811
    fred: Membership,  # noqa: F811
) -> None:
    kept = vote_together(workshop, run, fred)
    Vote.objects.update(bulk_id=None)
    workshop.undo(workshop.cards(run)[0], by=fred)
    bulk_id = uuid4()
    first = workshop.cards(run)[0]
    assert (
        bulk.decide_many(fay, [(first.pk, "approve", Decision(first.digest))], bulk_id)[0].status
        == 202
    )
    withhold(fay, bulk_id)
    renew_all()
    assert kept != bulk_id
    assert [vote.voter_id for vote in Vote.objects.filter(withdrawn_at=None)] == [fred.user_id]
    told = [each for each in payloads(run, "approval_voted") if each["by"] == "fay"]
    assert [each.get("withdrawn", False) for each in told] == [False, True]
    assert told[1]["still_needed"] == "0 of 2: someone from Finance"
    assert not renew_some()


def test_a_card_that_needs_a_vote_of_an_undone_bulk_does_not_start_and_keeps_the_other_vote(
    workshop: Workshop,
    recorder: Recorder,
    run: Run,
    fay: Membership,  # noqa: F811
    fred: Membership,  # noqa: F811
) -> None:
    bulk_id = vote_together(workshop, run, fay)
    for card in workshop.cards(run):
        assert workshop.approve(card, by=fred, grace_s=60).status == ApprovalStatus.APPROVED
    withhold(fay, bulk_id)
    start_now(run)
    workshop.drive(run)
    assert not recorder.effects
    renew_all()
    assert [standing_of(card).approved_by for card in workshop.cards(run)] == [["fred"], ["fred"]]
    assert all("fay undid the approval." in card.why for card in workshop.cards(run))


def test_a_bulk_that_another_person_undid_under_the_same_id_does_not_block_a_card(
    workshop: Workshop,
    recorder: Recorder,
    run: Run,
    fay: Membership,  # noqa: F811
    fred: Membership,  # noqa: F811
) -> None:
    bulk_id = vote_together(workshop, run, fay)
    with pytest.raises(NotFound):
        withhold(fred, bulk_id)
    WithheldBulk.objects.create(
        organization=workshop.organization, user=workshop.admin.user, bulk_id=bulk_id
    )
    WithheldBulk.objects.create(organization=workshop.organization, user=fay.user, bulk_id=uuid4())
    for card in workshop.cards(run):
        workshop.approve(card, by=fred)
    workshop.drive(run)
    assert sum(recorder.effects.values()) == 2
