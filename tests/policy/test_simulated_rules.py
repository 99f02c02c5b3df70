"""A proposed approval rule is compared with recorded cards: with their approvers, and with the
approvals that they needed."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from agents.accounts.models import Membership, Role
from agents.approval_rules.models import ApproverGroup
from agents.platform.refusals import Invalid
from agents.policy.policy_drafts import PolicyChange
from agents.policy.rule_simulation import CardOutcome, JudgedCard
from agents.policy.typed_changes import read_changes
from agents.runs.models import Approval, ToolCall
from tests.approvals.test_votes import make_rule
from tests.features import feature
from tests.policy.proposed_rules import (
    EFFECT,
    approve,
    ask,
    propose,
    remove,
    run_simulation,
)
from tests.recorder import Recorder
from tests.standing_grants.granting import equals, grant
from tests.workshop import Workshop, asking, build_workshop, call
from tools.toolbox.conditions import Condition, Rule

pytestmark = pytest.mark.django_db(transaction=True)

FOUR = timedelta(hours=4)


@pytest.fixture(autouse=True)
def _recorder(recorder: Recorder) -> None:
    """Let the probes have effects."""


@pytest.fixture
def finance(workshop: Workshop) -> ApproverGroup:
    """A group whose only member is the admin."""
    group = ApproverGroup.objects.create(organization=workshop.organization, name="Finance")
    group.members.set([workshop.admin])
    return group


def judge_one(workshop: Workshop, *changes: PolicyChange) -> JudgedCard:
    """Return the only card affected by the changes."""
    report = run_simulation(workshop, *changes)
    assert report.total.outcomes.total() == 1
    (judged,) = report.listed
    return judged


def test_a_card_approved_by_one_person_needs_one_more_approval_under_a_rule_for_two_people(
    workshop: Workshop,
) -> None:
    card = approve(workshop, workshop.approver)
    judged = judge_one(workshop, propose(needed=2))
    assert (judged.row.pk, judged.outcome, judged.needs) == (
        card.pk,
        CardOutcome.MORE,
        "1 of 2: an approver",
    )
    report = run_simulation(workshop, propose(needed=1))
    assert (report.total.outcomes, report.listed) == (Counter([CardOutcome.ENOUGH]), [])


def test_an_approval_by_break_glass_is_left_out(workshop: Workshop, finance: ApproverGroup) -> None:
    rule = make_rule(workshop, group=finance)
    card = approve(workshop, workshop.admin)
    replaced = propose(id=rule.pk, group=finance.as_group(), needed=2)
    assert run_simulation(workshop, replaced).total.covered == 1
    assert card.ruling is not None
    Approval.objects.filter(pk=card.pk).update(ruling=card.ruling | {"breaks_glass": True})
    assert run_simulation(workshop, replaced).total.covered == 0


def test_only_cards_matching_the_rule_are_counted(workshop: Workshop) -> None:
    approve(workshop, workshop.approver)
    approve(workshop, workshop.approver, name="b")
    only_b = (Condition("name", Rule.EQUALS, "b"),)
    for terms, covered in (
        ({}, 2),
        ({"conditions": only_b}, 1),
        ({"tool": EFFECT}, 2),
        ({"tool": "probe.gate"}, 0),
        ({"employee_id": workshop.employee.pk}, 2),
        ({"employee_id": workshop.employee.pk + 1}, 0),
    ):
        report = run_simulation(workshop, propose(needed=2, **terms))
        assert (report.compared, report.total.covered) == (2, covered), terms
    assert run_simulation(workshop, propose(needed=2)).by_tool[EFFECT].changed == 2
    assert (
        run_simulation(workshop, propose(needed=2)).by_employee[workshop.employee.pk].changed == 2
    )


def test_a_card_that_a_rule_may_or_may_not_cover_is_counted_as_unsure(workshop: Workshop) -> None:
    approve(workshop, workshop.approver)
    from_five = (Condition("name", Rule.MINIMUM, 5),)
    for conditions, unsure in ((from_five, 1), ((), 0)):
        report = run_simulation(workshop, propose(needed=2, conditions=conditions))
        assert (report.total.covered, report.total.unsure) == (1, unsure)


def test_current_groups_are_used_without_a_recorded_ruling(
    workshop: Workshop, finance: ApproverGroup
) -> None:
    workshop.approve(ask(workshop))
    needs = propose(group=finance.as_group())
    assert judge_one(workshop, needs).needs == "needs someone from Finance"
    finance.members.add(workshop.approver)
    Membership.objects.filter(pk=workshop.approver.pk).update(role=Role.VIEWER)
    report = run_simulation(workshop, needs)
    assert report.total.outcomes == Counter([CardOutcome.ENOUGH]), (
        "whoever approved it could do so then"
    )
    assert (report.kept, report.assumed) == (0, 1)


def test_a_recorded_ruling_takes_precedence_over_current_groups(
    workshop: Workshop, finance: ApproverGroup
) -> None:
    rule = make_rule(workshop, tool=EFFECT)
    approve(workshop, workshop.admin)
    approve(workshop, workshop.approver)
    finance.members.set([workshop.approver])
    rule.delete()
    report = run_simulation(workshop, propose(group=finance.as_group()))
    assert report.total.outcomes == Counter([CardOutcome.ENOUGH, CardOutcome.MORE])
    assert [each.row.decided_by_id for each in report.listed] == [workshop.approver.user_id]
    assert (report.kept, report.assumed) == (2, 0)


def test_the_requester_of_a_call_is_found_even_if_no_ruling_names_them(workshop: Workshop) -> None:
    Membership.objects.filter(pk=workshop.operator.pk).update(role=Role.APPROVER)
    operator = Membership.objects.select_related("user", "organization").get(
        pk=workshop.operator.pk
    )
    approve(workshop, operator)
    judged = judge_one(workshop, propose(excludes_requesters=True))
    assert (judged.outcome, judged.needs) == (
        CardOutcome.MORE,
        "needs an approver, not acme-operator",
    )
    approve(workshop, workshop.approver)
    report = run_simulation(workshop, propose(excludes_requesters=True))
    assert report.total.outcomes == Counter([CardOutcome.ENOUGH, CardOutcome.MORE])


def test_the_second_group_counts_once_the_card_has_waited_long_enough(
    workshop: Workshop, finance: ApproverGroup
) -> None:
    board = ApproverGroup.objects.create(organization=workshop.organization, name="Board")
    board.members.set([workshop.approver])
    approve(workshop, workshop.approver)
    terms = {"group": finance.as_group(), "second_group": board.as_group(), "escalates_after": FOUR}
    assert judge_one(workshop, propose(**terms)).outcome == CardOutcome.MORE
    ToolCall.objects.update(created_at=F("created_at") - FOUR)
    assert run_simulation(workshop, propose(**terms)).total.outcomes == Counter(
        [CardOutcome.ENOUGH]
    )


def test_a_card_with_a_rule_that_no_current_member_can_meet_is_counted(
    workshop: Workshop, finance: ApproverGroup
) -> None:
    approve(workshop, workshop.approver)
    assert not judge_one(workshop, propose(group=finance.as_group())).is_stuck
    assert judge_one(workshop, propose(group=finance.as_group(), needed=2)).is_stuck
    board = ApproverGroup.objects.create(organization=workshop.organization, name="Board")
    later = {"group": board.as_group(), "second_group": finance.as_group(), "escalates_after": FOUR}
    assert not judge_one(workshop, propose(**later)).is_stuck, "it can be met once it has escalated"
    assert run_simulation(workshop, propose(group=board.as_group())).by_tool[EFFECT].stuck == 1


def test_other_rules_that_applied_at_the_time_still_apply(
    workshop: Workshop, finance: ApproverGroup
) -> None:
    rule = make_rule(workshop, group=finance)
    card = approve(workshop, workshop.admin)
    rule.delete()
    assert run_simulation(workshop, propose()).total.outcomes == Counter([CardOutcome.ENOUGH])
    assert card.ruling is not None
    card.ruling["person"]["groups"] = []
    Approval.objects.filter(pk=card.pk).update(ruling=card.ruling)
    assert judge_one(workshop, propose()).needs == f"needs someone from group {finance.pk}"


def test_a_changed_rule_replaces_the_rule_in_the_recorded_ruling(workshop: Workshop) -> None:
    rule = make_rule(workshop, needed=2)
    card = approve(workshop, workshop.approver, workshop.admin)
    judged = judge_one(workshop, propose(id=rule.pk, needed=1))
    assert (judged.row.pk, judged.outcome, judged.is_alarming) == (
        card.pk,
        CardOutcome.FEWER,
        False,
    )
    assert judge_one(workshop, propose(id=rule.pk, needed=3)).needs == "2 of 3: an approver"
    assert run_simulation(workshop, propose(id=rule.pk, needed=2)).total.outcomes == Counter(
        [CardOutcome.ENOUGH]
    )
    other = propose(id=rule.pk, tool="probe.gate", needed=2)
    assert judge_one(workshop, other).outcome == CardOutcome.FEWER, "it is no longer for this card"


def test_a_removed_rule_relaxes_only_its_own_cards(workshop: Workshop) -> None:
    approve(workshop, workshop.approver, name="before the rule")
    rule = make_rule(workshop, needed=2)
    card = approve(workshop, workshop.approver, workshop.admin)
    judged = judge_one(workshop, remove(rule))
    assert (judged.row.pk, judged.outcome) == (card.pk, CardOutcome.FEWER)
    report = run_simulation(workshop, propose(id=rule.pk, needed=3), remove(rule))
    assert report.total.outcomes == Counter([CardOutcome.FEWER]), (
        "the later change of a rule counts"
    )


def test_a_denied_card_that_the_change_would_approve_is_listed_first(workshop: Workshop) -> None:
    rule = make_rule(workshop, needed=2)
    denied = ask(workshop)
    workshop.approve(denied, by=workshop.admin)
    workshop.deny(denied)
    approve(workshop, workshop.approver, workshop.admin)
    report = run_simulation(workshop, remove(rule))
    assert report.total.outcomes == Counter({CardOutcome.FEWER: 2})
    assert report.listed[0].row.pk == denied.pk
    assert [each.is_alarming for each in report.listed] == [True, False]
    assert report.alarming_count == 1


def test_a_card_that_nobody_approved_stays_open(workshop: Workshop) -> None:
    workshop.deny(ask(workshop))
    ask(workshop, "b")
    report = run_simulation(workshop, propose(needed=2))
    assert (report.total.outcomes, report.listed) == (Counter({CardOutcome.OPEN: 2}), [])


def test_a_replaced_card_is_left_out(workshop: Workshop) -> None:
    edited = workshop.edit(ask(workshop), {"name": "b"})
    workshop.approve(edited, by=workshop.admin)
    assert judge_one(workshop, propose(needed=2)).row.pk == edited.pk


@feature(
    "The gate",
    "A simulated approval rule counts the cards that standing grants would have left to people",
    "agents/policy/rule_simulation.py",
)
def test_a_standing_grant_pauses_if_its_creator_could_not_decide_alone(
    workshop: Workshop, finance: ApproverGroup
) -> None:
    made = grant(workshop, EFFECT, equals("name", "a"))
    workshop.play(asking(call(EFFECT, name="a")))
    workshop.work()
    judged = judge_one(workshop, propose(needed=2))
    assert (judged.outcome, judged.needs, judged.row.grant_id) == (
        CardOutcome.PAUSED,
        "0 of 2: an approver",
        made.pk,
    )
    assert judge_one(workshop, propose(group=finance.as_group())).outcome == CardOutcome.PAUSED
    finance.members.add(workshop.approver)
    for terms in ({}, {"group": finance.as_group()}, {"excludes_requesters": True}):
        report = run_simulation(workshop, propose(**terms))
        assert report.total.outcomes == Counter([CardOutcome.PREAPPROVED]), terms


def test_an_approval_by_a_standing_grant_is_judged_by_its_recorded_ruling(
    workshop: Workshop, finance: ApproverGroup
) -> None:
    finance.members.add(workshop.approver)
    make_rule(workshop, group=finance)
    grant(workshop, EFFECT, equals("name", "a"))
    workshop.play(asking(call(EFFECT, name="a")))
    workshop.work()
    finance.members.clear()
    report = run_simulation(workshop, propose(group=finance.as_group()))
    assert (report.total.outcomes, report.kept) == (Counter([CardOutcome.PREAPPROVED]), 1)


def test_erased_and_damaged_records_are_counted_separately(workshop: Workshop) -> None:
    card = workshop.approve(ask(workshop))
    Approval.objects.filter(pk=card.pk).update(ruling={"rules": 7})
    report = run_simulation(workshop, propose(needed=2))
    assert (report.total.outcomes, report.total.covered) == (Counter([CardOutcome.UNREADABLE]), 0)
    Approval.objects.filter(pk=card.pk).update(ruling=None, params={})
    ToolCall.objects.update(judgment={"erased": True})
    condition = (Condition("name", Rule.EQUALS, "a"),)
    assert run_simulation(workshop, propose(conditions=condition)).total.outcomes == Counter(
        [CardOutcome.ERASED]
    )
    assert judge_one(workshop, propose(needed=2)).outcome == CardOutcome.MORE, "no value matters"


def test_cards_of_another_organization_never_appear(workshop: Workshop) -> None:
    other = build_workshop("globex")
    approve(workshop, workshop.approver)
    approve(other, other.approver)
    assert judge_one(workshop, propose(needed=2)).row.organization_id == workshop.organization.pk
    group = ApproverGroup.objects.create(organization=other.organization, name="Theirs")
    rule = make_rule(other)
    employee = propose(employee_id=other.employee.pk)
    for change in (propose(group=group.as_group()), propose(id=rule.pk), remove(rule), employee):
        sent = json.dumps([change.as_json()])
        with pytest.raises(Invalid, match="no longer exists"):
            read_changes(workshop.organization.pk, sent)
        assert read_changes(other.organization.pk, sent)


def test_the_number_of_queries_is_independent_of_the_number_of_cards_and_no_row_is_changed(
    workshop: Workshop,
) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            run_simulation(workshop, propose(needed=2, excludes_requesters=True))
        assert {query["sql"].lstrip("( ").split(" ", 1)[0] for query in queries} <= {
            "SELECT",
            "BEGIN",
            "DECLARE",
        }
        return len(queries)

    approve(workshop, workshop.approver)
    workshop.deny(ask(workshop))
    few = count()
    for name in "bcdef":
        approve(workshop, workshop.approver, name=name)
        workshop.deny(ask(workshop))
    assert count() == few
    assert run_simulation(workshop, propose(needed=2), limit=3).compared == 3


def test_the_change_survives_json_and_shows_current_names_of_groups(
    workshop: Workshop, finance: ApproverGroup
) -> None:
    board = ApproverGroup.objects.create(organization=workshop.organization, name="Board")
    change = propose(
        needed=2,
        group=finance.as_group(),
        second_group=board.as_group(),
        escalates_after=FOUR,
        excludes_requesters=True,
        tool=EFFECT,
        employee_id=workshop.employee.pk,
        conditions=(Condition("name", Rule.PREFIX, "a"),),
    )
    (read,) = read_changes(workshop.organization.pk, json.dumps([change.as_json()]))
    assert read == change
    assert read.describe({workshop.employee.pk: "Dana"}) == (
        "Approval rule “draft”: needs 2 people of Finance, not someone who asked for it; "
        f'after 4 hours also people of Board; for {EFFECT}, Dana, if name is a text that starts with "a"'
    )


@pytest.mark.parametrize(
    "spoiled",
    [
        {"needed": 0},
        {"needed": 11},
        {"needed": 1e999},
        {"group": []},
        {"escalates_after_s": 1e300},
        {"employee": [1]},
        {"level": "root"},
        {"conditions": [{"param": "x"}]},
        {"name": "a\0"},
        {"tool": "a\0"},
    ],
)
def test_a_manipulated_rule_is_refused(workshop: Workshop, spoiled: dict[str, Any]) -> None:
    stored = propose().as_json()
    assert read_changes(workshop.organization.pk, json.dumps([stored]))
    with pytest.raises(Invalid, match="Start over"):
        read_changes(
            workshop.organization.pk,
            json.dumps([{**stored, "rule": {**stored["rule"], **spoiled}}]),
        )
