"""The rows of the inbox: one line for each waiting card, filtered, sorted, and grouped by shape.

All waiting cards are read at once, up to 1,000, with one query. Their filters and order are applied here, because
the counts next to the filters need all of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple
from zlib import crc32

from django.db.models import Q, QuerySet
from django.template.loader import get_template
from django.utils import timezone

from agents.accounts.models import Membership
from agents.approvals.folding import format_json_value
from agents.approvals.marks import CardReading, read_cards
from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.approvals.snoozes import list_snoozed_calls
from agents.employees.toolboxes import load_toolbox
from agents.runs.engine.cards import SEND
from agents.web.cards.cards import ICONS, find_nouns
from agents.web.jinja_environment import JINJA
from agents.web.lists.odd_values import find_oddities
from tools.contract import Level
from tools.toolbox.toolbox import Toolbox

MAX_ROWS = 1_000
MIN_GROUP = 3
"""Cards of equal shape that become a group."""
MAX_QUERY_LENGTH = 200
MAX_VALUE_LENGTH = 60
MAX_KEYS = 10
FROM_OUTSIDE = "From outside"
RISKS = {Level.DESTRUCTIVE.value: 3, Level.WRITE.value: 2, Level.DRAFT.value: 1, Level.READ.value: 1}


class _Columns(NamedTuple):
    """The columns of a waiting card that its row is made from."""

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
    run__employee_id: int
    run__employee__name: str
    preview__total: int | None
    preview__effect: Any
    preview__targets__0__label: Any
    preview__targets__0__id: Any


@dataclass(frozen=True)
class InboxRow:
    """One waiting card, as one line of the list.

    Attributes:
        label, target_id: those of a single target.
        amount: the number of targets, if there are several: `12 records`.
        values: the params in which the cards of a group differ.
        marks: the labels of the warnings on the card.
        must_be_opened: the card folds something that has to be opened before approval.
        target_keys: a short key for each target, or `*` for many; cards with a common key affect the same target.
        oddity: the value by which a row differs from the rest of its group: `email: different domain`.
    """

    pk: int
    kind: str
    level: str
    sentence: str
    digest: str
    shape: str
    asked_at: datetime
    expires_at: datetime
    call_id: int
    tool: str
    title: str
    employee_id: int
    employee: str
    label: str
    target_id: str
    amount: str
    values: tuple[tuple[str, str], ...] = ()
    marks: tuple[str, ...] = ()
    must_be_opened: bool = False
    target_keys: tuple[str, ...] = ()
    is_grouped: bool = False
    oddity: str = ""

    @property
    def icon(self) -> str:
        is_approval = self.kind == ApprovalKind.APPROVAL
        return ICONS.get(self.level, "pencil-line") if is_approval else "circle-question-mark"

    @property
    def word(self) -> str:
        """The level, or the kind of a card that is not an approval."""
        if self.kind == ApprovalKind.QUESTION:
            return "question"
        return "unknown" if self.kind == ApprovalKind.UNKNOWN else self.level

    @property
    def risk(self) -> int:
        """A number that is larger for riskier cards: unknown outcomes, destructive, write, and all others."""
        return 4 if self.kind == ApprovalKind.UNKNOWN else RISKS.get(self.level, 0)

    @property
    def is_selectable(self) -> bool:
        """True if the card can be decided in bulk; the others are decided one at a time."""
        return self.is_groupable and not self.marks and not self.must_be_opened

    @property
    def is_groupable(self) -> bool:
        """True if the card is grouped with others of its shape."""
        return self.kind == ApprovalKind.APPROVAL and self.level != Level.DESTRUCTIVE.value and bool(self.shape)

    @property
    def searched_text(self) -> str:
        """The text that a search looks through, in lower case."""
        return f"{self.sentence} {self.employee} {self.title} #{self.pk}".casefold()


@dataclass(frozen=True)
class RowGroup:
    """Rows shown together: cards of one shape, or a single card.

    Attributes:
        shared: the params that all cards of the group have in common, shown once above them.
    """

    rows: list[InboxRow]
    shared: tuple[tuple[str, str], ...] = ()

    @property
    def is_group(self) -> bool:
        return len(self.rows) >= MIN_GROUP


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
        snoozed_calls: the calls whose cards the member has snoozed.
        snooze_ends: the time at which the next of them returns.
        employees, tools, levels: the choices of the filters, each with its number of waiting cards.
    """

    groups: list[RowGroup]
    newest: int
    is_cut: bool = False
    snoozed_calls: list[int] = field(default_factory=list)
    snooze_ends: datetime | None = None
    employees: list[tuple[int, str, int]] = field(default_factory=list)
    tools: list[tuple[str, str, int]] = field(default_factory=list)
    levels: list[tuple[str, int]] = field(default_factory=list)

    @property
    def rows(self) -> list[InboxRow]:
        return [row for group in self.groups for row in group.rows]


