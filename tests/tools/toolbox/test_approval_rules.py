"""Approval rules: which votes count, who may cast one, and which are still missing."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.tools.toolbox.voting_histories import play_history
from tools.contract import Level
from tools.toolbox.approval_rules import (
    ANY_APPROVER,
    ONE_MORE,
    TWO_PERSON_RULE,
    CastVote,
    Group,
    RuledCard,
    RuleTerms,
    Voter,
    count_votes,
    describe_needs,
    find_stuck,
    is_approved,
    may_decide,
)
from tools.toolbox.conditions import Condition, Rule

HISTORIES = 2_000
FINANCE, LEGAL = Group(1, "Finance"), Group(2, "Legal")
ANN, BEN, CAT = (Voter(number, name) for number, name in enumerate(("Ann", "Ben", "Cat"), 1))
FAY = Voter(4, "Fay", groups=frozenset({FINANCE.id}))
FRED = Voter(5, "Fred", groups=frozenset({FINANCE.id}))
LEA = Voter(6, "Lea", groups=frozenset({LEGAL.id}))
VIEWER = Voter(7, "Vic", may_approve=False, groups=frozenset({FINANCE.id}))
CARD = RuledCard(
    "crm.refund", "crm", Level.WRITE, 9, {"amount": 700}, requesters=frozenset({ANN.id})
)
TWO_OF_FINANCE = RuleTerms(1, "refunds", needed=2, group=FINANCE)
LARGE = RuleTerms(
    2, "large refunds", conditions=(Condition("amount", Rule.MINIMUM, 500),), group=LEGAL
)


def decide(
    person: Voter, *votes: CastVote, rules: tuple[RuleTerms, ...] = (TWO_OF_FINANCE,)
) -> str:
    """Return `approved`, `counted`, or the reason for the refusal."""
    found = may_decide(person, CARD, votes, rules)
    return "approved" if found.completes else "counted" if found.vote else found.refusal


@pytest.mark.parametrize(
    ("rule", "is_for_it"),
    [
        (RuleTerms(1, "all"), True),
        (RuleTerms(1, "tool", tool="crm.refund"), True),
        (RuleTerms(1, "tool", tool="crm.update"), False),
        (RuleTerms(1, "category", category="crm"), True),
        (RuleTerms(1, "category", category="mail"), False),
        (RuleTerms(1, "level", level=Level.WRITE), True),
        (RuleTerms(1, "level", level=Level.DESTRUCTIVE), False),
        (RuleTerms(1, "employee", employee_id=9), True),
        (RuleTerms(1, "employee", employee_id=8), False),
        (LARGE, True),
        (replace(LARGE, conditions=(Condition("amount", Rule.MINIMUM, 701),)), False),
        (replace(LARGE, tool="crm.update"), False),
    ],
)
def test_a_rule_applies_to_cards_that_meet_all_its_terms(rule: RuleTerms, is_for_it: bool) -> None:
    assert rule.matches(CARD) is is_for_it


@pytest.mark.parametrize(
    ("params", "is_for_it"),
    [
        ({"payments": [{"amount": 1}, {"amount": 700}]}, True),
        ({"payments": [{"amount": 1}, {"amount": 2}]}, False),
        ({"payments": []}, False),
        ({}, False),
    ],
)
def test_one_matching_entry_of_a_list_is_sufficient(
    params: dict[str, Any], is_for_it: bool
) -> None:
    rule = replace(LARGE, conditions=(Condition("payments.amount", Rule.MINIMUM, 500),))
    assert rule.matches(replace(CARD, params=params)) is is_for_it


def test_without_a_matching_rule_one_approver_decides() -> None:
    assert decide(BEN, rules=(RuleTerms(1, "other", tool="other", needed=3),)) == "approved"
    assert [state.rule for state in count_votes(CARD, [], [])] == [ANY_APPROVER]


def test_votes_of_people_without_the_approver_role_do_not_count() -> None:
    assert decide(VIEWER, rules=()) == "needs the approver role"
    assert not count_votes(CARD, [CastVote(VIEWER)], [TWO_OF_FINANCE])[0].counted


def test_a_rule_needs_the_required_number_of_people_from_its_group() -> None:
    assert decide(FAY) == "counted"
    assert decide(FRED, CastVote(FAY)) == "approved"
    assert decide(BEN, CastVote(FAY)) == "1 of 2: someone from Finance"


def test_nobody_can_vote_twice() -> None:
    assert decide(FAY, CastVote(FAY)) == "you have approved this already"
    assert len(count_votes(CARD, [CastVote(FAY), CastVote(FAY)], [TWO_OF_FINANCE])[0].counted) == 1


def test_all_matching_rules_must_be_met_and_one_vote_can_count_for_several() -> None:
    both = replace(FRED, groups=frozenset({FINANCE.id, LEGAL.id}))
    assert decide(FRED, CastVote(FAY), rules=(TWO_OF_FINANCE, LARGE)) == "counted"
    assert decide(LEA, CastVote(FAY), CastVote(FRED), rules=(TWO_OF_FINANCE, LARGE)) == "approved"
    assert decide(both, CastVote(FAY), rules=(TWO_OF_FINANCE, LARGE)) == "approved"


def test_a_vote_is_refused_if_no_unmet_rule_needs_it() -> None:
    assert (
        decide(FRED, CastVote(FAY), rules=(replace(TWO_OF_FINANCE, needed=1), LARGE))
        == "needs someone from Legal"
    )


class TestARequester:
    def test_cannot_approve_alone_under_the_two_person_rule(self) -> None:
        assert (
            decide(ANN, rules=(TWO_PERSON_RULE,))
            == "needs an approver, not someone who asked for this"
        )
        assert decide(BEN, rules=(TWO_PERSON_RULE,)) == "approved"

    def test_can_vote_under_a_rule_that_does_not_exclude_requesters(self) -> None:
        two = RuleTerms(3, "two", needed=2)
        assert decide(ANN, rules=(two, TWO_PERSON_RULE)) == "counted"
        assert decide(BEN, CastVote(ANN), rules=(two, TWO_PERSON_RULE)) == "approved"


class TestDeputies:
    def test_vote_as_the_person_they_represent(self) -> None:
        found = may_decide(
            replace(BEN, deputy_for=(FAY,)), CARD, [], [replace(TWO_OF_FINANCE, needed=1)]
        )
        assert found == replace(
            found, vote=CastVote(replace(BEN, deputy_for=(FAY,)), FAY), completes=True
        )
        assert found.vote is not None
        assert found.vote.name == "Ben for Fay"

    def test_vote_in_their_own_name_if_their_own_vote_counts(self) -> None:
        assert may_decide(
            replace(FRED, deputy_for=(FAY,)), CARD, [], [TWO_OF_FINANCE]
        ).vote == CastVote(replace(FRED, deputy_for=(FAY,)))

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (CastVote(FAY), CastVote(BEN, FAY)),
            (CastVote(BEN, FAY), CastVote(FAY)),
            (CastVote(BEN, FAY), CastVote(BEN, FRED)),
        ],
    )
    def test_cannot_vote_after_they_or_their_principal_have_voted(
        self, first: CastVote, second: CastVote
    ) -> None:
        assert count_votes(CARD, [first, second], [TWO_OF_FINANCE])[0].counted == (first,)
        voter = replace(second.voter, deputy_for=(second.deputy_for or FRED,))
        found = may_decide(voter, CARD, [first], [TWO_OF_FINANCE])
        assert found.vote is None

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (CastVote(FAY), CastVote(replace(FRED, deputy_for=(FAY,)))),
            (CastVote(replace(FRED, deputy_for=(FAY,))), CastVote(FAY)),
            (CastVote(BEN, FAY), CastVote(replace(FRED, deputy_for=(FAY,)))),
            (CastVote(BEN, replace(FAY, deputy_for=(FRED,))), CastVote(FRED)),
            (CastVote(FRED), CastVote(replace(BEN, deputy_for=(FRED, FAY)), FAY)),
        ],
    )
    def test_share_one_vote_with_their_principal_even_in_their_own_names(
        self, first: CastVote, second: CastVote
    ) -> None:
        assert count_votes(CARD, [first, second], [TWO_OF_FINANCE])[0].counted == (first,)
        found = may_decide(second.voter, CARD, [first], [TWO_OF_FINANCE])
        assert not found.may_approve
        assert (
            found.refusal
            == f"{first.name} has approved this, and together you count as one approval"
        )

    def test_have_a_separate_vote_from_people_whom_they_do_not_represent(self) -> None:
        stranger = replace(FRED, deputy_for=(LEA,))
        assert may_decide(stranger, CARD, [CastVote(FAY)], [TWO_OF_FINANCE]).completes

    def test_and_their_principal_cannot_meet_a_rule_that_needs_two_people(self) -> None:
        people = [FAY, replace(FRED, deputy_for=(FAY,))]
        assert find_stuck(count_votes(CARD, [], [TWO_OF_FINANCE]), CARD, people) == [TWO_OF_FINANCE]
        assert find_stuck(count_votes(CARD, [], [TWO_OF_FINANCE]), CARD, [FAY, FRED]) == []
        third = replace(ANN, groups=FAY.groups)
        assert find_stuck(count_votes(CARD, [], [TWO_OF_FINANCE]), CARD, [*people, third]) == []

    @pytest.mark.parametrize("requesters", [{FAY.id}, {BEN.id}])
    def test_cannot_bypass_the_two_person_rule(self, requesters: set[int]) -> None:
        card = replace(CARD, requesters=frozenset(requesters))
        rule = replace(TWO_OF_FINANCE, needed=1, excludes_requesters=True)
        assert may_decide(replace(BEN, deputy_for=(FAY,)), card, [], [rule]).vote is None

    def test_have_no_more_rights_than_their_principal(self) -> None:
        demoted = replace(FAY, may_approve=False)
        assert (
            may_decide(replace(BEN, deputy_for=(demoted, CAT)), CARD, [], [TWO_OF_FINANCE]).vote
            is None
        )

    def test_can_complete_a_rule_that_became_easier_after_they_voted(self) -> None:
        easier = (replace(TWO_OF_FINANCE, needed=1),)
        assert (
            decide(replace(BEN, deputy_for=(FAY,)), CastVote(BEN, FAY), rules=easier) == "approved"
        )
        assert (
            decide(CAT, CastVote(BEN, FAY), rules=easier)
            == f"{ONE_MORE}, by someone whose approval counts"
        )

    def test_do_not_use_up_their_principals_vote_after_losing_their_role(self) -> None:
        lost = CastVote(replace(BEN, may_approve=False), FAY)
        assert decide(FAY, lost) == "counted"


def test_a_vote_does_not_count_after_the_voter_lost_the_role_or_left_the_group() -> None:
    for changed in (replace(FAY, may_approve=False), replace(FAY, groups=frozenset())):
        assert decide(FRED, CastVote(changed)) == "counted"


def test_votes_of_a_second_group_count_after_the_configured_time() -> None:
    rule = replace(LARGE, escalates_after=timedelta(hours=4), second_group=FINANCE)
    late = replace(CARD, age=timedelta(hours=4))
    assert may_decide(FAY, CARD, [], [rule]).refusal == "needs someone from Legal"
    assert may_decide(FAY, late, [], [rule]).completes
    assert may_decide(LEA, late, [], [rule]).completes
    assert may_decide(BEN, late, [], [rule]).refusal == "needs someone from Legal or Finance"
    assert (
        may_decide(FAY, late, [], [replace(rule, second_group=None)]).refusal
        == "needs someone from Legal"
    )


def test_a_card_says_what_is_still_missing() -> None:
    rules = [replace(TWO_OF_FINANCE, excludes_requesters=True), LARGE]
    states = count_votes(CARD, [CastVote(FAY)], rules)
    assert (
        describe_needs(CARD, states, "Ann")
        == "1 of 2: someone from Finance, not Ann; needs someone from Legal"
    )
    assert (
        describe_needs(
            CARD, count_votes(CARD, [CastVote(FAY), CastVote(FRED), CastVote(LEA)], rules)
        )
        == ONE_MORE
    )
    unasked = replace(CARD, requesters=frozenset())
    assert (
        describe_needs(unasked, count_votes(unasked, [], [TWO_PERSON_RULE])) == "needs an approver"
    )


def test_a_rule_that_nobody_can_meet_is_found_and_not_relaxed() -> None:
    states = count_votes(CARD, [CastVote(FAY)], [TWO_OF_FINANCE])
    assert not find_stuck(states, CARD, [FAY, FRED, BEN])
    assert find_stuck(states, CARD, [FAY, BEN]) == [TWO_OF_FINANCE]
    assert not is_approved(states)


def test_random_histories_are_decided_as_by_a_second_implementation() -> None:
    outcomes = {play_history(random.Random(f"votes {seed}")) for seed in range(HISTORIES)}
    assert outcomes == {"approved", "denied", "expired", "open"}
