"""Suggested standing grants: the narrowest terms that cover the calls which people keep approving."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.utils import timezone

from agents.accounts.models import Membership
from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.employees.toolboxes import load_toolbox
from agents.platform.refusals import Invalid
from agents.standing_grants.drafts import GrantDraft, check_draft, draft_from_card, read_value
from agents.standing_grants.making import list_usable
from agents.standing_grants.models import MAX_DAYS, StandingGrant
from agents.standing_grants.past_calls import DraftedGrant, read_past_call
from tools.contract import Level, Tool, canonical_json, find_named_hosts
from tools.toolbox import Toolbox
from tools.toolbox.conditions import Condition, Rule
from tools.toolbox.standing_grants import list_destinations, list_paths

LEAST_APPROVALS = 5
PERIOD = timedelta(days=30)
SHORTEST_LOOK = timedelta(seconds=2)
"""A faster approval may be careless, and does not count."""
MAX_VALUES = 10
"""The most different values of a param that become "one of"."""
MAX_READ = 2_000
"""The most approvals that are read for the suggestions of one page, newest first. All denials are read."""
CHUNK_SIZE = 500
_APPROVED = (ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED)


@dataclass(frozen=True)
class Suggestion:
    """A draft that would have answered these approved cards and no denied card.

    Attributes:
        cards: the approved cards, newest first.
    """

    draft: GrantDraft
    tool: Tool
    cards: tuple[Approval, ...]

    @cached_property
    def drafted(self) -> DraftedGrant:
        """The draft to compare past cards with."""
        return DraftedGrant.of(self.draft, self.tool)

    def would_answer(self, card: Approval) -> bool:
        """Return True if the draft answers the card, as if nothing had changed since."""
        return self.drafted.answers(read_past_call(card))


def find_suggestions(member: Membership, employee_id: int | None = None) -> list[Suggestion]:
    """Find the suggestions for the organization or for one employee, sorted by their number of approvals.

    Costs three queries, however many shapes there are.
    """
    organization_id = member.organization_id
    groups: dict[tuple[int, str], list[Approval]] = defaultdict(list)
    for card in _load_approved(organization_id, employee_id=employee_id):
        groups[card.run.employee_id, card.shape].append(card)
    toolbox = load_toolbox(organization_id)
    found = [each for cards in groups.values() if (each := _draft_suggestion(organization_id, toolbox, cards))]
    existing = list(list_usable(organization_id)) if found else []
    kept = [each for each in found if not _is_covered(each, existing)]
    return sorted(_drop_denied(organization_id, kept), key=lambda each: -len(each.cards))


def suggest_for_card(card: Approval) -> Suggestion | None:
    """Find the suggestion that would answer this waiting card; None if there is none."""
    approved = _load_approved(card.organization_id, employee_id=card.run.employee_id, shape=card.shape)
    found = _draft_suggestion(card.organization_id, load_toolbox(card.organization_id), approved)
    if found is None or not found.would_answer(card):
        return None
    return next(iter(_drop_denied(card.organization_id, [found])), None)


def _load_approved(organization_id: int, *, employee_id: int | None, shape: str = "") -> list[Approval]:
    """Load the single cards that people approved in the last 30 days, newest first, with `freed_at`.

    That is the person's decision before it. An answer of a standing grant is not its maker's.
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
    rows = rows.annotate(freed_at=Subquery(before.values("decided_at")[:1]))
    return list(_load_related(rows).order_by("-decided_at", "-pk")[:MAX_READ])


def _drop_denied(organization_id: int, found: Iterable[Suggestion]) -> list[Suggestion]:
    """Drop the suggestions that would have answered a call that a person denied in the last 30 days.

    Every denial of the tool counts: also one in bulk, and one of another shape, because a param may be optional.
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
        run__employee_id__in={each.draft.employee_id for each in left},
    )
    for card in _load_related(denied).order_by("-decided_at").iterator(CHUNK_SIZE):
        left = [each for each in left if not each.would_answer(card)]
        if not left:
            break
    return left


def _load_related(cards: QuerySet[Approval]) -> QuerySet[Approval]:
    """Load what a card is compared by together with it."""
    return cards.select_related("tool_call", "run__employee").defer("preview", "tool_call__result", "run__session")


def _draft_suggestion(organization_id: int, toolbox: Toolbox, cards: Sequence[Approval]) -> Suggestion | None:
    """Draft the suggestion of approved cards of one employee and shape; None if too few show care."""
    approved = [card for card in cards if _is_considered(card)]
    if len(approved) < LEAST_APPROVALS or approved[0].level == Level.DESTRUCTIVE.value:
        return None
    tool = toolbox.get_tool(approved[0].tool_call.tool)
    if tool is None or tool.definition_hash != approved[0].tool_call.definition_hash:
        return None
    try:
        draft = _draft_narrowest(approved, tool)
        check_draft(organization_id, draft)
    except Invalid:
        return None
    found = Suggestion(draft, tool, tuple(approved))
    answered = tuple(card for card in approved if found.would_answer(card))
    return replace(found, cards=answered) if len(answered) >= LEAST_APPROVALS else None


def _is_considered(card: Approval) -> bool:
    """Return True if the person took at least two seconds, from the card's request or their decision before it."""
    freed_at: datetime | None = getattr(card, "freed_at", None)
    began = max(card.requested_at, freed_at or card.requested_at)
    return card.decided_at is not None and card.decided_at - began >= SHORTEST_LOOK


def _draft_narrowest(cards: Sequence[Approval], tool: Tool) -> GrantDraft:
    """Draft the narrowest terms that cover these cards of one shape and one employee.

    Raises:
        Invalid: a param cannot be named.
    """
    first = draft_from_card(cards[0])
    paths = sorted(set().union(*(list_paths(card.params) or () for card in cards)))
    destinations = list_destinations(paths, tool.destination_params | tool.address_params)
    conditions = [
        condition
        for path in paths
        for condition in _narrow(path, [read_value(card.params, path) for card in cards], path in destinations)
    ]
    return replace(first, params=tuple(paths), conditions=tuple(conditions), lifetime=timedelta(days=MAX_DAYS))


def _narrow(path: str, values: Iterable[Any], is_destination: bool) -> list[Condition]:
    """Return the narrowest conditions that all values of a param meet; none if it varies freely."""
    present = [value for value in values if value is not None]
    different = {canonical_json(value): value for value in present}
    if len(different) == 1:
        return [Condition(path, Rule.EQUALS, present[0])]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in present):
        return [Condition(path, Rule.MINIMUM, min(present)), Condition(path, Rule.MAXIMUM, max(present))]
    if len(different) <= MAX_VALUES:
        return [Condition(path, Rule.ONE_OF, list(different.values()))]
    hosts = {host for value in present for host in find_named_hosts({path: value}, frozenset({path}))}
    return [Condition(path, Rule.HOST, min(hosts))] if len(hosts) == 1 and is_destination else []


def _is_covered(suggestion: Suggestion, existing: Iterable[StandingGrant]) -> bool:
    """Return True if a standing grant in force has the same tool and conditions for this employee."""
    wanted = sorted(canonical_json(condition.as_json()) for condition in suggestion.draft.conditions)
    return any(
        grant.tool == suggestion.draft.tool
        and grant.employee_id in (None, suggestion.draft.employee_id)
        and sorted(map(canonical_json, grant.conditions)) == wanted
        for grant in existing
    )
