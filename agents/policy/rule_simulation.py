"""Simulate approval rules: judge recorded cards as if the rules of a policy draft had been in
force. Nothing is changed.

Each approval is judged with the people and the other rules of its time, so the result shows the
effect of the policy draft alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from agents.accounts.models import Organization
from agents.approval_rules.loading import load_rules, load_voters
from agents.employees.toolboxes import load_toolbox
from agents.policy.policy_drafts import ChangeKind, PolicyChange
from agents.policy.recorded_cards import (
    CardRow,
    PastCard,
    RulesOfToday,
    add_requesters,
    find_cards,
    load_votes,
    read_cards,
    read_judgment,
)
from agents.runs.models import ApprovalStatus
from tools.toolbox.approval_rules import (
    CastVote,
    RuledCard,
    RuleTerms,
    count_votes,
    describe_needs,
    find_stuck,
    is_approved,
    may_decide,
)

MAX_LISTED = 200
"""The maximum number of changed cards that a report lists; further cards are only counted."""
MAX_REMEMBERED = 10_000


class CardOutcome(StrEnum):
    """The outcomes of judging a recorded card by the approval rules of a policy draft."""

    ENOUGH = "enough"
    """The approvals would have been sufficient."""
    MORE = "more"
    """People approved the card, but more or other people would have been needed."""
    FEWER = "fewer"
    """The approvals before the last one, or before the denial or expiry, would have been
    sufficient."""
    PREAPPROVED = "answered"
    """A standing grant approved the card, and would still have approved it."""
    PAUSED = "paused"
    """A standing grant approved the card, but people would have had to decide it."""
    OPEN = "open"
    """The card was not approved, and would not have been approved."""
    ERASED = "erased"
    """The rule needs values of the call, but these were erased."""
    UNREADABLE = "unreadable"
    """The card's record is damaged."""


CHANGED = (CardOutcome.MORE, CardOutcome.FEWER, CardOutcome.PAUSED)
SKIPPED = (CardOutcome.ERASED, CardOutcome.UNREADABLE)
_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, OverflowError)


@dataclass(frozen=True)
class JudgedCard:
    """The result of judging a recorded card by the approval rules of a policy draft.

    Attributes:
        needs: the missing approvals under the policy draft, such as `1 of 2: someone from Finance`.
        is_stuck: the current members could not meet the policy draft's rules for the card.
        is_kept: the people and groups were recorded with the approval; otherwise the current groups
            are used.
        is_unsure: a rule of the policy draft applies only because it cannot be ruled out.
    """

    row: CardRow
    outcome: CardOutcome
    needs: str = ""
    is_stuck: bool = False
    is_kept: bool = False
    is_unsure: bool = False

    @property
    def is_changed(self) -> bool:
        return self.outcome in CHANGED

    @property
    def is_alarming(self) -> bool:
        """True if a person denied the card, although it would already have been approved before the
        denial."""
        return self.outcome is CardOutcome.FEWER and self.row.status == ApprovalStatus.DENIED


class ChangedApprovalRules:
    """The approval rules that the changes of a policy draft add, replace and remove."""

    def __init__(self, changes: Iterable[PolicyChange]) -> None:
        rules = [(change.kind, change.rule) for change in changes if change.rule is not None]
        self.replaced = frozenset(rule.id for _, rule in rules if rule.id)
        last = {rule.id or -number: (kind, rule) for number, (kind, rule) in enumerate(rules, 1)}
        self.added = tuple(rule for kind, rule in last.values() if kind is ChangeKind.APPROVAL_RULE)

    def list_added(self, card: RuledCard) -> list[RuleTerms]:
        """List the rules that the policy draft adds for this card."""
        return [rule for rule in self.added if rule.matches(card)]

    def is_unsure(self, card: RuledCard) -> bool:
        """Return True if one of the added rules applies to the card only because it cannot be ruled
        out."""
        reasons = (rule.find_reason(card) for rule in self.added)
        return any(reason is not None and not reason.is_sure for reason in reasons)

    def change(self, rules: Iterable[RuleTerms], card: RuledCard) -> list[RuleTerms]:
        """Return the rules for this card as changed by the policy draft."""
        return [*(rule for rule in rules if rule.id not in self.replaced), *self.list_added(card)]

    def concern(self, past: PastCard) -> bool:
        """Return True if the policy draft changes the rules for this card."""
        return any(rule.id in self.replaced for rule in past.rules) or bool(
            self.list_added(past.card)
        )

    def need_values(self, past: PastCard) -> bool:
        """Return True if the values of the call decide which rules match the card."""
        bare = (replace(rule, conditions=()) for rule in self.added if rule.conditions)
        return any(rule.matches(past.card) for rule in bare) or any(
            rule.conditions for rule in past.rules
        )


