"""Approval rules: who may decide a card and what it still needs, computed from arguments alone.

All rules that match a card must be met. A vote counts for each rule that accepts it. Without a
matching rule, one approver decides.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from tools.contract import Level
from tools.toolbox.conditions import Condition
from tools.toolbox.rule_matching import NO_FACTS, SchemaFacts, find_match
from tools.toolbox.value_readings import TODAY, Reading, is_same_name


@dataclass(frozen=True)
class Group:
    """A group of people who can meet a rule."""

    id: int
    name: str


@dataclass(frozen=True)
class Voter:
    """A person with their role and groups at this moment.

    Attributes:
        may_approve: True for an active member with the approver role.
        groups: the ids of their groups.
        deputy_for: the people whose deputy they are at this moment. Chains are not followed, but
            each of these people has a `deputy_for`, too, because the votes of a person and their
            deputy never count separately.
    """

    id: int
    name: str
    may_approve: bool = True
    groups: frozenset[int] = frozenset()
    deputy_for: tuple["Voter", ...] = ()


@dataclass(frozen=True)
class CastVote:
    """A person's approval of a card, in their own name or as the deputy of another person."""

    voter: Voter
    deputy_for: Voter | None = None

    @property
    def people(self) -> tuple[Voter, ...]:
        """The voter, and the person for whom they vote as a deputy; another vote of these people
        does not count."""
        return (self.voter,) if self.deputy_for is None else (self.voter, self.deputy_for)

    def shares_a_voice_with(self, other: "CastVote") -> bool:
        """Return True if the two votes count as one, because they are those of one person, or of a
        person and their deputy."""
        own, others = ({person.id for person in vote.people} for vote in (self, other))
        return bool(
            own & others
            or others & {each.id for person in self.people for each in person.deputy_for}
            or own & {each.id for person in other.people for each in person.deputy_for}
        )

    @property
    def name(self) -> str:
        return (
            self.voter.name
            if self.deputy_for is None
            else f"{self.voter.name} for {self.deputy_for.name}"
        )


@dataclass(frozen=True)
class RuledCard:
    """A card as approval rules see it.

    Attributes:
        requesters: the ids of the people who asked for its call or edited it.
        age: the time since it began to wait.
        facts: the facts about the params that are only in the tool's schema.
    """

    tool: str
    category: str
    level: Level
    employee_id: int
    params: Mapping[str, Any] = field(default_factory=dict)
    requesters: frozenset[int] = frozenset()
    age: timedelta = timedelta()
    facts: SchemaFacts = NO_FACTS


@dataclass(frozen=True)
class RuleReason:
    """The reason why a rule applies to a card.

    Attributes:
        is_sure: False if it is only possible that a condition of the rule is met.
        why: the reason for people, such as `amount is 5000` or `it covers every card`.
    """

    is_sure: bool
    why: str


