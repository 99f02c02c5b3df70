"""The rows of the inbox, and the groups of rows whose cards have one shape."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from agents.approvals.warnings.marks import DESTRUCTIVE, FOLDED, Mark
from agents.approvals.warnings.odd_cards import MIN_ALIKE, flatten_params
from agents.approvals.warnings.odd_values import find_oddities
from agents.platform.value_text import format_json_value
from agents.runs.models import ApprovalKind
from agents.web.cards.cards import ICONS
from tools.contract import Level

MAX_VALUE_LENGTH = 60
RISKS = {
    Level.DESTRUCTIVE.value: 3,
    Level.WRITE.value: 2,
    Level.DRAFT.value: 1,
    Level.READ.value: 1,
}


@dataclass(frozen=True)
class InboxRow:
    """One waiting card, as one line of the list.

    Attributes:
        label, target_id: the label and id of the target if there is exactly one; otherwise empty.
        amount: the number of targets, if there are several: `12 records`.
        values: the params in which the cards of a group differ; a new row also has the shared
            params, at the end.
        marks: the marks because of which the card is approved individually, without new contacts.
        target_keys: a short key for each target, or `*` for many; cards with a common key affect
            the same target.
        new_contacts: the contacts that are new here, in words; the summary of a bulk decision lists
            them.
        claimed_by: the username of the person who has claimed the card.
        voters: the usernames of the people who have approved a card that needs more approvals.
        oddity: the value by which a row differs from the rest of its group: `different domain
            in “email”`.
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
    marks: tuple[Mark, ...] = ()
    target_keys: tuple[str, ...] = ()
    is_grouped: bool = False
    oddity: str = ""
    new_contacts: str = ""
    claimed_by: str = ""
    voters: tuple[str, ...] = ()

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
        """A number that is larger for riskier cards: unknown outcomes, destructive, write, and all
        others."""
        return 4 if self.kind == ApprovalKind.UNKNOWN else RISKS.get(self.level, 0)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The labels of the marks except the level and the need to open the card, which are shown
        in other ways."""
        return tuple(mark.label for mark in self.marks if mark.kind not in (FOLDED, DESTRUCTIVE))

    @property
    def must_be_opened(self) -> bool:
        """True if the card folds something that has to be opened before approval."""
        return any(mark.kind == FOLDED for mark in self.marks)

    @property
    def is_selectable(self) -> bool:
        """True if the card can be decided in bulk; other cards are decided one at a time."""
        return self.is_groupable and not self.marks

    @property
    def is_groupable(self) -> bool:
        """True if the card may be grouped with other cards of its shape."""
        return (
            self.kind == ApprovalKind.APPROVAL
            and self.level != Level.DESTRUCTIVE.value
            and bool(self.shape)
        )

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
        return len(self.rows) >= MIN_ALIKE


@dataclass(frozen=True)
class ShapeComparison:
    """The params of all cards of one shape, compared.

    Attributes:
        params: the params of each card by its id; the names of nested params are their whole paths,
            such as `values.phone`.
        shared: the names of the params that all cards have in common.
        oddities: the oddity of each card by its id; empty for most cards.
    """

    params: Mapping[int, Mapping[str, Any]]
    shared: frozenset[str]
    oddities: Mapping[int, str]

    def complete_row(self, row: InboxRow) -> InboxRow:
        """Return the row with its oddity and the values in which its card differs."""
        values = _list_values(self._list_own_params(row), lambda name: name not in self.shared)
        return replace(row, values=values, oddity=self.oddities[row.pk], is_grouped=True)

    def complete_new_row(self, row: InboxRow) -> InboxRow:
        """Return the row with all its values, the differing values first, because its group has no
        heading yet."""
        completed = self.complete_row(row)
        shared = _list_values(self._list_own_params(row), lambda name: name in self.shared)
        return replace(completed, values=completed.values + shared)

    def build_group(self, rows: Iterable[InboxRow]) -> RowGroup:
        """Build the group of these rows. Rows with an oddity and rows of cards to decide
        individually come first."""
        found = sorted(
            (self.complete_row(row) for row in rows),
            key=lambda row: not (row.marks or row.oddity),
        )
        return RowGroup(
            found, _list_values(self.params[found[0].pk], lambda name: name in self.shared)
        )

    def _list_own_params(self, row: InboxRow) -> dict[str, Any]:
        """List the card's params, except those that only name the target, because the row shows the
        target's label."""
        params = self.params[row.pk]
        return {
            name: value
            for name, value in params.items()
            if not row.label or str(value) != row.target_id
        }


def find_large_shapes(rows: Iterable[InboxRow]) -> dict[str, list[InboxRow]]:
    """Return the rows by shape, for each shape that at least three of these rows have."""
    by_shape: dict[str, list[InboxRow]] = defaultdict(list)
    for row in rows:
        if row.is_groupable:
            by_shape[row.shape].append(row)
    return {shape: found for shape, found in by_shape.items() if len(found) >= MIN_ALIKE}


def compare_cards(params: Mapping[int, dict[str, Any]]) -> ShapeComparison:
    """Compare cards of one shape by their params."""
    flat = {pk: flatten_params(each) for pk, each in params.items()}
    first = next(iter(flat.values()))
    shared = frozenset(
        name for name in first if all(other.get(name) == first[name] for other in flat.values())
    )
    return ShapeComparison(
        flat, shared, dict(zip(flat, find_oddities(list(flat.values())), strict=True))
    )


def _list_values(
    params: Mapping[str, Any], is_wanted: Callable[[str], bool]
) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name.rpartition(".")[2], _shorten(" ".join(format_json_value(value).split())))
        for name, value in params.items()
        if is_wanted(name)
    )


def _shorten(text: str) -> str:
    """Shorten a value for a row; keep its end, because that is where deceptive text hides."""
    if len(text) <= MAX_VALUE_LENGTH:
        return text
    half = MAX_VALUE_LENGTH // 2
    return f"{text[:half]}…{text[-half:]}"