class CardJudge:
    """Judges recorded cards of one organization by the approval rules of a policy draft, a batch at
    a time."""

    def __init__(self, organization: Organization, changes: Iterable[PolicyChange]) -> None:
        self._changed = ChangedApprovalRules(changes)
        self._voters = load_voters(organization.pk)
        self._today = RulesOfToday(
            load_toolbox(organization.pk), load_rules(organization), self._voters
        )
        self._stuck: dict[tuple[object, ...], bool] = {}

    def judge(self, rows: Sequence[CardRow]) -> list[JudgedCard]:
        """Judge the cards that the policy draft concerns, in their order; all other cards are left
        out.

        Makes no query if the policy draft does not concern any of the cards; otherwise, one query
        for the votes, and those of `find_requesters` if a rule excludes requesters. A damaged
        record leads to an outcome, not to an exception.
        """
        found = [each for row in rows if (each := self._recall(row)) is not None]
        past = {each.row.pk: each for each in found if isinstance(each, PastCard)}
        past |= {
            each.row.pk: each
            for each in add_requesters(list(filter(self._needs_requesters, past.values())))
        }
        votes = load_votes(
            [each for each in past.values() if not each.row.is_approved], self._voters
        )
        past |= {pk: replace(past[pk], votes=cast) for pk, cast in votes.items()}
        return [
            self._judge(past[each.row.pk]) if isinstance(each, PastCard) else each for each in found
        ]

    def _recall(self, row: CardRow) -> PastCard | JudgedCard | None:
        try:
            past = self._today.recall(row)
            if past.breaks_glass:
                return None
            if self._changed.need_values(past) and read_judgment(row).get("erased"):
                return JudgedCard(row, CardOutcome.ERASED)
            return past if self._changed.concern(past) else None
        except _DAMAGE:
            return JudgedCard(row, CardOutcome.UNREADABLE)

    def _needs_requesters(self, past: PastCard) -> bool:
        rules = (*past.rules, *self._changed.list_added(past.card))
        return not past.has_requesters and any(rule.excludes_requesters for rule in rules)

    def _judge(self, past: PastCard) -> JudgedCard:
        judged = self._find_outcome(past)
        is_unsure = judged.outcome not in SKIPPED and self._changed.is_unsure(past.card)
        return replace(judged, is_unsure=is_unsure)

    def _find_outcome(self, past: PastCard) -> JudgedCard:
        try:
            outcome, votes = self._compare(past)
            if outcome in (CardOutcome.ENOUGH, CardOutcome.FEWER, CardOutcome.PREAPPROVED):
                return JudgedCard(past.row, outcome, is_kept=past.is_kept)
            needs = "" if outcome is CardOutcome.OPEN else self._describe_needs(past, votes)
            return JudgedCard(past.row, outcome, needs, self._is_stuck(past), past.is_kept)
        except _DAMAGE:
            return JudgedCard(past.row, CardOutcome.UNREADABLE)

    def _compare(self, past: PastCard) -> tuple[CardOutcome, list[CastVote]]:
        """Return the outcome, and the votes that would have counted toward the approvals that the
        card would have needed."""
        card, votes, rules = (
            past.card,
            list(past.votes),
            self._changed.change(past.rules, past.card),
        )
        if past.person is None or past.row.grant_id is None:
            was_enough = is_approved(count_votes(card, votes, past.rules))
            if votes and not was_enough and is_approved(count_votes(card, votes, rules)):
                return CardOutcome.FEWER, votes
        if past.person is None:
            return CardOutcome.OPEN, votes
        found = may_decide(past.person, card, votes, rules)
        if past.row.grant_id is not None:
            return CardOutcome.PREAPPROVED if found.completes else CardOutcome.PAUSED, []
        given = [*votes, found.vote] if found.vote is not None else votes
        return CardOutcome.ENOUGH if found.completes else CardOutcome.MORE, given

    def _describe_needs(self, past: PastCard, votes: Iterable[CastVote]) -> str:
        states = count_votes(past.card, votes, self._changed.change(past.rules, past.card))
        known = (self._voters[pk].name for pk in sorted(past.card.requesters) if pk in self._voters)
        return describe_needs(past.card, states, ", ".join(known))

    def _is_stuck(self, past: PastCard) -> bool:
        """Return True if the current members could never meet one of the added rules, even after
        the rule has escalated."""
        added = self._changed.list_added(past.card)
        if not added:
            return False
        key = (tuple(map(id, added)), past.card.requesters)
        if key not in self._stuck:
            if len(self._stuck) >= MAX_REMEMBERED:
                self._stuck.clear()
            age = max(
                [
                    past.card.age,
                    *(rule.escalates_after for rule in added if rule.escalates_after is not None),
                ]
            )
            card = replace(past.card, age=age)
            self._stuck[key] = bool(
                find_stuck(count_votes(card, [], added), card, self._voters.values())
            )
        return self._stuck[key]


