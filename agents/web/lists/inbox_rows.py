"""The rows of the inbox: one line for each waiting card, filtered, sorted, and grouped by shape.

All waiting cards, up to 1,000, are read together. Their filters and order are applied here, because
the counts next to the filters need all cards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple
from zlib import crc32

from django.db.models import Q, QuerySet
from django.template.loader import get_template
from django.utils import timezone

from agents.accounts.models import Membership, Organization
from agents.approvals.attention import find_claims
from agents.approvals.snoozes import list_snoozed_calls
from agents.approvals.votes import HAS_VOTES, list_voters
from agents.approvals.warnings.card_marks import CardFacts, WaitingCard, find_marks, load_facts
from agents.approvals.warnings.card_reading import read_cards
from agents.approvals.warnings.marks import NEW, select_individual
from agents.approvals.warnings.odd_cards import load_alike
from agents.employees.toolboxes import load_toolbox
from agents.runs.engine.cards import SEND
from agents.runs.models import IS_PENDING, Approval, ApprovalKind
from agents.web.cards.effects import find_nouns
from agents.web.jinja_environment import JINJA
from agents.web.lists.row_groups import (
    InboxRow,
    RowGroup,
    compare_cards,
    find_large_shapes,
)
from tools.contract import Tool, name_tool

MAX_ROWS = 1_000
MAX_QUERY_LENGTH = 200
MAX_KEYS = 10


class _Columns(NamedTuple):
    """The columns of a waiting card that its row needs."""

    pk: int
    kind: str
    level: str
    sentence: str
    digest: str
    shape: str
    requested_at: datetime
    expires_at: datetime
    tool_call_id: int
    tool_call__tool: str
    tool_call__version: str
    tool_call__created_at: datetime
    run__employee_id: int
    run__employee__name: str
    preview__total: int | None
    preview__effect: Any
    preview__targets__0__label: Any
    preview__targets__0__id: Any
    has_votes: bool


@dataclass(frozen=True)
class InboxFilter:
    """The filter and order of the list; an empty field matches any card."""

    employee_id: int | None = None
    tool: str = ""
    level: str = ""
    query: str = ""
    sort: str = ""
    is_snoozed: bool = False

    @property
    def is_active(self) -> bool:
        is_narrowed = self.employee_id is not None or self.tool or self.level or self.query
        return bool(is_narrowed or self.is_snoozed)

    def matches(self, row: InboxRow) -> bool:
        """Return True if the row passes every filter."""
        return (
            self.employee_id in (None, row.employee_id)
            and self.tool in ("", row.tool)
            and self.level in ("", row.word)
            and all(word in row.searched_text for word in self.query.casefold().split())
        )


@dataclass(frozen=True)
class Inbox:
    """The list of waiting cards.

    Attributes:
        newest: the id of the newest waiting card.
        facts: the facts about all listed cards that wait for approval.
        snoozed_calls: the calls whose cards the member has snoozed.
        snooze_ends: the time at which the next snoozed card returns; None if there is none.
        waiting_for_others: the rows of cards that the member has approved, and that need more
            approvals.
        employees, tools, levels: the choices of the filters, each with its number of waiting cards.
    """

    groups: list[RowGroup]
    newest: int
    facts: CardFacts
    is_cut: bool = False
    snoozed_calls: list[int] = field(default_factory=list)
    snooze_ends: datetime | None = None
    waiting_for_others: list[InboxRow] = field(default_factory=list)
    employees: list[tuple[int, str, int]] = field(default_factory=list)
    tools: list[tuple[str, str, int]] = field(default_factory=list)
    levels: list[tuple[str, int]] = field(default_factory=list)

    @property
    def rows(self) -> list[InboxRow]:
        return [*(row for group in self.groups for row in group.rows), *self.waiting_for_others]


SORTS: Mapping[str, tuple[str, Callable[[InboxRow], Any]]] = {
    "": ("Oldest first, grouped", lambda row: (row.call_id, row.pk)),
    "asked": ("Oldest first", lambda row: (row.call_id, row.pk)),
    "expiry": ("Expiring first", lambda row: (row.expires_at, row.pk)),
    "risk": ("Riskiest first", lambda row: (-row.risk, not row.warnings, row.call_id, row.pk)),
    "employee": ("Employee", lambda row: (row.employee.casefold(), row.call_id, row.pk)),
}
"""The orders of the list, each with its label; the first order also puts cards of the same shape
together."""


def load_inbox(member: Membership, criteria: InboxFilter) -> Inbox:
    """Load the waiting cards that match the member's filter, as rows; the number of queries does
    not depend on the number of cards."""
    organization = member.organization
    waiting = _list_waiting(organization.pk)
    snoozed = dict(list_snoozed_calls(member))
    are_snoozed = Q(tool_call_id__in=snoozed)
    rows, facts = _load(
        waiting.filter(are_snoozed if criteria.is_snoozed else ~are_snoozed), organization
    )
    is_cut, rows = len(rows) > MAX_ROWS, rows[:MAX_ROWS]
    shown = sorted((row for row in rows if criteria.matches(row)), key=SORTS[criteria.sort][1])
    name = member.user.get_username()
    theirs = [row for row in shown if name in row.voters]
    shown = [row for row in shown if name not in row.voters]
    return Inbox(
        waiting_for_others=theirs,
        groups=_group_by_shape(shown, is_sorted=bool(criteria.sort)),
        newest=max((row.pk for row in rows), default=0),
        facts=facts,
        is_cut=is_cut,
        snoozed_calls=list(snoozed),
        snooze_ends=min(snoozed.values(), default=None),
        employees=_count_choices((row.employee_id, row.employee) for row in rows),
        tools=_count_choices((row.tool, row.title) for row in rows),
        levels=sorted(Counter(row.word for row in rows).items()),
    )


def load_new_rows(organization: Organization, ids: Collection[int]) -> list[InboxRow]:
    """Load the rows of cards that are new, in call order, each compared with all waiting cards of
    its shape."""
    waiting = _list_waiting(organization.pk)
    rows, _ = _load(waiting.filter(pk__in=ids), organization)
    shapes = {row.shape for row in rows if row.is_groupable}
    if not shapes:
        return rows
    alike = load_alike(organization.pk, shapes)
    compared = {shape: compare_cards(each) for shape, each in alike.items()}
    return [
        comparison.complete_new_row(row)
        if (comparison := compared.get(row.shape)) is not None and row.pk in comparison.params
        else row
        for row in rows
    ]


def _list_waiting(organization_id: int) -> QuerySet[Approval]:
    return Approval.objects.filter(IS_PENDING, organization_id=organization_id)


def _load(
    waiting: QuerySet[Approval], organization: Organization
) -> tuple[list[InboxRow], CardFacts]:
    found = (
        waiting.annotate(has_votes=HAS_VOTES)
        .order_by("tool_call_id", "pk")
        .values_list(*_Columns._fields)[: MAX_ROWS + 1]
    )
    cards = [_Columns(*columns) for columns in found]
    approvals = [
        WaitingCard(card.pk, card.level, card.digest, card.tool_call__created_at)
        for card in cards
        if card.kind == ApprovalKind.APPROVAL
    ]
    readings = read_cards(organization.pk, {card.pk: card.digest for card in approvals})
    facts = load_facts(organization, approvals, readings)
    facts = replace(facts, claims=find_claims(organization.pk))
    marks = find_marks(organization, approvals, readings, facts)
    toolbox = load_toolbox(organization.pk)
    claims = {call_id: each.user.get_username() for call_id, each in facts.claims.items()}
    voters = list_voters(organization.pk) if any(card.has_votes for card in cards) else {}
    rows = [
        _build_row(
            card,
            toolbox.get_called_tool(card.tool_call__tool, card.tool_call__version),
            claimed_by=claims.get(card.tool_call_id, ""),
            voters=voters.get(card.pk, ()),
            marks=tuple(
                mark for mark in select_individual(marks.get(card.pk, ())) if mark.kind != NEW
            ),
            new_contacts=new.text if (new := facts.new_contacts.get(card.pk)) else "",
            target_keys=_shorten_keys(readings[card.pk].target_keys) if card.pk in readings else (),
        )
        for card in cards
    ]
    return rows, facts


def _shorten_keys(keys: frozenset[str]) -> tuple[str, ...]:
    if len(keys) > MAX_KEYS:
        return ("*",)
    return tuple(sorted(f"{crc32(key.encode()):x}" for key in keys))


def render_rows(rows: Sequence[InboxRow]) -> str:
    """Render rows for a live message, each as one list item."""
    return (
        get_template("approvals/rows.html", using=JINJA)
        .render({"rows": rows, "now": timezone.now()})
        .strip()
    )


def _build_row(card: _Columns, tool: Tool | None, **found: Any) -> InboxRow:
    """Build the row of a card from its columns and the fields in `found`."""
    total = card.preview__total or 0
    many = find_nouns(card.tool_call__tool, is_sent=card.preview__effect == SEND)[1]
    return InboxRow(
        pk=card.pk,
        kind=card.kind,
        level=card.level,
        sentence=card.sentence,
        digest=card.digest,
        shape=card.shape if card.kind == ApprovalKind.APPROVAL else "",
        asked_at=card.requested_at,
        expires_at=card.expires_at,
        call_id=card.tool_call_id,
        tool=card.tool_call__tool,
        title=name_tool(tool, card.tool_call__tool),
        employee_id=card.run__employee_id,
        employee=card.run__employee__name,
        label=str(card.preview__targets__0__label or "") if total == 1 else "",
        target_id=str(card.preview__targets__0__id or "") if total == 1 else "",
        amount=f"{total:,} {many}" if total > 1 else "",
        **found,
    )


def _count_choices(values: Iterable[tuple[Any, str]]) -> list[tuple[Any, str, int]]:
    counts = Counter(values)
    return sorted(
        ((key, label, count) for (key, label), count in counts.items()),
        key=lambda one: one[1].casefold(),
    )


def _group_by_shape(rows: Sequence[InboxRow], *, is_sorted: bool) -> list[RowGroup]:
    """Group the cards of each shape that has many cards, at the place of its first card. If the
    member chose another order, leave the cards in place and only mark the odd ones."""
    large = find_large_shapes(rows)
    ids = [row.pk for found in large.values() for row in found]
    stored = dict(Approval.objects.filter(pk__in=ids).values_list("pk", "params")) if ids else {}
    compared = {
        shape: compare_cards({row.pk: stored.get(row.pk, {}) for row in found})
        for shape, found in large.items()
    }
    groups = []
    for row in rows:
        comparison = compared.get(row.shape) if row.is_groupable else None
        if comparison is None:
            groups.append(RowGroup([row]))
        elif is_sorted:
            groups.append(RowGroup([replace(row, oddity=comparison.oddities[row.pk])]))
        elif row is large[row.shape][0]:
            groups.append(comparison.build_group(large[row.shape]))
    return groups
