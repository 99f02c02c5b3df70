"""Approval rules on stored cards: votes, the people whose votes count, and changes of people,
groups and rules after a vote."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.accounts.models import AuditEntry, Membership, Organization, Role
from agents.approval_rules.models import ApprovalRule, ApproverGroup, Deputy
from agents.approvals import attention, decisions
from agents.approvals.decisions import Decision
from agents.approvals.votes import CardStanding, find_standings
from agents.platform.refusals import ApprovalsChanged, Conflict, Forbidden
from agents.runs.models import Approval, ApprovalStatus, Message, Vote
from tests.features import feature
from tests.recorder import Recorder
from tests.workshop import Workshop, asking, call, payloads

pytestmark = pytest.mark.django_db(transaction=True)


def add_member(
    workshop: Workshop, name: str, *groups: ApproverGroup, role: Role = Role.APPROVER
) -> Membership:
    user = User.objects.create_user(name)
    member = Membership.objects.create(organization=workshop.organization, user=user, role=role)
    member.approver_groups.set(groups)
    return member


def make_rule(workshop: Workshop, **columns: Any) -> ApprovalRule:
    return ApprovalRule.objects.create(
        organization=workshop.organization, **{"name": "payments", **columns}
    )


@pytest.fixture
def finance(workshop: Workshop) -> ApproverGroup:
    return ApproverGroup.objects.create(organization=workshop.organization, name="Finance")


@pytest.fixture
def fay(workshop: Workshop, finance: ApproverGroup) -> Membership:
    return add_member(workshop, "fay", finance)


@pytest.fixture
def fred(workshop: Workshop, finance: ApproverGroup) -> Membership:
    return add_member(workshop, "fred", finance)


@pytest.fixture
def card(workshop: Workshop, recorder: Recorder, finance: ApproverGroup) -> Approval:
    """A waiting card that two people of Finance must approve."""
    make_rule(workshop, needed=2, group=finance, tool="probe.effect")
    workshop.play(asking(call("probe.effect", name="pay")))
    return workshop.card(workshop.work())


def standing_of(card: Approval) -> CardStanding:
    return find_standings(
        card.organization, [Approval.objects.select_related("run", "tool_call").get(pk=card.pk)]
    )[card.pk]


def test_a_card_waits_until_enough_people_of_the_group_have_approved(
    workshop: Workshop, recorder: Recorder, card: Approval, fay: Membership, fred: Membership
) -> None:
    assert workshop.approve(card, by=fay).status == ApprovalStatus.PENDING
    workshop.drive(card.run)
    assert not recorder.effects
    assert standing_of(card).needs == "1 of 2: someone from Finance"
    assert standing_of(card).approved_by == ["fay"]
    assert workshop.approve(card, by=fred).status == ApprovalStatus.APPROVED
    workshop.drive(card.run)
    assert sum(recorder.effects.values()) == 1
    actions = AuditEntry.objects.filter(subject=f"approval:{card.pk}").values_list(
        "actor", "action"
    )
    assert set(actions) >= {("user:fay", "vote_cast"), ("user:fred", "card_approved")}


@feature(
    "The gate", "The panel and REST tell of each vote and its withdrawal", "agents/runs/events.py"
)
def test_the_panel_and_rest_show_a_vote_and_its_withdrawal(
    workshop: Workshop, card: Approval, fay: Membership
) -> None:
    workshop.approve(card, by=fay)
    needed = "1 of 2: someone from Finance"
    about = {"approval_id": str(card.pk), "call_id": str(card.tool_call_id), "by": "fay"}
    (told,) = payloads(card.run, "approval_voted")
    assert told == about | {"still_needed": needed}
    client = Client()
    client.force_login(fay.user)
    shown = client.get(f"/api/approvals/{card.pk}").json()
    assert (shown["still_needed"], shown["votes"]) == (needed, [{"by": "fay", "deputy_for": None}])
    assert "fay approved. Still needed: 1 of 2" in " ".join(
        client.get(f"/runs/{card.run_id}/").content.decode().split()
    )
    workshop.undo(card, by=fay)
    withdrawn = about | {"still_needed": "0 of 2: someone from Finance", "withdrawn": True}
    assert payloads(card.run, "approval_voted")[1] == withdrawn


def test_an_approval_that_no_rule_counts_is_refused(workshop: Workshop, card: Approval) -> None:
    with pytest.raises(Forbidden) as refused:
        workshop.approve(card, by=workshop.admin)
    assert refused.value.detail == "0 of 2: someone from Finance"
    assert not Vote.objects.exists()


def test_nobody_can_vote_twice_and_a_repeated_request_gets_the_same_response(
    workshop: Workshop, card: Approval, fay: Membership
) -> None:
    for _ in range(2):
        assert (
            workshop.approve(card, by=fay, decision_id="click-1").status == ApprovalStatus.PENDING
        )
    with pytest.raises(Forbidden):
        workshop.approve(card, by=fay, decision_id="click-2")
    assert Vote.objects.count() == 1
    assert AuditEntry.objects.filter(action="vote_cast").count() == 1


def test_a_resent_vote_gets_its_response_even_if_the_card_was_claimed_meanwhile(
    workshop: Workshop, card: Approval, fay: Membership, fred: Membership
) -> None:
    workshop.approve(card, by=fay, decision_id="click-1")
    attention.take(fred, card.pk)
    assert workshop.approve(card, by=fay, decision_id="click-1").status == ApprovalStatus.PENDING
    assert Vote.objects.count() == 1


def test_a_vote_on_one_card_does_not_affect_other_cards(
    workshop: Workshop, recorder: Recorder, card: Approval, fay: Membership
) -> None:
    workshop.approve(card, by=fay)
    workshop.play(asking(call("probe.effect", name="pay again")))
    other = workshop.card(workshop.work())
    workshop.approve(other, by=fay)
    assert set(Vote.objects.filter(withdrawn_at=None).values_list("approval", flat=True)) == {
        card.pk,
        other.pk,
    }


def test_the_time_of_a_withdrawal_does_not_change_when_another_person_votes(
    workshop: Workshop, card: Approval, fay: Membership, fred: Membership
) -> None:
    workshop.approve(card, by=fay)
    workshop.undo(card, by=fay)
    withdrawn = Vote.objects.get().withdrawn_at
    workshop.approve(card, by=fred)
    assert Vote.objects.get(voter=fay.user).withdrawn_at == withdrawn


def test_a_card_for_several_people_does_not_offer_a_standing_grant(
    workshop: Workshop, card: Approval
) -> None:
    client = Client()
    client.force_login(workshop.approver.user)
    offer = f"/grants/new/?card={card.pk}"
    assert offer not in client.get(f"/approvals/{card.pk}/").content.decode()
    ApprovalRule.objects.update(needed=1)
    assert offer in client.get(f"/approvals/{card.pk}/").content.decode()


def test_the_first_denial_by_any_person_decides_the_card(
    workshop: Workshop, card: Approval, fay: Membership
) -> None:
    workshop.approve(card, by=fay)
    assert workshop.deny(card, by=workshop.approver).status == ApprovalStatus.DENIED


def test_an_edit_discards_all_votes(
    workshop: Workshop, card: Approval, fay: Membership, fred: Membership
) -> None:
    workshop.approve(card, by=fay)
    edited = workshop.edit(card, {"name": "other"}, by=workshop.admin)
    assert workshop.approve(edited, by=fred).status == ApprovalStatus.PENDING


@pytest.mark.parametrize("change", ["demoted", "switched off", "left the group", "left"])
def test_the_vote_of_a_person_who_lost_the_right_to_approve_does_not_count(
    workshop: Workshop, card: Approval, fay: Membership, fred: Membership, change: str
) -> None:
    workshop.approve(card, by=fay)
    if change == "demoted":
        Membership.objects.filter(pk=fay.pk).update(role=Role.VIEWER)
    elif change == "switched off":
        User.objects.filter(pk=fay.user_id).update(is_active=False)
    elif change == "left the group":
        fay.approver_groups.clear()
    else:
        fay.delete()
    assert workshop.approve(card, by=fred).status == ApprovalStatus.PENDING


def test_a_vote_can_be_withdrawn_while_the_card_waits(
    workshop: Workshop, card: Approval, fay: Membership, fred: Membership
) -> None:
    workshop.approve(card, by=fay)
    assert workshop.undo(card, by=fay).pk == card.pk
    assert workshop.approve(card, by=fred).status == ApprovalStatus.PENDING
    assert workshop.approve(card, by=fay).status == ApprovalStatus.APPROVED


def test_each_voter_can_undo_until_the_start_and_other_votes_stay(
    workshop: Workshop, card: Approval, fay: Membership, fred: Membership
) -> None:
    workshop.approve(card, by=fay)
    workshop.approve(card, by=fred, grace_s=60)
    again = workshop.undo(card, by=fay)
    assert (again.status, standing_of(again).approved_by) == (ApprovalStatus.PENDING, ["fred"])
    assert workshop.approve(again, by=fay).status == ApprovalStatus.APPROVED


def test_a_deputy_decides_for_their_principal_and_does_not_get_a_second_vote(
    workshop: Workshop, card: Approval, fay: Membership, fred: Membership
) -> None:
    now = timezone.now()
    times = {"starts_at": now - timedelta(hours=1), "ends_at": now + timedelta(hours=1)}
    Deputy.objects.create(member=fay, deputy=workshop.approver, **times)
    assert workshop.approve(card).status == ApprovalStatus.PENDING
    assert standing_of(card).approved_by == [f"{workshop.approver.user.get_username()} for fay"]
    with pytest.raises(Forbidden):
        workshop.approve(card, by=fay)
    Deputy.objects.update(ends_at=now - timedelta(minutes=1))
    assert workshop.approve(card, by=fred).status == ApprovalStatus.PENDING


@pytest.mark.parametrize("is_first", [True, False])
def test_a_person_and_their_deputy_cannot_complete_a_card_that_needs_two_people(
    workshop: Workshop, card: Approval, fay: Membership, fred: Membership, is_first: bool
) -> None:
    Deputy.objects.create(member=fay, deputy=fred, ends_at=timezone.now() + timedelta(hours=1))
    first, second = (fay, fred) if is_first else (fred, fay)
    assert workshop.approve(card, by=first).status == ApprovalStatus.PENDING
    with pytest.raises(Forbidden, match="together you count as one approval"):
        workshop.approve(card, by=second)
    assert standing_of(card).stuck == ["payments"]
    Deputy.objects.all().delete()
    assert workshop.approve(card, by=second).status == ApprovalStatus.APPROVED


def test_an_approval_is_refused_if_the_voter_has_not_seen_a_concurrent_approval(
    workshop: Workshop, card: Approval, fay: Membership, fred: Membership
) -> None:
    workshop.approve(card, by=fay)
    with pytest.raises(ApprovalsChanged) as refused:
        decisions.approve(fred, card.pk, Decision(card.digest, seen_approvals=""))
    assert refused.value.extra == {"approved_by": ["fay"], "needs": standing_of(card).needs}
    assert Vote.objects.filter(withdrawn_at=None).count() == 1
    assert (
        decisions.approve(fred, card.pk, Decision(card.digest, seen_approvals="fay")).status
        == ApprovalStatus.APPROVED
    )


def test_a_withdrawn_vote_stops_an_approval_that_relied_on_it(
    workshop: Workshop, card: Approval, fay: Membership, fred: Membership
) -> None:
    workshop.approve(card, by=fay)
    workshop.undo(card, by=fay)
    with pytest.raises(ApprovalsChanged, match="no approval is left"):
        decisions.approve(fred, card.pk, Decision(card.digest, seen_approvals="fay"))


def test_the_vote_of_a_deputy_who_left_does_not_count(
    workshop: Workshop, card: Approval, fay: Membership, fred: Membership
) -> None:
    ben = add_member(workshop, "ben")
    Deputy.objects.create(member=fay, deputy=ben, ends_at=timezone.now() + timedelta(hours=1))
    workshop.approve(card, by=ben)
    ben.delete()
    assert workshop.approve(card, by=fred).status == ApprovalStatus.PENDING


def test_a_rule_applies_only_to_matching_cards(
    workshop: Workshop, recorder: Recorder, finance: ApproverGroup
) -> None:
    other = Organization.objects.create(name="Globex", slug="globex")
    ApprovalRule.objects.create(organization=other, name="all", needed=3)
    make_rule(workshop, tool="probe.knock", group=finance)
    make_rule(workshop, name="off", group=finance, is_active=False)
    workshop.play(asking(call("probe.effect", name="pay")))
    assert workshop.approve(workshop.card(workshop.work())).status == ApprovalStatus.APPROVED


def test_an_unreadable_rule_prevents_approval_and_is_reported(
    workshop: Workshop, card: Approval, fay: Membership
) -> None:
    ApprovalRule.objects.update(conditions=["x"])
    with pytest.raises(Forbidden):
        workshop.approve(card, by=fay)
    assert standing_of(card).stuck == ["payments"]


def test_a_rule_that_nobody_can_meet_is_reported(
    workshop: Workshop, card: Approval, fay: Membership, fred: Membership
) -> None:
    assert not standing_of(card).stuck
    fred.delete()
    assert standing_of(card).stuck == ["payments"]
    ApprovalRule.objects.update(name="")
    assert standing_of(card).stuck, "a rule without a name is a rule"


def test_a_vote_on_behalf_of_another_person_never_becomes_the_deputys_own_vote(
    workshop: Workshop, card: Approval, fay: Membership, finance: ApproverGroup
) -> None:
    ben = add_member(workshop, "ben")
    Deputy.objects.create(member=fay, deputy=ben, ends_at=timezone.now() + timedelta(hours=1))
    workshop.approve(card, by=ben)
    ben.approver_groups.add(finance)
    Deputy.objects.all().delete()
    assert standing_of(card).approved_by == []


def test_a_vote_can_be_withdrawn_only_once(
    workshop: Workshop, card: Approval, fay: Membership
) -> None:
    workshop.approve(card, by=fay)
    workshop.undo(card, by=fay)
    with pytest.raises(Conflict):
        workshop.undo(card, by=fay)
    assert AuditEntry.objects.filter(action="vote_withdrawn").count() == 1


def test_a_deputy_of_a_demoted_person_approves_in_their_own_name(
    workshop: Workshop, card: Approval, fay: Membership, fred: Membership, finance: ApproverGroup
) -> None:
    ben = add_member(workshop, "ben")
    Deputy.objects.create(member=fay, deputy=ben, ends_at=timezone.now() + timedelta(hours=1))
    assert workshop.approve(card, by=ben).status == ApprovalStatus.PENDING
    assert standing_of(card).approved_by == ["ben for fay"]
    Membership.objects.filter(pk=fay.pk).update(role=Role.VIEWER)
    ben.approver_groups.add(finance)
    assert workshop.approve(card, by=ben).status == ApprovalStatus.PENDING
    assert standing_of(card).approved_by == ["ben"]
    Membership.objects.filter(pk=fay.pk).update(role=Role.APPROVER)
    assert standing_of(card).approved_by == ["ben"], "the vote for fay made room for good"


@pytest.mark.parametrize("name", ["fay", "fred"])
def test_a_card_with_a_relaxed_rule_needs_one_more_approval_to_complete(
    workshop: Workshop,
    recorder: Recorder,
    card: Approval,
    fay: Membership,
    fred: Membership,
    name: str,
) -> None:
    """The votes are already sufficient, but only another approval completes the card."""
    assert workshop.approve(card, by=fay).status == ApprovalStatus.PENDING
    ApprovalRule.objects.update(needed=1)
    assert standing_of(card).needs == "one more approval, because the rules have changed"
    assert standing_of(card).list_barred() == ["acme-approver", "acme-admin"], (
        "they are not of Finance"
    )
    assert not standing_of(card).stuck
    with pytest.raises(Forbidden):
        workshop.approve(card)
    assert (
        workshop.approve(card, by={"fay": fay, "fred": fred}[name]).status
        == ApprovalStatus.APPROVED
    )
    workshop.drive(card.run)
    assert sum(recorder.effects.values()) == 1


def test_a_resent_request_does_not_complete_a_card_with_a_relaxed_rule(
    workshop: Workshop, card: Approval, fay: Membership
) -> None:
    workshop.approve(card, by=fay, decision_id="click-1")
    ApprovalRule.objects.update(needed=1)
    assert workshop.approve(card, by=fay, decision_id="click-1").status == ApprovalStatus.PENDING
    assert workshop.approve(card, by=fay, decision_id="click-2").status == ApprovalStatus.APPROVED
    assert Vote.objects.count() == 1


def test_a_vote_that_no_rule_counts_does_not_use_up_the_right_to_vote(
    workshop: Workshop, card: Approval, fay: Membership, fred: Membership
) -> None:
    Deputy.objects.create(
        member=fay, deputy=workshop.approver, ends_at=timezone.now() + timedelta(hours=1)
    )
    workshop.approve(card)
    ApprovalRule.objects.update(excludes_requesters=True)
    Message.objects.create(run=card.run, number=2, author=workshop.approver.user, text="Go on.")
    assert workshop.approve(card, by=fay).status == ApprovalStatus.PENDING
    assert workshop.approve(card, by=fred).status == ApprovalStatus.APPROVED


def test_rest_shows_missing_approvals_and_a_bulk_decision_says_that_a_vote_is_not_sufficient(
    workshop: Workshop, card: Approval, fay: Membership, fred: Membership
) -> None:
    client = Client()
    client.force_login(fay.user)
    one = {"approval_id": str(card.pk), "action": "approve", "digest": card.digest}
    many = client.post(
        "/api/approvals/decide", {"decisions": [one]}, content_type="application/json"
    ).json()
    assert (many["outcomes"][0]["status"], many["outcomes"][0]["code"]) == (202, "voted")
    detail = client.get(f"/api/approvals/{card.pk}").json()
    assert (detail["status"], detail["needs"], detail["approved_by"]) == (
        "pending",
        "1 of 2: someone from Finance",
        ["fay"],
    )
    page = client.get(f"/approvals/{card.pk}/").content.decode()
    assert "Still needed:" in page
    (applied,) = detail["rules_applied"]
    assert applied == "“payments” applies: it covers probe.effect"
    assert f"{applied}." in page
    assert "data-is-barred" in page
    client.force_login(fred.user)
    response = client.post(
        f"/api/approvals/{card.pk}/approve",
        {"digest": card.digest},
        content_type="application/json",
    )
    assert (response.json()["status"], response.json()["needs"]) == ("approved", "")