@dataclass
class CardCounts:
    """The numbers of cards that the policy draft concerns, by outcome.

    Attributes:
        stuck: the number of these cards that current members could not approve under the policy
            draft.
        unsure: the number of these cards that a rule covers only because it cannot be ruled out.
    """

    outcomes: Counter[CardOutcome] = field(default_factory=Counter)
    stuck: int = 0
    unsure: int = 0

    @property
    def covered(self) -> int:
        return sum(number for outcome, number in self.outcomes.items() if outcome not in SKIPPED)

    @property
    def changed(self) -> int:
        return sum(self.outcomes[outcome] for outcome in CHANGED)

    def add(self, judged: JudgedCard) -> None:
        """Count a judged card by its outcome."""
        self.outcomes[judged.outcome] += 1
        self.stuck += judged.is_stuck
        self.unsure += judged.is_unsure


@dataclass
class RuleReport:
    """The outcome of simulating the approval rules of a policy draft.

    Attributes:
        compared: the number of cards that were read.
        by_tool, by_employee: the counts for each tool, and for each employee's id.
        kept, assumed: the number of approvals judged by recorded groups, and by current groups.
        alarming, changed: the newest changed cards that are alarming, and the newest other ones.
    """

    compared: int = 0
    total: CardCounts = field(default_factory=CardCounts)
    by_tool: Mapping[str, CardCounts] = field(default_factory=lambda: defaultdict(CardCounts))
    by_employee: Mapping[int, CardCounts] = field(default_factory=lambda: defaultdict(CardCounts))
    kept: int = 0
    assumed: int = 0
    alarming_count: int = 0
    alarming: list[JudgedCard] = field(default_factory=list)
    changed: list[JudgedCard] = field(default_factory=list)

    @property
    def listed(self) -> list[JudgedCard]:
        """The changed cards to list, with the alarming ones first."""
        return [*self.alarming, *self.changed][:MAX_LISTED]

    def add(self, judged: JudgedCard) -> None:
        """Count a card that the policy draft concerns."""
        self.total.add(judged)
        if judged.outcome in SKIPPED:
            return
        self.by_tool[judged.row.tool].add(judged)
        self.by_employee[judged.row.employee_id].add(judged)
        self.kept += judged.is_kept
        self.assumed += judged.row.is_approved and not judged.is_kept
        self.alarming_count += judged.is_alarming
        listed = self.alarming if judged.is_alarming else self.changed
        if judged.is_changed and len(listed) < MAX_LISTED:
            listed.append(judged)


def simulate_rules(
    organization: Organization, changes: Iterable[PolicyChange], limit: int
) -> RuleReport:
    """Judge the organization's newest cards by their own approval rules with the changes of a
    policy draft.

    Args:
        limit: the maximum number of cards to judge.
    """
    report, judge = RuleReport(), CardJudge(organization, changes)
    for rows in read_cards(find_cards(organization.pk).order_by("-pk")[:limit]):
        report.compared += len(rows)
        for judged in judge.judge(rows):
            report.add(judged)
    return report
