"""JSON as HTML for people: lists of objects become tables, and nested values become trees that
fold. Tables and trees have a limited size."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from agents.platform.value_text import MAX_LENGTH, format_json_value
from agents.web.text.safe_text import render_text, render_value

MAX_ROWS = 20
MAX_COLUMNS = 30
MAX_NODES = 300
MAX_DEPTH = 12
MAX_OPEN_BRANCHES = 8
"""The maximum number of branches with which the first level starts unfolded."""


@dataclass(frozen=True)
class DataTable:
    """The rows of a result.

    Attributes:
        hidden_rows, hidden_columns: the numbers of rows and columns that are left out.
        rest: the other fields of the data.
    """

    columns: list[str]
    rows: list[list[Any]]
    hidden_rows: int
    hidden_columns: int
    rest: dict[str, Any]


def find_table(data: Any, max_rows: int = MAX_ROWS) -> DataTable | None:
    """Find the only list of objects in the data, as a table; None unless there is exactly one."""
    rows, rest = (data, {}) if isinstance(data, list) else _find_rows(data)
    if not rows or not all(isinstance(row, dict) for row in rows):
        return None
    names = list(dict.fromkeys(name for row in rows[:max_rows] for name in row))
    columns = names[:MAX_COLUMNS]
    cells = [[row.get(name) for name in columns] for row in rows[:max_rows]]
    return DataTable(columns, cells, max(0, len(rows) - max_rows), len(names) - len(columns), rest)


def render_data(data: Any, max_rows: int = MAX_ROWS) -> SafeString:
    """Render a result's data: as a table below its other fields if it has one list of objects, else
    as a tree."""
    table = find_table(data, max_rows)
    if table is None:
        return render_tree(data)
    other_fields = render_tree(table.rest) if table.rest else ""
    return SafeString(f"{other_fields}{_render_table(table)}")


def render_params(params: dict[str, Any]) -> SafeString:
    """Render params as a table with a row for each param."""
    if not params:
        return SafeString("<p>none</p>")
    rows = "".join(
        f'<tr><th scope="row">{render_text(name, keep="")}</th><td>{render_cell(value)}</td></tr>'
        for name, value in params.items()
    )
    return SafeString(
        f'<div class="scroll"><table class="params"><tbody>{rows}</tbody></table></div>'
    )


def render_tree(value: Any) -> SafeString:
    """Render the value as nested lists that fold: at most 300 values, with JSON in place of levels
    deeper than 12."""
    if not _is_branch(value):
        return _render_leaf(value)
    return SafeString(_TreeRenderer().render_branch(value, 0))


class _TreeRenderer:
    """A renderer for one tree, which counts the values."""

    def __init__(self) -> None:
        self._left = MAX_NODES

    def render_branch(self, value: Any, depth: int) -> str:
        pairs = list(value.items()) if isinstance(value, dict) else list(enumerate(value, start=1))
        taken = pairs[: max(0, self._left)]
        self._left -= len(taken)
        is_open = depth == 0 and len(pairs) <= MAX_OPEN_BRANCHES
        items = [self._render_item(str(name), child, depth, is_open) for name, child in taken]
        if len(pairs) > len(taken):
            items.append(f'<li class="small">and {len(pairs) - len(taken):,} more</li>')
        return f'<ul class="tree">{"".join(items)}</ul>'

    def _render_item(self, name: str, value: Any, depth: int, is_open: bool) -> str:
        key = f'<span class="key">{render_text(name, keep="")}</span>'
        if not _is_branch(value):
            return f"<li>{key} {_render_leaf(value)}</li>"
        if depth == MAX_DEPTH:
            return f"<li>{key} {_render_leaf(json.dumps(value, ensure_ascii=False))}</li>"
        opened = " open" if is_open else ""
        summary = f'<summary>{key} <span class="small">{_count(value)}</span></summary>'
        return f'<li><details class="branch"{opened}>{summary}{self.render_branch(value, depth + 1)}</details></li>'


def _is_branch(value: Any) -> bool:
    """Return True if the value can be unfolded; a list of plain values is easier to read in one
    line."""
    if isinstance(value, dict):
        return bool(value)
    return isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value)


def _count(value: Any) -> str:
    noun = "field" if isinstance(value, dict) else "item"
    return f"{len(value):,} {noun}{'' if len(value) == 1 else 's'}"


def render_cell(value: Any) -> str:
    """Render the value of a table cell; a nested value becomes a tree."""
    return render_tree(value) if isinstance(value, (dict, list)) else _render_leaf(value)


def _render_leaf(value: Any) -> SafeString:
    """Render a plain value as `render_value` does, but faster for short values: a table has
    hundreds."""
    text = format_json_value(value)
    if len(text) > MAX_LENGTH:
        return render_value(value)
    return SafeString(f'<bdi class="value">{render_text(text)}</bdi>')


def _render_table(table: DataTable) -> str:
    head = "".join(f'<th scope="col">{render_text(name, keep="")}</th>' for name in table.columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{render_cell(cell)}</td>' for cell in row)}</tr>" for row in table.rows
    )
    notes = [
        f"{count:,} more {noun}{'' if count == 1 else 's'}"
        for count, noun in ((table.hidden_rows, "row"), (table.hidden_columns, "column"))
        if count
    ]
    note = f'<p class="small">and {" and ".join(notes)}</p>' if notes else ""
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="Rows"><table class="data"><thead><tr>{head}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>{note}"
    )


def _find_rows(data: Any) -> tuple[list[Any] | None, dict[str, Any]]:
    """Find the only list of objects in an object, and the object's other fields; None and an empty
    dict unless there is exactly one list."""
    if not isinstance(data, dict):
        return None, {}
    found = [
        name
        for name, value in data.items()
        if isinstance(value, list) and value and isinstance(value[0], dict)
    ]
    if len(found) != 1:
        return None, {}
    return data[found[0]], {name: value for name, value in data.items() if name != found[0]}