SORTS: Mapping[str, tuple[str, Callable[[InboxRow], Any]]] = {
    "": ("Oldest first, grouped", lambda row: (row.call_id, row.pk)),
    "asked": ("Oldest first", lambda row: (row.call_id, row.pk)),
    "expiry": ("Expiring first", lambda row: (row.expires_at, row.pk)),
    "risk": ("Riskiest first", lambda row: (-row.risk, row.call_id, row.pk)),
    "employee": ("Employee", lambda row: (row.employee.casefold(), row.call_id, row.pk)),
}
"""The orders of the list, each with its label; the first one also puts cards of equal shape together."""


def load_inbox(member: Membership, criteria: InboxFilter) -> Inbox:
    """Load the waiting cards that the member wants to see, as rows; two queries, and one more with groups."""
    waiting = _list_waiting(member.organization_id)
    snoozed = dict(list_snoozed_calls(member))
    are_snoozed = Q(tool_call_id__in=snoozed)
    rows = _load(waiting.filter(are_snoozed if criteria.is_snoozed else ~are_snoozed), member.organization_id)
    is_cut, rows = len(rows) > MAX_ROWS, rows[:MAX_ROWS]
    shown = sorted((row for row in rows if criteria.matches(row)), key=SORTS[criteria.sort][1])
    groups = [RowGroup([row]) for row in shown] if criteria.sort else _group_by_shape(shown)
    return Inbox(
        groups=groups,
        newest=max((row.pk for row in rows), default=0),
        is_cut=is_cut,
        snoozed_calls=list(snoozed),
        snooze_ends=min(snoozed.values(), default=None),
        employees=_count_choices((row.employee_id, row.employee) for row in rows),
        tools=_count_choices((row.tool, row.title) for row in rows),
        levels=sorted(Counter(row.word for row in rows).items()),
    )


def load_rows(organization_id: int, ids: Iterable[int] | None = None) -> list[InboxRow]:
    """Load the rows of the waiting cards, or of those with these ids, in call order; at most one more than 1,000."""
    waiting = _list_waiting(organization_id)
    return _load(waiting if ids is None else waiting.filter(pk__in=ids), organization_id)


def _list_waiting(organization_id: int) -> QuerySet[Approval]:
    return Approval.objects.filter(organization_id=organization_id, status=ApprovalStatus.PENDING)


def _load(waiting: QuerySet[Approval], organization_id: int) -> list[InboxRow]:
    found = waiting.order_by("tool_call_id", "pk").values_list(*_Columns._fields)[: MAX_ROWS + 1]
    toolbox = load_toolbox(organization_id)
    rows = [_build_row(_Columns(*columns), toolbox) for columns in found]
    digests = {row.pk: row.digest for row in rows if row.kind == ApprovalKind.APPROVAL}
    readings = read_cards(organization_id, digests)
    return [_add_reading(row, readings[row.pk]) if row.pk in readings else row for row in rows]


def _add_reading(row: InboxRow, reading: CardReading) -> InboxRow:
    marks = [*(mark.label for mark in reading.marks), *([FROM_OUTSIDE] if reading.has_outside_destination else [])]
    is_folded = reading.folds_parts and row.level in (Level.WRITE.value, Level.DESTRUCTIVE.value)
    return replace(row, marks=tuple(marks), must_be_opened=is_folded, target_keys=_shorten_keys(reading.target_keys))


