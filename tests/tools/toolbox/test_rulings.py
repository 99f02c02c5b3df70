"""Rulings: each is stored completely, and says why an approval was not sufficient."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from tools.contract import Level
from tools.toolbox.approval_rules import CastVote, Group, RuledCard, RuleTerms, Voter
from tools.toolbox.conditions import Condition, Rule
from tools.toolbox.rulings import Ruling, read_rule, store_rule

FINANCE, LEGAL = Group(1, "group 1"), Group(2, "group 2")
FAY = Voter(4, "", groups=frozenset({FINANCE.id}))
FRED = Voter(5, "", groups=frozenset({FINANCE.id}))
BEN = Voter(6, "")
CARD = RuledCard(
    "crm.refund", "crm", Level.WRITE, 9, {"amount": 700}, frozenset({6}), timedelta(hours=5)
)
TWO_OF_FINANCE = RuleTerms(1, "", needed=2, group=FINANCE)
EVERYTHING = RuleTerms(
    2,
    "",
    tool="crm.refund",
    category="crm",
    level=Level.WRITE,
    employee_id=9,
    conditions=(Condition("amount", Rule.MINIMUM, 500),),
    needed=3,
    group=FINANCE,
    excludes_requesters=True,
    escalates_after=timedelta(hours=4),
    second_group=LEGAL,
)


def judge(ruling: Ruling) -> str:
    objection = ruling.find_objection(CARD.tool, CARD.level, CARD.employee_id, CARD.params)
    return objection.why if objection else ""


@pytest.mark.parametrize("rule", [EVERYTHING, RuleTerms(3, "")])
def test_a_stored_rule_is_read_unchanged(rule: RuleTerms) -> None:
    assert read_rule(json.loads(json.dumps(store_rule(rule)))) == rule


@pytest.mark.parametrize("breaks_glass", [True, False])
def test_a_stored_ruling_is_read_unchanged(*, breaks_glass: bool) -> None:
    votes = (CastVote(FAY), CastVote(BEN, FRED))
    person = replace(BEN, may_approve=False, deputy_for=(FAY, FRED))
    ruling = replace(
        Ruling.of(person, CARD, votes, [EVERYTHING, TWO_OF_FINANCE]), breaks_glass=breaks_glass
    )
    assert Ruling.from_json(json.loads(json.dumps(ruling.as_json()))) == ruling


def test_a_sufficient_approval_raises_no_objection() -> None:
    assert judge(Ruling.of(FRED, CARD, [CastVote(FAY)], [TWO_OF_FINANCE])) == ""


@pytest.mark.parametrize(
    ("person", "reason"),
    [(FAY, "votes are missing"), (BEN, "0 of 2: someone from group 1")],
    ids=["too few", "refused"],
)
def test_an_insufficient_approval_says_why(person: Voter, reason: str) -> None:
    assert (
        judge(Ruling.of(person, CARD, [], [TWO_OF_FINANCE]))
        == f"the approval was not enough: {reason}"
    )


def test_a_rule_that_does_not_match_the_card_is_reported() -> None:
    other = replace(TWO_OF_FINANCE, tool="crm.update")
    problem = "approval rule 1 does not match the card that it was applied to"
    assert judge(Ruling.of(FRED, CARD, [CastVote(FAY)], [other])) == problem


@pytest.mark.parametrize(("person", "is_refused"), [(FAY, False), (BEN, True)])
def test_a_requester_cannot_use_break_glass(person: Voter, *, is_refused: bool) -> None:
    ruling = replace(Ruling.of(person, CARD, [], [TWO_OF_FINANCE]), breaks_glass=True)
    assert judge(ruling) == (
        "whoever used break-glass had asked for the call" if is_refused else ""
    )
