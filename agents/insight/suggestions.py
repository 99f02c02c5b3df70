"""Suggested standing grants: the narrowest terms that cover the calls that people keep
approving."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from django.db.models import OuterRef, Subquery, Sum
from django.utils import timezone

from agents.accounts.models import Membership
from agents.employees.models import Grant
from agents.employees.toolboxes import load_toolbox
from agents.insight.decision_spans import select_decisions
from agents.insight.models import EmployeeFigures, FiguresHead
from agents.insight.narrowest_terms import CrossCheck, TermsMaker, cross_check, leave_out
from agents.runs.models import APPROVED_STATES, Approval, ApprovalKind, ApprovalStatus
from agents.standing_grants.making import list_usable
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.past_calls import (
    CallColumns,
    GrantMatcher,
    PastCall,
    PastFigure,
    count_covered,
    read_past_call,
)
from agents.standing_grants.proposals import ProposedGrant, read_value
from agents.standing_grants.run_facts import MAX_RUNS, RunResults
from tools.contract import Level, Tool, canonical_json
from tools.contract.lookups import is_same_source, may_bring_values
from tools.toolbox import Toolbox
from tools.toolbox.conditions import Rule
from tools.toolbox.param_values import is_number

LEAST_APPROVALS = 5
PERIOD = timedelta(days=30)
SHORTEST_LOOK = timedelta(seconds=2)
"""The minimum time for a careful approval. A faster approval may be careless, and is ignored."""
MAX_COMPARED = 50
"""The maximum number of approvals from which one suggestion is made; the newest are used."""
MAX_NARROWED = 5
"""The maximum number of denied calls for which one suggestion is made narrower."""
MAX_READ = 1_000
"""The maximum number of approvals that are read for the suggestions of one page, beginning with the
newest."""
MAX_DENIED = 500
"""The maximum number of denials that are read, beginning with the newest; see `_list_unread`."""


class DeniedFigure(NamedTuple):
    """The denied number nearest to a suggested range."""

    param: str
    figure: int | float


@dataclass(frozen=True)
class Suggestion:
    """A proposal that would have approved these approved cards and no denied card.

    Attributes:
        cards: the ids of the approved cards, newest first.
        check: the result of `cross_check` for these approvals.
        denied: the denied numbers nearest to the proposal's ranges.
        past: counts of the newest cards of its tool that the proposal would have approved; None if
            they were not counted.
    """

    proposal: ProposedGrant
    tool: Tool
    cards: tuple[int, ...]
    check: CrossCheck
    denied: tuple[DeniedFigure, ...] = ()
    past: PastFigure | None = None

    @cached_property
    def matcher(self) -> GrantMatcher:
        """The matcher that compares the proposal with past calls."""
        return GrantMatcher.of(self.proposal, self.tool)


class _Approved(NamedTuple):
    """A card that a person approved.

    Attributes:
        freed_at: the time of the person's previous decision; None if there is none.
        pinned: the version of the tool to which the employee is pinned now, or empty.
    """

    pk: int
    shape: str
    requested_at: datetime
    decided_at: datetime
    freed_at: datetime | None
    pinned: str | None
    definition_hash: str
    call: CallColumns

    @property
    def is_considered(self) -> bool:
        """True if the person took at least two seconds for the approval, counted from the card's
        request or from their previous decision."""
        began = max(self.requested_at, self.freed_at or self.requested_at)
        return self.decided_at - began >= SHORTEST_LOOK


def find_suggestions(member: Membership, employee_id: int | None = None) -> list[Suggestion]:
    """Find the suggestions for the organization, or for one employee, sorted by their number of
    approvals, the largest first.

    The number of queries does not depend on the number of shapes or cards.
    """
    organization_id = member.organization_id
    groups: dict[tuple[int, str], list[_Approved]] = defaultdict(list)
    for card in _load_approved(organization_id, employee_id=employee_id):
        groups[card.call.run__employee_id, card.shape].append(card)
    search = _Search(organization_id)
    found = search.build_all(groups.values())
    existing = list(list_usable(organization_id)) if found else []
    kept = [each for each in found if not _is_covered(each, existing)]
    kept.sort(key=lambda each: -len(each.cards))
    figures = count_covered(organization_id, [each.matcher for each in kept], search.results)
    return [replace(each, past=figure) for each, figure in zip(kept, figures, strict=True)]


def suggest_for_card(card: Approval) -> Suggestion | None:
    """Find the suggestion that would approve this waiting card; None if there is none."""
    approved = _load_approved(
        card.organization_id, employee_id=card.run.employee_id, shape=card.shape
    )
    search = _Search(card.organization_id)
    found = next(iter(search.build_all([approved])), None)
    past = read_past_call(card, search.results)
    return found if found is not None and found.matcher.covers(past) else None


def _load_approved(
    organization_id: int, *, employee_id: int | None, shape: str = ""
) -> list[_Approved]:
    """Load the single cards that people approved in the last 30 days, newest first."""
    rows = (
        select_decisions(organization_id)
        .filter(
            decided_at__gte=timezone.now() - PERIOD,
            kind=ApprovalKind.APPROVAL,
            status__in=APPROVED_STATES,
            bulk_id=None,
            broke_glass=False,
        )
        .exclude(shape="")
    )
    if shape:
        rows = rows.filter(shape=shape)
    if employee_id is not None:
        rows = rows.filter(run__employee_id=employee_id)
    before = (
        select_decisions(organization_id)
        .filter(decided_by=OuterRef("decided_by"), decided_at__lt=OuterRef("decided_at"))
        .order_by("-decided_at")
    )
    allowed = Grant.objects.filter(
        employee=OuterRef("run__employee"), tool=OuterRef("tool_call__tool")
    )
    newest = rows.annotate(
        freed_at=Subquery(before.values("decided_at")[:1]),
        pinned=Subquery(allowed.values("version")[:1]),
    ).order_by("-decided_at", "-pk")
    own = (*_Approved._fields[:6], "tool_call__definition_hash")
    found = newest.values_list(*own, *CallColumns._fields)[:MAX_READ]
    return [
        _Approved._make((*row[: len(own)], CallColumns._make(row[len(own) :]))) for row in found
    ]


@dataclass(frozen=True)
class _CardGroup:
    """Considered approvals of one employee and shape, newest first.

    Attributes:
        maker: makes terms for the current version of the tool.
        calls: the newest calls, from which the suggestion is made.
    """

    maker: TermsMaker
    cards: Sequence[_Approved]
    calls: Sequence[PastCall]

    @property
    def pair(self) -> tuple[int, str]:
        return self.cards[0].call.pair

    def keep_runs(self, run_ids: Collection[int]) -> _CardGroup:
        """Return the group with the cards of these runs only."""
        kept = [
            (card, call)
            for card, call in zip(self.cards, self.calls, strict=False)
            if call.run_id in run_ids
        ]
        return replace(self, cards=[card for card, _ in kept], calls=[call for _, call in kept])


class _Denials(NamedTuple):
    """The calls that people denied, by employee and tool.

    Attributes:
        unread: the employees and tools with denials that were not read.
    """

    calls: Mapping[tuple[int, str], list[CallColumns]]
    unread: frozenset[tuple[int, str]]


@dataclass(frozen=True)
class _Search:
    """A search for suggestions in one organization.

    Attributes:
        results: the results that the runs had seen.
    """

    organization_id: int
    results: RunResults = field(default_factory=RunResults)

    @cached_property
    def _toolbox(self) -> Toolbox:
        return load_toolbox(self.organization_id)

    def build_all(self, approved: Iterable[Sequence[_Approved]]) -> list[Suggestion]:
        """Build the suggestions from groups of approved cards, each of one employee and shape."""
        groups = [group for cards in approved if (group := self._select(cards)) is not None]
        if not groups:
            return []
        denied = _load_denied(self.organization_id, {group.pair for group in groups})
        groups = [group for group in groups if group.pair not in denied.unread]
        searched = {id(group) for group in groups if group.maker.needs_origins(group.calls)}
        runs = [
            call.run_id
            for group in groups
            if id(group) in searched
            for call in (*denied.calls.get(group.pair, ()), *group.calls)
        ]
        loaded = set(list(dict.fromkeys(runs))[:MAX_RUNS])
        self.results.load_all(loaded)
        groups = [group.keep_runs(loaded) if id(group) in searched else group for group in groups]
        found = (
            self._build(group, denied.calls.get(group.pair, ()))
            for group in groups
            if len(group.calls) >= LEAST_APPROVALS
        )
        return [each for each in found if each is not None]

    def _select(self, cards: Sequence[_Approved]) -> _CardGroup | None:
        """Select the considered approvals; None if too few were considered, or if no standing grant
        can cover them."""
        considered = [card for card in cards if card.is_considered]
        if len(considered) < LEAST_APPROVALS:
            return None
        first = considered[0]
        tool = self._toolbox.get_pinned_tool(first.call.tool_call__tool, first.pinned or "")
        if tool is None or tool.definition_hash != first.definition_hash:
            return None
        if first.call.level == Level.DESTRUCTIVE.value:
            return None
        newest = considered[:MAX_COMPARED]
        calls = [card.call.as_past_call(self.results) for card in newest]
        return _CardGroup(TermsMaker(tool, self._list_reads(tool)), considered, calls)

    def _build(self, group: _CardGroup, denied: Sequence[CallColumns]) -> Suggestion | None:
        """Build the suggestion that would have approved none of the denied calls; None if there is
        none, or if it would only repeat what was approved."""
        refused = [call.as_past_call(self.results) for call in denied]
        calls = group.calls
        for _ in range(MAX_NARROWED):
            proposal = group.maker.propose(calls, LEAST_APPROVALS)
            if proposal is None:
                return None
            matcher = GrantMatcher.of(proposal, group.maker.tool)
            wrong = next((call for call in refused if matcher.covers(call)), None)
            if wrong is None:
                check = cross_check(group.maker, calls, LEAST_APPROVALS - 1)
                cards = self._list_covered(group, matcher)
                if len(cards) < LEAST_APPROVALS or not check.approved:
                    return None
                figures = _list_figures(proposal, refused)
                return Suggestion(proposal, group.maker.tool, cards, check, figures)
            calls = leave_out(group.maker, calls, wrong)
        return None

    def _list_covered(self, group: _CardGroup, matcher: GrantMatcher) -> tuple[int, ...]:
        """List the cards that the terms would have approved."""
        pairs = zip(group.cards, group.calls, strict=False)
        covered = [card.pk for card, call in pairs if matcher.covers(call)]
        older = group.cards[len(group.calls) :]
        return (
            *covered,
            *(card.pk for card in older if matcher.covers(card.call.as_past_call(self.results))),
        )

    def _list_reads(self, tool: Tool) -> dict[str, Tool]:
        """List the reads of the tool's connection from whose results values may come."""
        return {
            each.name: each
            for each in self._toolbox.tools()
            if is_same_source(each, tool) and may_bring_values(each)
        }