@dataclass(frozen=True)
class RuleTerms:
    """A rule about the people who must approve a card.

    Attributes:
        tool, category, level, employee_id, conditions: the cards to which it applies; an empty
            attribute matches every card. Names of tools and categories are compared folded.
        reading: the version of the rules for reading names and values, which is stored with a
            recording.
        needed: the number of people.
        group: the group that they belong to; None for every approver.
        excludes_requesters: True if people who asked for the call or edited it do not count.
        escalates_after, second_group: after this time, people of the second group count as well.
    """

    id: int
    name: str
    tool: str = ""
    category: str = ""
    level: Level | None = None
    employee_id: int | None = None
    conditions: tuple[Condition, ...] = ()
    needed: int = 1
    group: Group | None = None
    excludes_requesters: bool = False
    escalates_after: timedelta | None = None
    second_group: Group | None = None
    reading: Reading = TODAY

    def matches(self, card: RuledCard) -> bool:
        """Return True if the rule applies to this card."""
        return self.find_reason(card) is not None

    def find_reason(self, card: RuledCard) -> RuleReason | None:
        """Find the reason why the rule applies to this card; None if it surely does not."""
        is_in_scope = (
            self._names(self.tool, card.tool)
            and self._names(self.category, card.category)
            and self.level in (None, card.level)
            and self.employee_id in (None, card.employee_id)
        )
        if not is_in_scope:
            return None
        found = [find_match(each, card.params, card.facts) for each in self.conditions]
        matches = [match for match in found if match is not None]
        if len(matches) < len(found):
            return None
        why = " and ".join(match.why for match in matches) or self._describe_scope(card)
        return RuleReason(all(match.is_sure for match in matches), why)

    def read_as(self, reading: Reading) -> "RuleTerms":
        """Return a copy of the rule that reads names and values as in this version."""
        conditions = tuple(replace(each, reading=reading) for each in self.conditions)
        return replace(self, conditions=conditions, reading=reading)

    def _names(self, wanted: str, name: str) -> bool:
        if wanted in ("", name):
            return True
        return self.reading is not Reading.FIRST and is_same_name(wanted, name)

    def _describe_scope(self, card: RuledCard) -> str:
        if self.tool or self.category:
            return f"it covers {self.tool or self.category}"
        if self.level is not None:
            return f"it covers calls of the level {self.level.value}"
        return "it covers this employee" if self.employee_id else "it covers every card"

    def list_groups(self, card: RuledCard) -> list[Group]:
        """List the groups whose people count for this card now; empty if every approver counts."""
        if self.group is None:
            return []
        has_escalated = self.escalates_after is not None and card.age >= self.escalates_after
        return (
            [self.group, self.second_group] if has_escalated and self.second_group else [self.group]
        )

    def accepts(self, vote: CastVote, card: RuledCard) -> bool:
        """Return True if the vote counts for the rule. A deputy's vote counts for the groups of the
        person whom they represent."""
        if not all(person.may_approve for person in vote.people):
            return False
        if self.excludes_requesters and any(person.id in card.requesters for person in vote.people):
            return False
        groups = self.list_groups(card)
        return not groups or any(group.id in vote.people[-1].groups for group in groups)


ONE_MORE = "one more approval, because the rules have changed"
"""The need of a card whose votes suffice only because its rules have changed."""
ANY_APPROVER = RuleTerms(0, "one approver")
"""The rule for a card that no other rule matches."""
TWO_PERSON_RULE = RuleTerms(0, "two-person rule", excludes_requesters=True)
NEVER_MET = RuleTerms(0, "unreadable rule", needed=1, group=Group(0, "a group that cannot be read"))
"""The rule that stands in for an unreadable rule: nobody is in its group."""


@dataclass(frozen=True)
class RuleState:
    """A rule that matches a card, with the votes that count for it."""

    rule: RuleTerms
    counted: tuple[CastVote, ...]

    @property
    def missing(self) -> int:
        """The number of votes that the rule still needs."""
        return max(self.rule.needed - len(self.counted), 0)


@dataclass(frozen=True)
class Entitlement:
    """The right of one person to approve a card.

    Attributes:
        vote: the vote that the person may cast; None if they may not approve the card, or no vote
            is missing.
        completes: True if this approval is the last that the card needs.
        refusal: the reason why they may not approve it.
    """

    vote: CastVote | None
    completes: bool = False
    refusal: str = ""

    @property
    def may_approve(self) -> bool:
        """True if the person's approval would count."""
        return self.vote is not None or self.completes


def count_votes(
    card: RuledCard, votes: Iterable[CastVote], rules: Iterable[RuleTerms]
) -> list[RuleState]:
    """Return the state of each rule that matches the card, by the votes that count at this moment.

    A vote counts while all its people may approve. Two votes share a voice if they are those of one
    person, or of a person and their deputy; only the first of them counts.
    """
    matching = _list_matching(card, rules)
    heard = _list_heard(card, votes, matching)
    return [
        RuleState(rule, tuple(vote for vote in heard if rule.accepts(vote, card)))
        for rule in matching
    ]


def list_counted(
    card: RuledCard, votes: Iterable[CastVote], rules: Iterable[RuleTerms]
) -> list[CastVote]:
    """List the votes that count for at least one rule now. If a vote does not count for any rule,
    its voter may vote again."""
    return _list_heard(card, votes, _list_matching(card, rules))


def is_approved(states: Iterable[RuleState]) -> bool:
    """Return True if every rule is met."""
    return not any(state.missing for state in states)


