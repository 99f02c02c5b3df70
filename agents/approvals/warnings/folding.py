"""Plan which values of a card are shown immediately and which are folded: values that must be read
come first, and values that do not fit on a phone are folded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from agents.approvals.warnings.card_values import (
    CHANGED,
    PATH_SEPARATOR,
    REQUESTED,
    NamedValue,
    find_names_shown_once,
    find_row_state,
    find_shared_values,
    list_request_values,
    list_target_values,
    must_be_read,
)
from agents.approvals.warnings.odd_targets import (
    MAX_FIELDS,
    order_outliers_first,
    summarize_outliers,
)
from agents.approvals.warnings.odd_values import find_odd_entries
from agents.platform.value_text import count_rows, format_json_value, is_long
from tools.contract.contacts import walk_texts

MAX_SENTENCE = 400
FIRST_TARGETS = 5
"""The maximum number of targets shown at the top of a card; further targets are folded."""
MAX_ROWS = 36
"""The number of rows of text that the sentence and the values of a card may take before values are
folded: about one screen of 360 x 740 pixels."""
MIN_ROWS = 16
"""The minimum number of rows for the values, however long the sentence is."""
CHANGED_ROWS = 16
"""The number of rows for the differences from the replaced card."""
SENTENCE_WIDTH, NAME_WIDTH = 26, 34
PADDING, SUMMARY_ROWS, ODD_FIELD_ROWS = 0.6, 3, 3
LONG_ROWS = 10
"""The number of rows that a long value takes once it is folded; a folded difference takes about
twice as many."""
MAX_COLUMNS = 6
"""The maximum number of columns in a table of targets; further columns would be outside the
screen."""
MAX_NAMED = 5
"""The maximum number of folded values that a summary names."""
MAX_COUNTED = 1_000
"""The number of characters of a value from which its rows are estimated; longer values do not fit
in any case."""


@dataclass(frozen=True)
class Split:
    """The indices of values that are shown immediately, and of those that are folded.

    Attributes:
        shown: the values that must be read, then odd values, then others.
        named: the folded values that the summary names, because they are odd or must be read.
        alike: the number of all other folded values, if they are alike; otherwise 0.
        rows: the estimated rows of the shown values.
    """

    shown: tuple[int, ...] = ()
    folded: tuple[int, ...] = ()
    named: tuple[int, ...] = ()
    alike: int = 0
    rows: float = 0.0


@dataclass(frozen=True)
class Room:
    """The rows of text that the values of one block may take.

    Attributes:
        is_inline: True if values can share a row; otherwise each value has its own rows.
    """

    rows: float
    is_inline: bool = False

    def count(self, value: NamedValue, kind: str) -> float:
        """Estimate the rows that this value takes."""
        return _count_inline_rows(value) if self.is_inline else _count_value_rows(value, kind)


@dataclass(frozen=True)
class Folding:
    """The plan of one card.

    Attributes:
        order: the indices of the targets; targets that must be read come first.
        shared: the values that all targets share.
        own: for each target that is shown immediately, the values that only it has.
        request: the values of the request, which are shown if there are no targets.
        is_table: True if the targets are shown as a table.
        folds_parts: True if the card folds a part, which must be opened before approval.
    """

    order: tuple[int, ...] = ()
    shared: Split = field(default_factory=Split)
    own: tuple[Split, ...] = ()
    request: Split = field(default_factory=Split)
    is_table: bool = False
    folds_parts: bool = False


@dataclass(frozen=True)
class Signs:
    """Facts about the values of a card that the values themselves do not show.

    Attributes:
        names: the names of values that name a contact or come from outside.
        texts: the texts that carry a warning.
    """

    names: Set[str] = frozenset()
    texts: Set[str] = frozenset()

    def has_sign(self, value: NamedValue, kind: str) -> bool:
        """Return True if the value must be read before approval."""
        last = value.name.rpartition(PATH_SEPARATOR)[2]
        return (
            last in self.names
            or value.name in self.texts
            or (bool(self.texts) and self.has_text([value.before, value.after]))
            or must_be_read(value, kind)
        )

    def has_text(self, shown: Any) -> bool:
        """Return True if a text in this JSON value carries a warning."""
        return any(text in self.texts for _, text in walk_texts(shown))


def plan_folding(
    sentence: str, targets: Sequence[dict[str, Any]], params: Mapping[str, Any], signs: Signs
) -> Folding:
    """Plan the card with this sentence and these stored targets.

    Args:
        params: the values that the card shows if its call affects no known targets.
    """
    room = max(MIN_ROWS, MAX_ROWS - count_rows(sentence.replace("**", ""), SENTENCE_WIDTH))
    is_cut = len(sentence) > MAX_SENTENCE
    if not targets:
        values = list_request_values(params)
        request = split_values(values, Room(room), signs, REQUESTED)
        is_long = is_cut or any(_is_long(value.after) for value in values)
        folds = is_long or bool(request.folded)
        return Folding(request=request, folds_parts=folds)
    odd_fields = min(len(summarize_outliers(targets)), MAX_FIELDS)
    room = max(MIN_ROWS, room - ODD_FIELD_ROWS * odd_fields)
    order = _order_targets(targets, signs)
    plan = _plan_targets([targets[index] for index in order], room, signs)
    is_long = (
        is_cut
        or len(targets) > FIRST_TARGETS
        or any(_is_long(shown) for target in targets for shown in _list_shown(target))
    )
    is_high = len(plan.own) < len(targets) or any(
        split.folded for split in (plan.shared, *plan.own)
    )
    return Folding(
        order,
        plan.shared,
        plan.own,
        is_table=plan.is_table,
        folds_parts=is_long or is_high,
    )


def split_values(
    values: Sequence[NamedValue], room: Room, signs: Signs, kind: str = CHANGED
) -> Split:
    """Split the values of one block into those that fit into the room and those that are folded. At
    least one value is shown.

    Args:
        kind: the kind of the values, as `must_be_read` takes it.
    """
    costs = [room.count(value, kind) for value in values]
    first = [signs.has_sign(value, kind) for value in values]
    fits = sum(costs) <= room.rows
    odd: set[int] = set() if fits else find_odd_entries([value.current for value in values])
    order = sorted(range(len(values)), key=lambda index: (not first[index], index not in odd))
    if fits:
        return Split(tuple(order), rows=sum(costs))
    left, shown = room.rows - SUMMARY_ROWS, 0
    while not shown or (shown < len(order) and left >= costs[order[shown]]):
        left -= costs[order[shown]]
        shown += 1
    folded = tuple(sorted(order[shown:]))
    named = tuple(index for index in folded if first[index] or index in odd)
    are_alike = bool(odd) or len({repr(values[index].current) for index in folded}) == 1
    alike = len(folded) - len(named) if are_alike else 0
    return Split(tuple(order[:shown]), folded, named, alike, room.rows - left)


def _order_targets(targets: Sequence[dict[str, Any]], signs: Signs) -> tuple[int, ...]:
    """Order the targets: those with a warning, then those that differ from most others."""
    places = {id(target): index for index, target in enumerate(targets)}
    order = [places[id(target)] for target in order_outliers_first(targets)]
    if signs.texts:
        order.sort(key=lambda index: not signs.has_text(_list_shown(targets[index])))
    return tuple(order)


def _plan_targets(targets: Sequence[dict[str, Any]], room: float, signs: Signs) -> Folding:
    kind, once = find_row_state(targets), find_names_shown_once(targets)
    shared_room = Room(room / 2, is_inline=kind != CHANGED)
    shared = split_values(find_shared_values(targets), shared_room, signs, kind)
    columns = {value.name for target in targets for value in _list_own(target, once)}
    is_table = kind != CHANGED and len(targets) > 1 and 0 < len(columns) <= MAX_COLUMNS
    left = room - shared.rows
    own: list[Split] = []
    for target in targets[:FIRST_TARGETS]:
        values = _list_own(target, once)
        label = count_rows(format_json_value(target.get("label")), NAME_WIDTH) + PADDING
        each = [_count_value_rows(value, kind) for value in values]
        rows = label + (_count_table_rows(values) if is_table else sum(each))
        if own and rows > left:
            break
        whole = is_table or rows <= left
        own.append(split_values(values, Room(math.inf if whole else left - label), signs, kind))
        left -= rows
    return Folding(shared=shared, own=tuple(own), is_table=is_table)


def _list_own(target: Mapping[str, Any], once: Set[str]) -> list[NamedValue]:
    return [value for value in list_target_values(target) if value.name not in once]


def _count_value_rows(value: NamedValue, kind: str) -> float:
    """Estimate the rows of a value: its name, and below it the old and the new value."""
    shown = (value.before, value.after) if kind == CHANGED else (value.current,)
    texts = [format_json_value(one) for one in shown]
    rows = sum(min(count_rows(text[:MAX_COUNTED]), LONG_ROWS) for text in texts)
    return count_rows(value.name[:MAX_COUNTED], NAME_WIDTH) + rows + PADDING


def _count_inline_rows(value: NamedValue) -> float:
    """Estimate the rows of a value that can share a row; a short value takes only a part of a
    row."""
    text = f"{value.name}  {format_json_value(value.current)[:MAX_COUNTED]}"
    rows = min(count_rows(text, NAME_WIDTH), LONG_ROWS)
    return rows if rows > 1 else (len(text) + 2) / NAME_WIDTH


def _count_table_rows(values: Sequence[NamedValue]) -> float:
    """Estimate the rows of a target in a table, whose values follow each other on a phone."""
    texts = [format_json_value(value.current)[:MAX_COUNTED] for value in values]
    return count_rows("  ".join(texts), NAME_WIDTH) + PADDING


def _is_long(shown: Any) -> bool:
    return is_long(format_json_value(shown).replace("\r\n", "\n"))


def _list_shown(target: Mapping[str, Any]) -> list[Any]:
    """List each text or value that the card shows in an element of its own."""
    sides = (target.get("before") or {}, target.get("after") or {})
    return [target.get("label"), *(value for side in sides for value in side.values())]