def _list_figures(proposal: ProposedGrant, refused: Sequence[PastCall]) -> tuple[DeniedFigure, ...]:
    """List the denied number nearest to each bound of the proposal's ranges."""
    found = []
    for condition in proposal.conditions:
        numbers = [
            value
            for call in refused
            if is_number(value := read_value(call.params, condition.param))
        ]
        if condition.rule is Rule.MINIMUM:
            below = [each for each in numbers if each < condition.value]
            found += [DeniedFigure(condition.param, max(below))] if below else []
        elif condition.rule is Rule.MAXIMUM:
            above = [each for each in numbers if each > condition.value]
            found += [DeniedFigure(condition.param, min(above))] if above else []
    return tuple(found)


def _load_denied(organization_id: int, pairs: Collection[tuple[int, str]]) -> _Denials:
    """Load the calls that people denied in the last 30 days.

    Every denial of the tool counts, even if it was part of a bulk decision or its call has another
    shape, because a param may be optional.
    """
    denied = Approval.objects.filter(
        organization_id=organization_id,
        decided_at__gte=timezone.now() - PERIOD,
        kind=ApprovalKind.APPROVAL,
        status=ApprovalStatus.DENIED,
        tool_call__tool__in={tool for _, tool in pairs},
        run__employee_id__in={employee_id for employee_id, _ in pairs},
    )
    rows = list(denied.order_by("-decided_at").values_list(*CallColumns._fields)[: MAX_DENIED + 1])
    calls: dict[tuple[int, str], list[CallColumns]] = defaultdict(list)
    for row in rows[:MAX_DENIED]:
        call = CallColumns(*row)
        calls[call.pair].append(call)
    unread = frozenset[tuple[int, str]]()
    if len(rows) > MAX_DENIED:
        unread = _list_unread(pairs, {pair: len(mine) for pair, mine in calls.items()})
    return _Denials(calls, unread)


