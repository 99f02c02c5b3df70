"""Find out, before a card exists, which people may decide the cards of a tool."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from tools.toolbox.approval_rules import (
    CastVote,
    Entitlement,
    Group,
    RuledCard,
    RuleState,
    RuleTerms,
    Voter,
    find_stuck,
    may_decide,
)


@dataclass(frozen=True)
class RuleLine:
    """A rule that matches the card.

    Attributes:
        needs: the people that it requires, such as `needs 2 people of Finance, not Ann`.
        only_if: the calls that it covers, such as `amount is at least 100`; empty for every call.
        people: the names of the people whose own approval counts for the rule.
        is_stuck: True if nobody can meet the rule.
    """

    rule: RuleTerms
    needs: str
    only_if: str
    people: tuple[str, ...]
    is_stuck: bool


@dataclass(frozen=True)
class PersonStanding:
    """One person's right to approve the card. `text` continues a sentence that begins with the
    person's name."""

    name: str
    may_approve: bool
    text: str


@dataclass(frozen=True)
class WhoMayDecide:
    """The rules for a card, and each person's right to approve it; the people who may approve come
    first."""

    rules: tuple[RuleLine, ...]
    people: tuple[PersonStanding, ...]


def find_who_may_decide(
    card: RuledCard,
    rules: Collection[RuleTerms],
    people: Collection[Voter],
    *,
    meets_conditions: bool,
) -> WhoMayDecide:
    """Find out who may decide a card whose params are unknown.

    Args:
        rules: all rules of the organization.
        people: its members.
        meets_conditions: True to assume that the card meets every condition on params, False to
            assume that it meets none.
    """
    matching = [rule for rule in rules if _without_conditions(rule).matches(card)]
    applying = [
        _without_conditions(rule) for rule in matching if meets_conditions or not rule.conditions
    ]
    names = ", ".join(one.name for one in people if one.id in card.requesters)
    standings = [_describe_person(one, may_decide(one, card, [], applying)) for one in people]
    return WhoMayDecide(
        tuple(_describe_rule(rule, card, people, names) for rule in matching),
        tuple(
            sorted(
                standings, key=lambda standing: (not standing.may_approve, standing.name.casefold())
            )
        ),
    )


def _without_conditions(rule: RuleTerms) -> RuleTerms:
    return replace(rule, conditions=())


def _describe_rule(
    rule: RuleTerms, card: RuledCard, people: Iterable[Voter], requesters: str
) -> RuleLine:
    state, people = RuleState(rule, ()), tuple(people)
    return RuleLine(
        rule,
        describe_people(rule, rule.list_groups(card), requesters),
        " and ".join(condition.describe_match() for condition in rule.conditions),
        tuple(sorted(one.name for one in people if rule.accepts(CastVote(one), card))),
        bool(find_stuck([state], card, people)),
    )


def describe_people(rule: RuleTerms, groups: Iterable[Group], requesters: str = "") -> str:
    """Describe the people that a rule requires, such as `needs 2 people of Finance, not Ann`.

    Args:
        groups: the groups whose people count; none if every approver counts.
        requesters: the names of those who requested the call.
    """
    names = " or ".join(group.name for group in groups)
    kind = (
        ("person" if names else "approver")
        if rule.needed == 1
        else "people"
        if names
        else "approvers"
    )
    belong = f" of {names}" if names else ""
    excluded = (
        f", not {requesters or 'someone who asked for it'}" if rule.excludes_requesters else ""
    )
    return f"needs {rule.needed} {kind}{belong}{excluded}"


def _describe_person(person: Voter, found: Entitlement) -> PersonStanding:
    if not found.may_approve:
        return PersonStanding(
            person.name, may_approve=False, text=f"can’t approve: {found.refusal}"
        )
    other = found.vote.deputy_for if found.vote else None
    name = f", in the name of {other.name}" if other else ""
    alone = "may approve it alone" if found.completes else "may approve it together with others"
    return PersonStanding(person.name, may_approve=True, text=f"{alone}{name}")
