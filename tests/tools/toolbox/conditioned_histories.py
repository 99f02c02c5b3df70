"""Random histories of a card under rules with conditions, and a second, slow implementation.

The slow judge never interprets a spelling: each value and name is built together with its meaning.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from tests.tools.toolbox.value_spellings import CHANGES, NAMES
from tools.contract import Level
from tools.toolbox.approval_rules import (
    CastVote,
    RuledCard,
    RuleTerms,
    Voter,
    count_votes,
    is_approved,
)
from tools.toolbox.conditions import Condition, Rule
from tools.toolbox.rule_matching import SchemaFacts
from tools.toolbox.rulings import Ruling

STEPS = 12
TOOL_NAMES = ("bank.pay", "Bank.Pay", "bank_pay", "BANK-PAY", "bаnk.pay")  # noqa: RUF001 - a twin
TEXTS = ("production", "staging", "live site", "Globex Freight")
NUMBERS = (0, 5, 100, 100.0, 999, 1000, 5000, -5, -1000)
PEOPLE = tuple(Voter(number, f"person {number}") for number in range(1, 5))
CONDITIONS: tuple[tuple[Rule, Any], ...] = (
    (Rule.MINIMUM, 1000),
    (Rule.MINIMUM, 100),
    (Rule.MAXIMUM, 5),
    (Rule.EQUALS, 100),
    (Rule.EQUALS, "production"),
    (Rule.EQUALS, True),
    (Rule.ONE_OF, ["staging", "live site"]),
    (Rule.ONE_OF, [5, "production"]),
    (Rule.PREFIX, "prod"),
    (Rule.PREFIX, "Globex "),
)


@dataclass(frozen=True)
class Built:
    """A value of a call with its meaning.

    Attributes:
        meaning: a number, one of TEXTS, True or False, None for a value without a meaning, or a
            list of values.
    """

    value: Any
    meaning: Any


@dataclass
class World:
    """The state of one history; `places` has the meaning of each value under its plain path."""

    card: RuledCard
    places: list[tuple[tuple[str, ...], Built]]
    rules: list[RuleTerms] = field(default_factory=list)
    votes: list[CastVote] = field(default_factory=list)


def play_history(chance: random.Random) -> str:
    """Play one history, compare each state with the slow judge, and return how the card ended."""
    world = _make_world(chance)
    for _ in range(STEPS):
        chance.choices((_vote, _edit, _change_rules), (5, 2, 3))[0](chance, world)
        matching = [rule for rule in world.rules if matches_slowly(rule, world)]
        assert [rule for rule in world.rules if rule.matches(world.card)] == matching, world
        states = count_votes(world.card, world.votes, world.rules)
        needed = max([rule.needed for rule in matching], default=1)
        is_enough = len({vote.voter.id for vote in world.votes}) >= needed
        assert is_approved(states) == is_enough, world
        if is_enough:
            if matching:
                _replay(world, matching)
            return f"approved by {needed}"
    return "open"


def _replay(world: World, matching: list[RuleTerms]) -> None:
    """Assert that the recorded ruling still approves the card."""
    *before, last = world.votes
    ruling = Ruling.of(last.voter, world.card, before, matching)
    stored = Ruling.from_json(json.loads(json.dumps(ruling.as_json())))
    card = world.card
    objection = stored.find_objection(card.tool, card.level, card.employee_id, card.params)
    assert objection is None or "votes are missing" not in objection.why, (world, objection)
    assert objection is None or "does not match" not in objection.why, (world, objection)


# Random worlds


def _make_world(chance: random.Random) -> World:
    card = RuledCard(chance.choice(TOOL_NAMES), "bank", Level.WRITE, 1, age=timedelta())
    world = World(card, [])
    world.rules = [_make_rule(number, chance) for number in range(chance.randint(0, 3))]
    _edit(chance, world)
    return world


def _vote(chance: random.Random, world: World) -> None:
    vote = CastVote(chance.choice(PEOPLE))
    if vote not in world.votes:
        world.votes.append(vote)


def _change_rules(chance: random.Random, world: World) -> None:
    if world.rules and chance.random() < 0.4:
        del world.rules[chance.randrange(len(world.rules))]
    else:
        world.rules.append(_make_rule(len(world.rules) + 10, chance))


def _make_rule(number: int, chance: random.Random) -> RuleTerms:
    conditions = tuple(
        Condition(chance.choice(("amount", "amount", "order.amount")), *chance.choice(CONDITIONS))
        for _ in range(chance.choice((1, 1, 2)))
    )
    tool = chance.choice(("", "bank.pay", "bank.pay", "bank.read"))
    return RuleTerms(
        number, f"rule {number}", tool=tool, conditions=conditions, needed=chance.randint(1, 3)
    )


def _edit(chance: random.Random, world: World) -> None:
    """Give the call new params, which voids its votes."""
    params: dict[str, Any] = {"note": "amount 5000"}
    world.places, world.votes = [], []
    if chance.random() < 0.7:
        _put(params, chance.choice((*NAMES, *["amount"] * 10)), ("amount",), chance, world)
    if chance.random() < 0.4:
        order: dict[str, Any] = {"other": 5000}
        _put(order, chance.choice((*NAMES, *["amount"] * 10)), ("order", "amount"), chance, world)
        params["order"] = chance.choice((order, [order], [{"other": 1}, order]))
    elif chance.random() < 0.3:
        params["order"] = chance.choice(({}, {"other": 1}, []))
    elif chance.random() < 0.1:
        params["order"] = chance.choice(("text", 5, None, ["text"]))
        world.places.append((("order",), Built(params["order"], None)))
    facts = SchemaFacts(frozenset({""}) if chance.random() < 0.1 else frozenset())
    world.card = replace(world.card, params=params, facts=facts)


def _put(
    node: dict[str, Any], name: str, place: tuple[str, ...], chance: random.Random, world: World
) -> None:
    built = _build(chance)
    node[name] = built.value
    world.places.append((place, built))


def _build(chance: random.Random, depth: int = 0) -> Built:
    make: list[Callable[[random.Random], Built]] = [_build_number, _build_text, _build_other]
    if depth == 2 or chance.random() < 0.8:
        return chance.choices(make, (4, 4, 1))[0](chance)
    entries = [_build(chance, depth + 1) for _ in range(chance.randint(0, 3))]
    return Built([entry.value for entry in entries], entries)


def _build_number(chance: random.Random) -> Built:
    number = chance.choice(NUMBERS)
    return Built(number, number)


def _build_text(chance: random.Random) -> Built:
    text = chance.choice(TEXTS)
    changes: list[Callable[[str], str]] = [str, *CHANGES.values()]
    return Built(chance.choice(changes)(text), text)


def _build_other(chance: random.Random) -> Built:
    value = chance.choice((True, False, None, {}, {"value": 5}))
    return Built(value, value if isinstance(value, bool) else None)


# The slow judge


def matches_slowly(rule: RuleTerms, world: World) -> bool:
    """Determine if the rule applies, from the meanings with which the call was built."""
    if rule.tool not in ("", "bank.pay"):
        return False
    return all(_meets_slowly(condition, world) for condition in rule.conditions)


def _meets_slowly(condition: Condition, world: World) -> bool:
    if "" in world.card.facts.open_objects:
        return True
    return any(
        _may_mean(condition.rule, condition.value, built)
        for built in _list_meant(condition.param, world)
    )


def _list_meant(param: str, world: World) -> Iterator[Built]:
    """Yield every value called `amount`; for the param `order.amount`, also a plain `order`,
    because the path cannot enter it."""
    for place, built in world.places:
        if place[-1] == "amount" or (param == "order.amount" and place == ("order",)):
            yield built


def _may_mean(rule: Rule, wanted: Any, built: Built) -> bool:
    meaning = built.meaning
    if rule is Rule.ONE_OF:
        return any(_may_mean(Rule.EQUALS, each, built) for each in wanted)
    if isinstance(meaning, list):
        return not meaning or any(_may_mean(rule, wanted, each) for each in meaning)
    return meaning is None or _may_hold(rule, wanted, meaning)


def _may_hold(rule: Rule, wanted: Any, meaning: Any) -> bool:
    is_number = isinstance(meaning, int | float) and not isinstance(meaning, bool)
    if rule is Rule.MINIMUM:
        return not is_number or meaning >= wanted or meaning < 0
    if rule is Rule.MAXIMUM:
        return not is_number or meaning <= wanted
    if rule is Rule.PREFIX:
        return not isinstance(meaning, str) or meaning.lower().startswith(wanted.lower())
    is_same_kind = _name_kind(meaning) == _name_kind(wanted)
    if is_number and is_same_kind:
        return bool(abs(meaning) == abs(wanted))
    return not is_same_kind or meaning == wanted


def _name_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "text" if isinstance(value, str) else "number"
