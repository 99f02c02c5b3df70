"""A drafted approval rule is compared with recorded cards: with the people who approved them, and what they needed."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from agents.accounts.models import Membership, Organization, Role
from agents.approval_rules.models import ApprovalRule, ApproverGroup
from agents.approvals.models import Approval, ApprovalStatus, Vote
from agents.platform.refusals import Forbidden, Invalid
from agents.policy.drafts import ChangeKind, PolicyChange
from agents.policy.rule_simulation import CardOutcome, JudgedCard, RuleReport, simulate_rules
from agents.policy.typed_changes import read_changes
from agents.runs.models import ToolCall
from tests.recorder import Recorder
from tests.standing_grants.granting import equals, grant
from tests.workshop import Workshop, asking, build_workshop, call
from tools.toolbox.approval_rules import Group, RuleTerms
from tools.toolbox.conditions import Condition, Rule

pytestmark = pytest.mark.django_db(transaction=True)

EFFECT = "probe.effect"
FOUR = timedelta(hours=4)


@pytest.fixture(autouse=True)
def _recorder(recorder: Recorder) -> None:
    """Let the probes have effects."""


@pytest.fixture
def finance(workshop: Workshop) -> ApproverGroup:
    """A group with the admin alone."""
    group = ApproverGroup.objects.create(organization=workshop.organization, name="Finance")
    group.members.set([workshop.admin])
    return group


def ask(workshop: Workshop, name: str = "a") -> Approval:
    """Let the employee ask for a call, and return its waiting card."""
    workshop.play(asking(call(EFFECT, name=name)))
    return workshop.card(workshop.work())


def approve(workshop: Workshop, *people: Membership, name: str = "a") -> Approval:
    """Let these people approve a new card, and its call start."""
    card = ask(workshop, name)
    for person in people:
        workshop.approve(card, by=person)
    workshop.drive(card.run)
    return Approval.objects.get(pk=card.pk)


def make_rule(workshop: Workshop, **columns: Any) -> ApprovalRule:
    return ApprovalRule.objects.create(organization=workshop.organization, **{"name": "payments", **columns})


def draft(**terms: Any) -> PolicyChange:
    return PolicyChange(ChangeKind.APPROVAL_RULE, rule=RuleTerms(**{"id": 0, "name": "draft", **terms}))


def remove(rule: ApprovalRule) -> PolicyChange:
    return PolicyChange(ChangeKind.NO_APPROVAL_RULE, rule=RuleTerms(rule.pk, rule.name))


def run_simulation(workshop: Workshop, *changes: PolicyChange, limit: int = 1_000) -> RuleReport:
    return simulate_rules(Organization.objects.get(pk=workshop.organization.pk), changes, limit)


def judge_one(workshop: Workshop, *changes: PolicyChange) -> JudgedCard:
    """Return the only card that the changes concern, which is one that changes."""
    report = run_simulation(workshop, *changes)
    assert report.total.outcomes.total() == 1
    (judged,) = report.listed
    return judged


def test_a_card_that_one_person_approved_needs_two_under_a_rule_for_two(workshop: Workshop) -> None:
    card = approve(workshop, workshop.approver)
    judged = judge_one(workshop, draft(needed=2))
    assert (judged.row.pk, judged.outcome, judged.needs) == (card.pk, CardOutcome.MORE, "1 of 2: an approver")
    report = run_simulation(workshop, draft(needed=1))
    assert (report.total.outcomes, report.listed) == (Counter([CardOutcome.ENOUGH]), [])


def test_a_card_counts_only_if_the_rule_is_for_it(workshop: Workshop) -> None:
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
        report = run_simulation(workshop, draft(needed=2, **terms))
        assert (report.compared, report.total.covered) == (2, covered), terms
    assert run_simulation(workshop, draft(needed=2)).by_tool[EFFECT].changed == 2
    assert run_simulation(workshop, draft(needed=2)).by_employee[workshop.employee.pk].changed == 2


def test_without_a_kept_ruling_the_groups_of_today_are_used(workshop: Workshop, finance: ApproverGroup) -> None:
    workshop.approve(ask(workshop))
    needs = draft(group=finance.as_group())
    assert judge_one(workshop, needs).needs == "needs someone of Finance"
    finance.members.add(workshop.approver)
    Membership.objects.filter(pk=workshop.approver.pk).update(role=Role.VIEWER)
    report = run_simulation(workshop, needs)
    assert report.total.outcomes == Counter([CardOutcome.ENOUGH]), "whoever approved it could do so then"
    assert (report.kept, report.assumed) == (0, 1)


def test_a_kept_ruling_counts_instead_of_the_groups_of_today(workshop: Workshop, finance: ApproverGroup) -> None:
    rule = make_rule(workshop, tool=EFFECT)
    approve(workshop, workshop.admin)
    approve(workshop, workshop.approver)
    finance.members.set([workshop.approver])
    rule.delete()
    report = run_simulation(workshop, draft(group=finance.as_group()))
    assert report.total.outcomes == Counter([CardOutcome.ENOUGH, CardOutcome.MORE])
    assert [each.row.decided_by_id for each in report.listed] == [workshop.approver.user_id]
    assert (report.kept, report.assumed) == (2, 0)


def test_whoever_asked_for_a_call_is_found_even_if_no_ruling_names_them(workshop: Workshop) -> None:
    Membership.objects.filter(pk=workshop.operator.pk).update(role=Role.APPROVER)
    operator = Membership.objects.select_related("user", "organization").get(pk=workshop.operator.pk)
    approve(workshop, operator)
    judged = judge_one(workshop, draft(excludes_requesters=True))
    assert (judged.outcome, judged.needs) == (CardOutcome.MORE, "needs an approver, not acme-operator")
    approve(workshop, workshop.approver)
    report = run_simulation(workshop, draft(excludes_requesters=True))
    assert report.total.outcomes == Counter([CardOutcome.ENOUGH, CardOutcome.MORE])


def test_people_of_the_second_group_count_once_the_card_had_waited_long_enough(
    workshop: Workshop, finance: ApproverGroup
) -> None:
    board = ApproverGroup.objects.create(organization=workshop.organization, name="Board")
    board.members.set([workshop.approver])
    approve(workshop, workshop.approver)
    terms = {"group": finance.as_group(), "second_group": board.as_group(), "escalates_after": FOUR}
    assert judge_one(workshop, draft(**terms)).outcome == CardOutcome.MORE
    ToolCall.objects.update(created_at=F("created_at") - FOUR)
    assert run_simulation(workshop, draft(**terms)).total.outcomes == Counter([CardOutcome.ENOUGH])


def test_a_rule_that_nobody_of_today_can_meet_is_counted(workshop: Workshop, finance: ApproverGroup) -> None:
    approve(workshop, workshop.approver)
    assert not judge_one(workshop, draft(group=finance.as_group())).is_stuck
    assert judge_one(workshop, draft(group=finance.as_group(), needed=2)).is_stuck
    board = ApproverGroup.objects.create(organization=workshop.organization, name="Board")
    later = {"group": board.as_group(), "second_group": finance.as_group(), "escalates_after": FOUR}
    assert not judge_one(workshop, draft(**later)).is_stuck, "it can be met once it has escalated"
    assert run_simulation(workshop, draft(group=board.as_group())).by_tool[EFFECT].stuck == 1


def test_the_other_rules_of_the_moment_still_hold(workshop: Workshop, finance: ApproverGroup) -> None:
    rule = make_rule(workshop, group=finance)
    card = approve(workshop, workshop.admin)
    rule.delete()
    assert run_simulation(workshop, draft()).total.outcomes == Counter([CardOutcome.ENOUGH])
    assert card.ruling is not None
    card.ruling["person"]["groups"] = []
    Approval.objects.filter(pk=card.pk).update(ruling=card.ruling)
    assert judge_one(workshop, draft()).needs == f"needs someone of group {finance.pk}"


def test_a_changed_rule_replaces_the_one_that_the_ruling_kept(workshop: Workshop) -> None:
    rule = make_rule(workshop, needed=2)
    card = approve(workshop, workshop.approver, workshop.admin)
    judged = judge_one(workshop, draft(id=rule.pk, needed=1))
    assert (judged.row.pk, judged.outcome, judged.is_alarming) == (card.pk, CardOutcome.FEWER, False)
    assert judge_one(workshop, draft(id=rule.pk, needed=3)).needs == "2 of 3: an approver"
    assert run_simulation(workshop, draft(id=rule.pk, needed=2)).total.outcomes == Counter([CardOutcome.ENOUGH])
    other = draft(id=rule.pk, tool="probe.gate", needed=2)
    assert judge_one(workshop, other).outcome == CardOutcome.FEWER, "it is no longer for this card"


def test_a_removed_rule_makes_its_cards_easier_and_no_others(workshop: Workshop) -> None:
    approve(workshop, workshop.approver, name="before the rule")
    rule = make_rule(workshop, needed=2)
    card = approve(workshop, workshop.approver, workshop.admin)
    judged = judge_one(workshop, remove(rule))
    assert (judged.row.pk, judged.outcome) == (card.pk, CardOutcome.FEWER)
    report = run_simulation(workshop, draft(id=rule.pk, needed=3), remove(rule))
    assert report.total.outcomes == Counter([CardOutcome.FEWER]), "the later change of a rule counts"


def test_a_denied_card_that_would_have_been_approved_before_comes_first(workshop: Workshop) -> None:
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
    report = run_simulation(workshop, draft(needed=2))
    assert (report.total.outcomes, report.listed) == (Counter({CardOutcome.OPEN: 2}), [])


def test_a_replaced_card_is_left_out(workshop: Workshop) -> None:
    edited = workshop.edit(ask(workshop), {"name": "b"})
    workshop.approve(edited, by=workshop.admin)
    assert judge_one(workshop, draft(needed=2)).row.pk == edited.pk


def test_a_standing_grant_pauses_if_its_maker_could_not_decide_alone(
    workshop: Workshop, finance: ApproverGroup
) -> None:
    made = grant(workshop, EFFECT, equals("name", "a"))
    workshop.play(asking(call(EFFECT, name="a")))
    workshop.work()
    judged = judge_one(workshop, draft(needed=2))
    assert (judged.outcome, judged.needs, judged.row.grant_id) == (CardOutcome.PAUSED, "0 of 2: an approver", made.pk)
    assert judge_one(workshop, draft(group=finance.as_group())).outcome == CardOutcome.PAUSED
    finance.members.add(workshop.approver)
    for terms in ({}, {"group": finance.as_group()}, {"excludes_requesters": True}):
        report = run_simulation(workshop, draft(**terms))
        assert report.total.outcomes == Counter([CardOutcome.ANSWERED]), terms


def test_the_ruling_of_a_standing_grants_answer_counts(workshop: Workshop, finance: ApproverGroup) -> None:
    finance.members.add(workshop.approver)
    make_rule(workshop, group=finance)
    grant(workshop, EFFECT, equals("name", "a"))
    workshop.play(asking(call(EFFECT, name="a")))
    workshop.work()
    finance.members.clear()
    report = run_simulation(workshop, draft(group=finance.as_group()))
    assert (report.total.outcomes, report.kept) == (Counter([CardOutcome.ANSWERED]), 1)


def test_erased_and_damaged_records_are_counted_apart(workshop: Workshop) -> None:
    card = workshop.approve(ask(workshop))
    Approval.objects.filter(pk=card.pk).update(ruling={"rules": 7})
    report = run_simulation(workshop, draft(needed=2))
    assert (report.total.outcomes, report.total.covered) == (Counter([CardOutcome.UNREADABLE]), 0)
    Approval.objects.filter(pk=card.pk).update(ruling=None, params={})
    ToolCall.objects.update(judgment={"erased": True})
    condition = (Condition("name", Rule.EQUALS, "a"),)
    assert run_simulation(workshop, draft(conditions=condition)).total.outcomes == Counter([CardOutcome.ERASED])
    assert judge_one(workshop, draft(needed=2)).outcome == CardOutcome.MORE, "no value matters"


def test_cards_of_another_organization_never_appear(workshop: Workshop) -> None:
    other = build_workshop("globex")
    approve(workshop, workshop.approver)
    approve(other, other.approver)
    assert judge_one(workshop, draft(needed=2)).row.organization_id == workshop.organization.pk
    group = ApproverGroup.objects.create(organization=other.organization, name="Theirs")
    rule = make_rule(other)
    employee = draft(employee_id=other.employee.pk)
    for change in (draft(group=group.as_group()), draft(id=rule.pk), remove(rule), employee):
        sent = json.dumps([change.as_json()])
        with pytest.raises(Invalid, match="no longer exists"):
            read_changes(workshop.organization.pk, sent)
        assert read_changes(other.organization.pk, sent)


def test_the_number_of_queries_does_not_grow_with_the_cards_and_nothing_is_written(workshop: Workshop) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            run_simulation(workshop, draft(needed=2, excludes_requesters=True))
        assert {query["sql"].lstrip("( ").split(" ", 1)[0] for query in queries} <= {"SELECT", "BEGIN", "DECLARE"}
        return len(queries)

    approve(workshop, workshop.approver)
    workshop.deny(ask(workshop))
    few = count()
    for name in "bcdef":
        approve(workshop, workshop.approver, name=name)
        workshop.deny(ask(workshop))
    assert count() == few
    assert run_simulation(workshop, draft(needed=2), limit=3).compared == 3


def test_the_change_survives_json_and_names_its_groups_as_they_are_now(
    workshop: Workshop, finance: ApproverGroup
) -> None:
    board = ApproverGroup.objects.create(organization=workshop.organization, name="Board")
    change = draft(
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
        "Approval rule “draft”: needs 2 people of Finance, not somebody who asked for it; "
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
def test_a_rule_that_was_tampered_with_is_refused(workshop: Workshop, spoiled: dict[str, Any]) -> None:
    stored = draft().as_json()
    assert read_changes(workshop.organization.pk, json.dumps([stored]))
    with pytest.raises(Invalid, match="Start over"):
        read_changes(workshop.organization.pk, json.dumps([{**stored, "rule": {**stored["rule"], **spoiled}}]))


# A random history, judged a second time from what the test remembers of it


@dataclass
class Remembered:
    """A card of the history: who approved it in which order, with the groups of that moment if a rule was for it."""

    requester: int
    voters: list[int]
    groups: dict[int, set[int]] | None
    ends: str
    rules: list[ApprovalRule]


def test_random_histories_have_the_counts_of_a_slow_judge(workshop: Workshop) -> None:
    chance = random.Random(20261203)
    groups = [ApproverGroup.objects.create(organization=workshop.organization, name=name) for name in ("A", "B")]
    people = [
        Membership.objects.create(
            organization=workshop.organization, user=User.objects.create_user(f"voter-{number}"), role=Role.APPROVER
        )
        for number in range(4)
    ]
    remembered = [play_card(chance, workshop, groups, people) for _ in range(40)]
    shuffle_groups(chance, groups, people)
    ApprovalRule.objects.update(is_active=False)
    today = read_groups(groups)
    everybody = {row.user_id: row.role for row in Membership.objects.filter(organization=workshop.organization)}
    able = {pk for pk, role in everybody.items() if Role(role).includes(Role.APPROVER)}
    for _ in range(60):
        group = chance.choice([None, *groups])
        terms = {"needed": chance.choice((1, 1, 2, 3)), "excludes_requesters": chance.random() < 0.5}
        change = draft(**terms, group=group and Group(group.pk, group.name))
        report = run_simulation(workshop, change)
        assert change.rule is not None
        expected = Counter(judge_slowly(change.rule, each, today) for each in remembered)
        assert report.total.outcomes == expected, change
        assert report.total.stuck == sum(
            judge_slowly(change.rule, each, today) != CardOutcome.ENOUGH
            and len({pk for pk in able if fits(change.rule, pk, each.requester, today)}) < change.rule.needed
            for each in remembered
        )
    for rule in chance.sample(list(ApprovalRule.objects.all()), 10):
        expected = Counter(filter(None, (judge_removal_slowly(rule, each) for each in remembered)))
        assert run_simulation(workshop, remove(rule)).total.outcomes == expected


def play_card(
    chance: random.Random, workshop: Workshop, groups: list[ApproverGroup], people: list[Membership]
) -> Remembered:
    """Let people decide a card under random groups and at most two rules."""
    shuffle_groups(chance, groups, people)
    ApprovalRule.objects.update(is_active=False)
    rules = [
        make_rule(
            workshop,
            name=f"rule {ApprovalRule.objects.count()}",
            needed=chance.choice((1, 2)),
            group=chance.choice((None, *groups)),
            excludes_requesters=chance.random() < 0.3,
        )
        for _ in range(chance.choice((0, 0, 1, 2)))
    ]
    requester = chance.choice(people)
    card = ask(replace(workshop, members={**workshop.members, "operator": requester}))
    order, ends, voters = chance.sample(people, len(people)), "open", []
    for person in order[: chance.choice((0, 2, 4))]:
        try:
            done = workshop.approve(card, by=person)
        except Forbidden:
            continue
        voters.append(person.user_id)
        if done.status == ApprovalStatus.APPROVED:
            ends = "approved"
            break
    kept = read_groups(groups) if rules else None
    return Remembered(requester.user_id, voters, kept, ends, rules)


def shuffle_groups(chance: random.Random, groups: list[ApproverGroup], people: list[Membership]) -> None:
    for group in groups:
        group.members.set(chance.sample(people, chance.choice((1, 2, 3))))


def read_groups(groups: list[ApproverGroup]) -> dict[int, set[int]]:
    return {group.pk: set(group.members.values_list("user_id", flat=True)) for group in groups}


def fits(rule: RuleTerms, voter: int, requester: int, groups: dict[int, set[int]]) -> bool:
    is_excluded = rule.excludes_requesters and voter == requester
    return not is_excluded and (rule.group is None or voter in groups[rule.group.id])


def judge_slowly(rule: RuleTerms, card: Remembered, today: dict[int, set[int]]) -> CardOutcome:
    """Judge the card under one more rule: each of its voters is compared with the rule alone."""
    if card.ends == "open":
        return CardOutcome.OPEN
    groups = today if card.groups is None else card.groups
    fitting = [voter for voter in card.voters if fits(rule, voter, card.requester, groups)]
    return CardOutcome.ENOUGH if len(fitting) >= rule.needed else CardOutcome.MORE


def judge_removal_slowly(rule: ApprovalRule, card: Remembered) -> CardOutcome | None:
    """Judge the card without one of its rules; None if it is not one of them, or if nobody knows what held."""
    if rule.pk not in {each.pk for each in card.rules} or card.ends == "open" or card.groups is None:
        return None
    others = [each.as_terms() for each in card.rules if each.pk != rule.pk] or [RuleTerms(0, "one approver")]
    earlier = card.voters[:-1]
    met = all(
        len([voter for voter in earlier if fits(other, voter, card.requester, card.groups)]) >= other.needed
        for other in others
    )
    return CardOutcome.FEWER if earlier and met else CardOutcome.ENOUGH


def test_the_slow_judge_has_votes_to_judge(workshop: Workshop) -> None:
    rule = make_rule(workshop, needed=2)
    approve(workshop, workshop.approver, workshop.admin)
    assert Vote.objects.count() == 2
    assert run_simulation(workshop, remove(rule)).total.changed == 1
