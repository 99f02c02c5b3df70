"""Suggested standing grants: the narrowest terms that cover the calls that people keep
approving."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import OuterRef, Subquery, Sum
from django.utils import timezone

from agents.accounts.models import Membership
from agents.employees.models import Grant
from agents.employees.toolboxes import load_toolbox
from agents.insight.models import EmployeeFigures, FiguresHead
from agents.platform.refusals import Invalid
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus
from agents.standing_grants.making import list_usable
from agents.standing_grants.models import MAX_DAYS, StandingGrant
from agents.standing_grants.past_calls import CallColumns, GrantMatcher, PastCall, read_past_call
from agents.standing_grants.preapprovals import find_default_nulls
from agents.standing_grants.proposals import (
    ProposedGrant,
    check_terms,
    find_naming,
    propose_equal,
    read_value,
)
from tools.contract import Level, Tool, canonical_json, find_named_hosts
from tools.toolbox import Toolbox
from tools.toolbox.conditions import Condition, Rule
from tools.toolbox.grant_conditions import list_value_paths

LEAST_APPROVALS = 5
PERIOD = timedelta(days=30)
SHORTEST_LOOK = timedelta(seconds=2)
"""The shortest time for a careful approval. A faster approval may be careless, and does not
count."""
MAX_VALUES = 10
"""The most different values that a condition "one of" may list."""
MAX_READ = 1_000
"""The most approvals that are read for the suggestions of one page, beginning with the newest."""
MAX_DENIED = 500
"""The most denials that are read, beginning with the newest; see `_keep_wholly_read`."""
_APPROVED = (ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED)


@dataclass(frozen=True)
class Suggestion:
    """A proposal that would have approved these approved cards and no denied card.

    Attributes:
        cards: the ids of the approved cards, newest first.
    """

    proposal: ProposedGrant
    tool: Tool
    cards: tuple[int, ...]

    @cached_property
    def matcher(self) -> GrantMatcher:
        """The matcher that compares the proposal with past calls."""
        return GrantMatcher.of(self.proposal, self.tool)

    @property
    def pair(self) -> tuple[int | None, str]:
        """The id of the proposal's employee, and the name of its tool."""
        return self.proposal.employee_id, self.proposal.tool

    def would_preapprove(self, call: PastCall) -> bool:
        """Return True if the proposal would approve this call, assuming that nothing has changed
        since the call."""
        return self.matcher.covers(call)


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

    Costs three queries, however many shapes there are.
    """
    organization_id = member.organization_id
    groups: dict[tuple[int, str], list[_Approved]] = defaultdict(list)
    for card in _load_approved(organization_id, employee_id=employee_id):
        groups[card.call.run__employee_id, card.shape].append(card)
    toolbox = load_toolbox(organization_id)
    found = [each for cards in groups.values() if (each := _build_suggestion(toolbox, cards))]
    existing = list(list_usable(organization_id)) if found else []
    kept = [each for each in found if not _is_covered(each, existing)]
    return sorted(_drop_denied(organization_id, kept), key=lambda each: -len(each.cards))


def suggest_for_card(card: Approval) -> Suggestion | None:
    """Find the suggestion that would approve this waiting card; None if there is none."""
    approved = _load_approved(
        card.organization_id, employee_id=card.run.employee_id, shape=card.shape
    )
    found = _build_suggestion(load_toolbox(card.organization_id), approved)
    if found is None or not found.would_preapprove(read_past_call(card)):
        return None
    return next(iter(_drop_denied(card.organization_id, [found])), None)


def _load_approved(
    organization_id: int, *, employee_id: int | None, shape: str = ""
) -> list[_Approved]:
    """Load the single cards that people approved in the last 30 days, newest first.

    An approval by a standing grant is left out, because it is not a decision of the grant's
    creator.
    """
    rows = Approval.objects.filter(
        organization_id=organization_id,
        decided_at__gte=timezone.now() - PERIOD,
        kind=ApprovalKind.APPROVAL,
        status__in=_APPROVED,
        standing_grant=None,
        bulk_id=None,
        broke_glass=False,
    ).exclude(shape="")
    if shape:
        rows = rows.filter(shape=shape)
    if employee_id is not None:
        rows = rows.filter(run__employee_id=employee_id)
    before = Approval.objects.filter(
        organization_id=organization_id,
        decided_by=OuterRef("decided_by"),
        decided_at__lt=OuterRef("decided_at"),
        standing_grant=None,
    ).order_by("-decided_at")
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


def _drop_denied(organization_id: int, found: Iterable[Suggestion]) -> list[Suggestion]:
    """Drop the suggestions that would have approved a call that a person denied in the last 30
    days.

    Every denial of the tool counts: even one in bulk or of another shape, because a param may be
    optional.
    """
    left = list(found)
    if not left:
        return []
    denied = Approval.objects.filter(
        organization_id=organization_id,
        decided_at__gte=timezone.now() - PERIOD,
        kind=ApprovalKind.APPROVAL,
        status=ApprovalStatus.DENIED,
        tool_call__tool__in={each.tool.name for each in left},
        run__employee_id__in={each.proposal.employee_id for each in left},
    )
    rows = list(denied.order_by("-decided_at").values_list(*CallColumns._fields)[: MAX_DENIED + 1])
    calls = [CallColumns(*row) for row in rows[:MAX_DENIED]]
    if len(rows) > MAX_DENIED:
        left = _keep_wholly_read(left, Counter(call.pair for call in calls))
    for call in calls:
        if any(each.pair == call.pair for each in left):
            past = call.as_past_call()
            left = [
                each for each in left if each.pair != call.pair or not each.would_preapprove(past)
            ]
    return left


def _keep_wholly_read(
    found: Iterable[Suggestion], read: Mapping[tuple[int | None, str], int]
) -> list[Suggestion]:
    """Keep the suggestions for employees and tools whose denials were all read, according to the
    counted figures.

    A denial that was not read might be of a call that the suggestion would have approved.
    """
    since = (timezone.now() - PERIOD).astimezone(UTC).date()
    figures = EmployeeFigures.objects.filter(
        employee_id__in={each.proposal.employee_id for each in found}
    )
    sums = (
        figures.filter(day__gte=since, denied__gt=0).order_by().values_list("employee_id", "tool")
    )
    denied = {
        (employee_id, tool): many for employee_id, tool, many in sums.annotate(many=Sum("denied"))
    }
    head = FiguresHead.objects.filter(pk=FiguresHead.ONLY).first()
    is_counted = head is not None and head.is_done and head.event_id > 0
    return [
        each for each in found if is_counted and denied.get(each.pair, 0) <= read.get(each.pair, 0)
    ]


def _build_suggestion(toolbox: Toolbox, cards: Sequence[_Approved]) -> Suggestion | None:
    """Build the suggestion from approved cards of one employee and shape; None if too few were
    considered, or if no standing grant can cover them."""
    approved = [card for card in cards if card.is_considered]
    if len(approved) < LEAST_APPROVALS or approved[0].call.level == Level.DESTRUCTIVE.value:
        return None
    tool = toolbox.get_pinned_tool(approved[0].call.tool_call__tool, approved[0].pinned or "")
    if tool is None or tool.definition_hash != approved[0].definition_hash:
        return None
    try:
        proposal = _propose_narrowest([card.call for card in approved], tool)
        check_terms(proposal, tool, [card.call.params for card in approved])
    except Invalid:
        return None
    found = Suggestion(proposal, tool, ())
    covered = tuple(
        card.pk for card in approved if found.would_preapprove(card.call.as_past_call())
    )
    return replace(found, cards=covered) if len(covered) >= LEAST_APPROVALS else None


def _propose_narrowest(calls: Sequence[CallColumns], tool: Tool) -> ProposedGrant:
    """Propose the narrowest terms that cover these calls of one shape and one employee.

    Raises:
        Invalid: a param cannot be named.
    """
    first = propose_equal(calls[0].tool_call__tool, calls[0].run__employee_id, calls[0].params)
    present = [
        list_value_paths(call.params, find_default_nulls(tool, call.params)) or frozenset()
        for call in calls
    ]
    paths = sorted(set().union(*present))
    destinations = find_naming(tool, paths, [call.params for call in calls])
    conditions = [
        condition
        for path in paths
        for condition in _narrow(
            path,
            [
                read_value(call.params, path)
                for call, mine in zip(calls, present, strict=True)
                if path in mine
            ],
            path in destinations,
        )
    ]
    return replace(
        first, params=tuple(paths), conditions=tuple(conditions), lifetime=timedelta(days=MAX_DAYS)
    )


def _narrow(path: str, values: Iterable[Any], is_destination: bool) -> list[Condition]:
    """Return the narrowest conditions that all values of a param meet; none if it varies freely."""
    present = list(values)
    different = {canonical_json(value): value for value in present}
    if len(different) == 1:
        return [Condition(path, Rule.EQUALS, present[0])]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in present):
        return [
            Condition(path, Rule.MINIMUM, min(present)),
            Condition(path, Rule.MAXIMUM, max(present)),
        ]
    if len(different) <= MAX_VALUES:
        return [Condition(path, Rule.ONE_OF, list(different.values()))]
    hosts = {
        host for value in present for host in find_named_hosts({path: value}, frozenset({path}))
    }
    return [Condition(path, Rule.HOST, min(hosts))] if len(hosts) == 1 and is_destination else []


def _is_covered(suggestion: Suggestion, existing: Iterable[StandingGrant]) -> bool:
    """Return True if a standing grant in force has the same tool and conditions for this
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