def _shorten_keys(keys: frozenset[str]) -> tuple[str, ...]:
    if len(keys) > MAX_KEYS:
        return ("*",)
    return tuple(sorted(f"{crc32(key.encode()):x}" for key in keys))


def render_rows(rows: Sequence[InboxRow]) -> str:
    """Render rows for a live message, each as one list item."""
    return get_template("approvals/rows.html", using=JINJA).render({"rows": rows, "now": timezone.now()}).strip()


def _build_row(card: _Columns, toolbox: Toolbox) -> InboxRow:
    tool, total = toolbox.get_tool(card.tool_call__tool), card.preview__total or 0
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
        title=tool.title if tool else card.tool_call__tool,
        employee_id=card.run__employee_id,
        employee=card.run__employee__name,
        label=str(card.preview__targets__0__label or "") if total == 1 else "",
        target_id=str(card.preview__targets__0__id or "") if total == 1 else "",
        amount=f"{total:,} {many}" if total > 1 else "",
    )


def _count_choices(values: Iterable[tuple[Any, str]]) -> list[tuple[Any, str, int]]:
    counts = Counter(values)
    return sorted(((key, label, count) for (key, label), count in counts.items()), key=lambda one: one[1].casefold())


def _group_by_shape(rows: list[InboxRow]) -> list[RowGroup]:
    """Put the cards of equal shape together, in the place of the oldest of them."""
    by_shape: dict[str, list[InboxRow]] = defaultdict(list)
    for row in rows:
        by_shape[row.shape if row.is_groupable else f"card {row.pk}"].append(row)
    large = {shape: found for shape, found in by_shape.items() if len(found) >= MIN_GROUP}
    ids = [row.pk for found in large.values() for row in found]
    stored = Approval.objects.filter(pk__in=ids).values_list("pk", "params") if ids else ()
    params = {pk: _flatten(each) for pk, each in stored}
    groups = []
    for row in rows:
        if row.shape not in large or not row.is_groupable:
            groups.append(RowGroup([row]))
        elif row is large[row.shape][0]:
            groups.append(_build_group(large[row.shape], params))
    return groups


def _build_group(rows: list[InboxRow], params: dict[int, dict[str, Any]]) -> RowGroup:
    """Build the group with the values that all its cards share; the odd ones out come first."""
    each = [params.get(row.pk, {}) for row in rows]
    first = each[0]
    shared = {name for name in first if all(other.get(name) == first[name] for other in each)}
    found = []
    for row, values, oddity in zip(rows, each, find_oddities(each), strict=True):
        differing = _list_values(_drop_target(row, values), lambda name: name not in shared)
        found.append(replace(row, values=differing, oddity=oddity, is_grouped=True))
    found.sort(key=lambda row: not (row.marks or row.oddity or row.must_be_opened))
    return RowGroup(found, _list_values(first, lambda name: name in shared))


def _drop_target(row: InboxRow, params: dict[str, Any]) -> dict[str, Any]:
    """Drop the params that only name the row's target, whose label the row shows."""
    return {name: value for name, value in params.items() if not row.label or str(value) != row.target_id}


def _flatten(params: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Name the values of nested objects by their whole path, such as `values.phone`."""
    flat: dict[str, Any] = {}
    for name, value in params.items():
        flat |= _flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def _list_values(params: dict[str, Any], is_wanted: Callable[[str], bool]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name.rpartition(".")[2], _shorten(" ".join(format_json_value(value).split())))
        for name, value in params.items()
        if is_wanted(name)
    )


def _shorten(text: str) -> str:
    """Shorten a value for a row; its end stays, because that is where a value hides what matters."""
    if len(text) <= MAX_VALUE_LENGTH:
        return text
    half = MAX_VALUE_LENGTH // 2
    return f"{text[:half]}…{text[-half:]}"
