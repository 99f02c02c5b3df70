"""Proposed approval rules are simulated over a random history, and judged a second time from what
the test remembers."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace

import pytest
from django.contrib.auth.models import User

from agents.accounts.models import Membership, Role
from agents.approval_rules.models import ApprovalRule, ApproverGroup
from agents.platform.refusals import Forbidden
from agents.policy.rule_simulation import CardOutcome
from agents.runs.models import ApprovalStatus
from tests.approvals.test_votes import make_rule
from tests.features import feature
from tests.policy.proposed_rules import ask, propose, remove, run_simulation
from tests.recorder import Recorder
from tests.workshop import Workshop
from tools.toolbox.approval_rules import Group, RuleTerms

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _recorder(recorder: Recorder) -> None:
    """Let the probes have effects."""


@dataclass
class Remembered:
    """A card of the history: who approved it and in which order, with the groups at that time if a
    rule matched it."""

    requester: int
    voters: list[int]
    groups: dict[int, set[int]] | None
    ends: str
    rules: list[ApprovalRule]


@feature(
    "The gate",
    "An approval rule is simulated from its form over recorded cards: who would have "
    "sufficed, and what others would have needed",
    "agents/policy/rule_simulation.py",
)
def test_outcomes_of_random_histories_match_a_naive_judgment(workshop: Workshop) -> None:
    chance = random.Random(20261203)
    groups = [
        ApproverGroup.objects.create(organization=workshop.organization, name=name)
        for name in ("A", "B")
    ]
    people = [
        Membership.objects.create(
            organization=workshop.organization,
            user=User.objects.create_user(f"voter-{number}"),
            role=Role.APPROVER,
        )
        for number in range(4)
    ]
    remembered = [play_card(chance, workshop, groups, people) for _ in range(40)]
    shuffle_groups(chance, groups, people)
    ApprovalRule.objects.update(is_active=False)
    today = read_groups(groups)
    everybody = {
        row.user_id: row.role
        for row in Membership.objects.filter(organization=workshop.organization)
    }
    able = {pk for pk, role in everybody.items() if Role(role).includes(Role.APPROVER)}
    for _ in range(60):
        group = chance.choice([None, *groups])
        terms = {
            "needed": chance.choice((1, 1, 2, 3)),
            "excludes_requesters": chance.random() < 0.5,
        }
        change = propose(**terms, group=group and Group(group.pk, group.name))
        report = run_simulation(workshop, change)
        assert change.rule is not None
        expected = Counter(judge_slowly(change.rule, each, today) for each in remembered)
        assert report.total.outcomes == expected, change
        assert report.total.stuck == sum(
            judge_slowly(change.rule, each, today) != CardOutcome.ENOUGH
            and len({pk for pk in able if fits(change.rule, pk, each.requester, today)})
            < change.rule.needed
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


def shuffle_groups(
    chance: random.Random, groups: list[ApproverGroup], people: list[Membership]
) -> None:
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
    """Judge the card without one of its rules; None if the card does not have the rule, or if its
    rules are unknown."""
    if (
        rule.pk not in {each.pk for each in card.rules}
        or card.ends == "open"
        or card.groups is None
    ):
        return None
    others = [each.as_terms() for each in card.rules if each.pk != rule.pk] or [
        RuleTerms(0, "one approver")
    ]
    earlier = card.voters[:-1]
    met = all(
        len([voter for voter in earlier if fits(other, voter, card.requester, card.groups)])
        >= other.needed
        for other in others
    )
    return CardOutcome.FEWER if earlier and met else CardOutcome.ENOUGH
