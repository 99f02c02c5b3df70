"""Random histories of one card (votes, edits, and changes of rules, roles, groups and deputies),
and a slow judge of them.

The judge keeps a list of the votes that were ever counted, and works out from it each time which of
them still count.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import combinations
from typing import Any

from tools.contract import Level
from tools.toolbox.approval_rules import CastVote, Group, RuledCard, RuleTerms, Voter, may_decide
from tools.toolbox.conditions import Condition, Rule

GROUPS = (Group(1, "Finance"), Group(2, "Legal"))
PEOPLE = range(1, 6)
STEPS = 14
EXPIRES_AT = 11


@dataclass
class World:
    """The current state of people, rules and votes."""

    people: dict[int, Voter]
    rules: list[RuleTerms]
    card: RuledCard
    deputies: set[tuple[int, int]] = field(default_factory=set)
    """Pairs of a deputy and the person they represent."""
    votes: list[tuple[int, int | None]] = field(default_factory=list)

    def list_votes(self) -> list[CastVote]:
        """List the votes with the current state of their voters; votes of former deputies are
        omitted."""
        return [
            CastVote(self.see(voter), self.see(other) if other else None)
            for voter, other in self.votes
            if other is None or (voter, other) in self.deputies
        ]

    def see(self, number: int) -> Voter:
        """Return this person together with the people they represent, as the product loads them."""
        represented = {
            one: [other for deputy, other in sorted(self.deputies) if deputy == one]
            for one in self.people
        }
        alone = {
            one: replace(
                self.people[one], deputy_for=tuple(self.people[other] for other in represented[one])
            )
            for one in self.people
        }
        return replace(
            self.people[number], deputy_for=tuple(alone[other] for other in represented[number])
        )


def play_history(chance: random.Random) -> str:
    """Play one history, compare each decision with the slow judge, and return how the card ended,
    or "open"."""
    world = _make_world(chance)
    for step in range(STEPS):
        world.card = replace(world.card, age=timedelta(hours=step))
        if step == EXPIRES_AT and chance.random() < 0.5:
            return "expired"
        act = chance.choices(("vote", "change", "edit", "withdraw", "deny"), (12, 4, 1, 1, 0.3))[0]
        if act == "deny":
            if chance.choice(list(world.people.values())).may_approve:
                return "denied"
        elif act == "vote":
            if _vote(chance, world):
                return "approved"
        else:
            _change(act, chance, world)
    return "open"


def _vote(chance: random.Random, world: World) -> bool:
    person = world.see(chance.choice(PEOPLE))
    found = may_decide(person, world.card, world.list_votes(), world.rules)
    wanted, completes, vote = judge_slowly(world, person.id)
    assert (found.may_approve, found.completes) == (wanted, completes), (world, person, found)
    other = found.vote.deputy_for if found.vote else None
    assert (found.vote and (person.id, other.id if other else None)) == vote, (world, person, found)
    if vote is not None:
        add_vote(world, vote)
    return found.completes


def add_vote(world: World, vote: tuple[int, int | None]) -> None:
    """Add a vote, and remove permanently the votes that no longer count."""
    world.votes = [*list_standing(world), vote]


def _change(act: str, chance: random.Random, world: World) -> None:
    number = chance.choice(PEOPLE)
    person = world.people[number]
    if act == "edit":
        world.votes = []
        amount = chance.choice([10, 600])
        world.card = replace(
            world.card, params={"amount": amount}, requesters=world.card.requesters | {number}
        )
    elif act == "withdraw":
        world.votes = [vote for vote in world.votes if vote[0] != number]
    elif world.rules and chance.random() < 0.2:
        _change_rule(chance, world)
    elif chance.random() < 0.4:
        world.people[number] = replace(person, may_approve=not person.may_approve)
    elif chance.random() < 0.5:
        world.people[number] = replace(person, groups=person.groups ^ {chance.choice(GROUPS).id})
    else:
        world.deputies ^= {(number, chance.choice([other for other in PEOPLE if other != number]))}


def _change_rule(chance: random.Random, world: World) -> None:
    place = chance.randrange(len(world.rules))
    if chance.random() < 0.3:
        del world.rules[place]
    else:
        world.rules[place] = make_rule(place, chance)


def _make_world(chance: random.Random) -> World:
    people = {
        number: Voter(
            number,
            f"person {number}",
            may_approve=chance.random() < 0.85,
            groups=frozenset(group.id for group in GROUPS if chance.random() < 0.5),
        )
        for number in PEOPLE
    }
    rules = [make_rule(number, chance) for number in range(chance.randint(0, 3))]
    card = RuledCard("crm.refund", "crm", Level.WRITE, 1, {"amount": chance.choice([10, 600])})
    card = replace(card, requesters=frozenset(chance.sample(PEOPLE, chance.randint(0, 2))))
    deputies = {tuple(chance.sample(PEOPLE, 2)) for _ in range(chance.randint(0, 3))}
    return World(people, rules, card, {(pair[0], pair[1]) for pair in deputies})


def make_rule(number: int, chance: random.Random) -> RuleTerms:
    more: dict[str, Any] = {}
    if chance.random() < 0.6:
        more["group"] = chance.choice(GROUPS)
        if chance.random() < 0.4:
            more |= {
                "escalates_after": timedelta(hours=chance.randint(1, 8)),
                "second_group": chance.choice(GROUPS),
            }
    return RuleTerms(
        number,
        f"rule {number}",
        tool=chance.choice(["", "", "crm.refund", "other"]),
        category=chance.choice(["", "", "crm", "mail"]),
        level=chance.choice([None, None, Level.WRITE, Level.DESTRUCTIVE]),
        employee_id=chance.choice([None, None, 1, 2]),
        conditions=chance.choice([(), (), (Condition("amount", Rule.MINIMUM, 500),)]),
        needed=chance.choice([1, 1, 2, 3]),
        excludes_requesters=chance.random() < 0.4,
        **more,
    )


# The slow judge shares only the data with the product.


def judge_slowly(world: World, person: int) -> tuple[bool, bool, tuple[int, int | None] | None]:
    """Judge this person's approval by the slow implementation. Return three values: True if it
    counts, True if it approves the card, and the vote that it adds, if any."""
    if not world.people[person].may_approve:
        return False, False, None
    standing = list_standing(world)
    # All rules are met only if one became easier after the last vote.
    if all(_is_met(world, rule, standing) for rule in _list_rules(world)):
        is_one_of_them = any(person in vote for vote in standing)
        counts = is_one_of_them or any(
            _does_count(world, rule, (person, None)) for rule in _list_rules(world)
        )
        return counts, counts, None
    if any(_are_one_voice(world, (person, None), vote) for vote in standing):
        return False, False, None
    for other in (None, *(other for deputy, other in sorted(world.deputies) if deputy == person)):
        vote = (person, other)
        is_free = not any(_are_one_voice(world, vote, each) for each in standing)
        if not (is_free and is_valid(world, vote)):
            continue
        unmet = [rule for rule in _list_rules(world) if not _is_met(world, rule, standing)]
        if any(_does_count(world, rule, vote) for rule in unmet):
            return (
                True,
                all(_is_met(world, rule, [*standing, vote]) for rule in _list_rules(world)),
                vote,
            )
    return False, False, None


def list_standing(world: World) -> list[tuple[int, int | None]]:
    """List the votes that count for a rule now; if several count as one, only the first."""
    rules = _list_rules(world)
    standing: list[tuple[int, int | None]] = []
    for vote in world.votes:
        is_new = not any(_are_one_voice(world, vote, each) for each in standing)
        if (
            is_new
            and is_valid(world, vote)
            and any(_does_count(world, rule, vote) for rule in rules)
        ):
            standing.append(vote)
    return standing


def _are_one_voice(
    world: World, one: tuple[int, int | None], other: tuple[int, int | None]
) -> bool:
    """Return True if both votes share a person, or a person in one vote is the deputy or the
    principal of a person in the other vote."""
    pairs = [(a, b) for a in one for b in other if a is not None and b is not None]
    return any(a == b or (a, b) in world.deputies or (b, a) in world.deputies for a, b in pairs)


def is_valid(world: World, vote: tuple[int, int | None]) -> bool:
    voter, other = vote
    if other is not None and (
        (voter, other) not in world.deputies or not world.people[other].may_approve
    ):
        return False
    return world.people[voter].may_approve


def list_stuck_slowly(world: World) -> set[str]:
    """List the names of the rules that can no longer be met, because too few people are left."""
    standing = list_standing(world)
    stuck = set()
    for rule in _list_rules(world):
        missing = rule.needed - len([vote for vote in standing if _does_count(world, rule, vote)])
        able = [
            (one, None)
            for one in world.people
            if world.people[one].may_approve
            and _does_count(world, rule, (one, None))
            and not any(_are_one_voice(world, (one, None), vote) for vote in standing)
        ]
        choices = combinations(able, max(missing, 0))
        if not any(_are_apart(world, chosen) for chosen in choices):
            stuck.add(rule.name)
    return stuck


def _are_apart(world: World, votes: Sequence[tuple[int, int | None]]) -> bool:
    return not any(_are_one_voice(world, one, other) for one, other in combinations(votes, 2))


def _list_rules(world: World) -> list[RuleTerms]:
    found = []
    for rule in world.rules:
        wrong = (
            (rule.tool and rule.tool != world.card.tool)
            or (rule.category and rule.category != world.card.category)
            or (rule.level is not None and rule.level != world.card.level)
            or (rule.employee_id is not None and rule.employee_id != world.card.employee_id)
            or (rule.conditions and world.card.params["amount"] < 500)
        )
        found += [] if wrong else [rule]
    return found or [RuleTerms(99, "anybody")]


def _is_met(world: World, rule: RuleTerms, votes: list[tuple[int, int | None]]) -> bool:
    """Return True if enough of the votes count for the rule, given by people who are independent of
    each other."""
    for chosen in combinations(votes, rule.needed):
        if _are_apart(world, chosen) and all(_does_count(world, rule, vote) for vote in chosen):
            return True
    return False


def _does_count(world: World, rule: RuleTerms, vote: tuple[int, int | None]) -> bool:
    voter, other = vote
    if rule.excludes_requesters and ({voter, other} & world.card.requesters):
        return False
    if rule.group is None:
        return True
    allowed = {rule.group.id}
    if (
        rule.escalates_after is not None
        and world.card.age >= rule.escalates_after
        and rule.second_group is not None
    ):
        allowed.add(rule.second_group.id)
    return bool(world.people[other if other is not None else voter].groups & allowed)