def may_decide(
    person: Voter,
    card: RuledCard,
    votes: Sequence[CastVote],
    rules: Collection[RuleTerms],
) -> Entitlement:
    """Determine if the person may approve the card now, in their own name or else as a deputy.

    Args:
        votes: the votes that were cast on this card before.
        rules: all rules of the organization.
    """
    if not person.may_approve:
        return Entitlement(None, refusal="needs the approver role")
    heard = list_counted(card, votes, rules)
    states = count_votes(card, heard, rules)
    has_voted = any(person.id in _list_ids(vote) for vote in heard)
    if is_approved(states):
        return _may_finish(person, card, states, has_voted=has_voted)
    if has_voted:
        return Entitlement(None, refusal="you have approved this already")
    own = CastVote(person)
    if twin := next((vote for vote in heard if own.shares_a_voice_with(vote)), None):
        return Entitlement(
            None, refusal=f"{twin.name} has approved this, and together you count as one approval"
        )
    others = (CastVote(person, other) for other in person.deputy_for if other.id != person.id)
    free = (vote for vote in others if not any(vote.shares_a_voice_with(each) for each in heard))
    for vote in (own, *free):
        if any(state.missing and state.rule.accepts(vote, card) for state in states):
            return Entitlement(vote, is_approved(count_votes(card, [*heard, vote], rules)))
    return Entitlement(None, refusal=describe_needs(card, states))


def _may_finish(
    person: Voter, card: RuledCard, states: Collection[RuleState], *, has_voted: bool
) -> Entitlement:
    """Determine if the person may approve a card that has enough votes only because its rules
    became easier.

    One more approval is needed from someone whose approval counts, because the last voter saw a
    card that needed further votes.
    """
    if has_voted or any(state.rule.accepts(CastVote(person), card) for state in states):
        return Entitlement(None, completes=True)
    return Entitlement(None, refusal=f"{ONE_MORE}, by someone whose approval counts")


def find_stuck(
    states: Iterable[RuleState], card: RuledCard, people: Collection[Voter]
) -> list[RuleTerms]:
    """Find the rules that these people, all members of the organization, can no longer meet."""
    stuck, found = [], list(states)
    heard = [vote for state in found for vote in state.counted]
    for state in found:
        votes = (CastVote(one) for one in people if state.rule.accepts(CastVote(one), card))
        able = [vote for vote in votes if not any(vote.shares_a_voice_with(each) for each in heard)]
        if not _has_voices(able, state.missing):
            stuck.append(state.rule)
    return stuck


def _has_voices(votes: Sequence[CastVote], count: int) -> bool:
    """Return True if `count` of the votes can count together."""
    if count <= 0 or len(votes) < count:
        return count <= 0
    first, rest = votes[0], votes[1:]
    beside = [vote for vote in rest if not first.shares_a_voice_with(vote)]
    if _has_voices(beside, count - 1):
        return True
    return len(beside) < len(rest) and _has_voices(rest, count)


def describe_needs(card: RuledCard, states: Iterable[RuleState], requesters: str = "") -> str:
    """Describe what a waiting card still needs, such as `1 of 2: someone from Finance, not Ann`.

    Args:
        requesters: the names of those who asked for the call.
    """
    return (
        "; ".join(_describe_need(card, state, requesters) for state in states if state.missing)
        or ONE_MORE
    )


def _describe_need(card: RuledCard, state: RuleState, requesters: str) -> str:
    rule, groups = state.rule, " or ".join(group.name for group in state.rule.list_groups(card))
    who = f"someone from {groups}" if groups else "an approver"
    if rule.excludes_requesters and card.requesters:
        who += f", not {requesters}" if requesters else ", not someone who asked for this"
    return f"{len(state.counted)} of {rule.needed}: {who}" if rule.needed > 1 else f"needs {who}"


def _list_matching(card: RuledCard, rules: Iterable[RuleTerms]) -> list[RuleTerms]:
    return [rule for rule in rules if rule.matches(card)] or [ANY_APPROVER]


def _list_heard(
    card: RuledCard, votes: Iterable[CastVote], matching: Collection[RuleTerms]
) -> list[CastVote]:
    """List the accepted votes, one per voice; a vote that none of the rules accepts does not use up
    its voice."""
    heard: list[CastVote] = []
    for vote in votes:
        is_free = not any(vote.shares_a_voice_with(each) for each in heard)
        if is_free and any(rule.accepts(vote, card) for rule in matching):
            heard.append(vote)
    return heard


def _list_ids(vote: CastVote) -> set[int]:
    return {person.id for person in vote.people}