def _list_unread(
    pairs: Collection[tuple[int, str]], read: Mapping[tuple[int, str], int]
) -> frozenset[tuple[int, str]]:
    """List the employees and tools with denials that were not read, according to the counted
    figures.

    A denial that was not read might be of a call that a suggestion would have approved.
    """
    since = (timezone.now() - PERIOD).astimezone(UTC).date()
    figures = EmployeeFigures.objects.filter(employee_id__in={pk for pk, _ in pairs})
    sums = (
        figures.filter(day__gte=since, denied__gt=0).order_by().values_list("employee_id", "tool")
    )
    denied = {
        (employee_id, tool): many for employee_id, tool, many in sums.annotate(many=Sum("denied"))
    }
    head = FiguresHead.objects.filter(pk=FiguresHead.ONLY).first()
    is_counted = head is not None and head.is_done and head.event_id > 0
    return frozenset(
        pair for pair in pairs if not is_counted or denied.get(pair, 0) > read.get(pair, 0)
    )


def _is_covered(suggestion: Suggestion, existing: Iterable[StandingGrant]) -> bool:
    """Return True if a current standing grant has the same tool and conditions for this
    employee."""
    wanted = sorted(
        canonical_json(condition.as_json()) for condition in suggestion.proposal.conditions
    )
    return any(
        grant.tool == suggestion.proposal.tool
        and grant.employee_id in (None, suggestion.proposal.employee_id)
        and sorted(map(canonical_json, grant.conditions)) == wanted
        for grant in existing
    )
