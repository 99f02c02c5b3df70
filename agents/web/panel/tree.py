"""JSON for people: a list of objects as a table, whatever is nested as a tree that folds; never longer than a page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from agents.web.text.safe_text import CLAMP_AT, as_text, shown, visible

MOST_ROWS = 20
MOST_COLUMNS = 30
MOST_NODES = 300
DEEPEST = 12
OPEN_BRANCHES = 8
"""The first level stands open while it has no more branches than this."""


@dataclass(frozen=True)
class Table:
    """Rows of a result: `left_out` rows and `hidden_columns` are not shown, `rest` stands beside them in the data."""

    columns: list[str]
    rows: list[list[Any]]
    left_out: int
    hidden_columns: int
    rest: dict[str, Any]


def table_of(data: Any, most: int = MOST_ROWS) -> Table | None:
    """The one list of objects in the data as a table; None if there is none, or more than one."""
    rows, rest = (data, {}) if isinstance(data, list) else _only_rows(data)
    if not rows or not all(isinstance(row, dict) for row in rows):
        return None
    names = list(dict.fromkeys(name for row in rows[:most] for name in row))
    columns = names[:MOST_COLUMNS]
    cells = [[row.get(name) for name in columns] for row in rows[:most]]
    return Table(columns, cells, max(0, len(rows) - most), len(names) - len(columns), rest)


def data_html(data: Any, most: int = MOST_ROWS) -> SafeString:
    """A result's data: its rows as a table with what stands beside them above it, anything else as a tree."""
    table = table_of(data, most)
    if table is None:
        return tree_html(data)
    beside = tree_html(table.rest) if table.rest else ""
    return SafeString(f"{beside}{_table_html(table)}")


def params_html(params: dict[str, Any]) -> SafeString:
    """Params by name, one row each."""
    if not params:
        return SafeString("<p>none</p>")
    rows = "".join(
        f'<tr><th scope="row">{visible(name, keep="")}</th><td>{_cell(value)}</td></tr>'
        for name, value in params.items()
    )
    return SafeString(f'<div class="scroll"><table class="params"><tbody>{rows}</tbody></table></div>')


def tree_html(value: Any) -> SafeString:
    """The value as nested lists that fold; deeper than 12 levels it is JSON, and beyond 300 values it ends."""
    if not _is_branch(value):
        return _leaf(value)
    return SafeString(_Tree().branch(value, 0))


class _Tree:
    """One tree while it is drawn, which may only grow so far."""

    def __init__(self) -> None:
        self._left = MOST_NODES

    def branch(self, value: Any, depth: int) -> str:
        pairs = list(value.items()) if isinstance(value, dict) else list(enumerate(value, start=1))
        taken = pairs[: max(0, self._left)]
        self._left -= len(taken)
        is_open = depth == 0 and len(pairs) <= OPEN_BRANCHES
        items = [self._item(str(name), one, depth, is_open) for name, one in taken]
        if len(pairs) > len(taken):
            items.append(f'<li class="small">and {len(pairs) - len(taken):,} more</li>')
        return f'<ul class="tree">{"".join(items)}</ul>'

    def _item(self, name: str, value: Any, depth: int, is_open: bool) -> str:
        key = f'<span class="key">{visible(name, keep="")}</span>'
        if not _is_branch(value):
            return f"<li>{key} {_leaf(value)}</li>"
        if depth == DEEPEST:
            return f"<li>{key} {_leaf(json.dumps(value, ensure_ascii=False))}</li>"
        opened = " open" if is_open else ""
        summary = f'<summary>{key} <span class="small">{_counted(value)}</span></summary>'
        return f'<li><details class="branch"{opened}>{summary}{self.branch(value, depth + 1)}</details></li>'


def _is_branch(value: Any) -> bool:
    """Whether it has something to unfold; a list of plain values reads best in one line."""
    if isinstance(value, dict):
        return bool(value)
    return isinstance(value, list) and any(isinstance(one, (dict, list)) for one in value)


def _counted(value: Any) -> str:
    noun = "field" if isinstance(value, dict) else "item"
    return f"{len(value):,} {noun}{'' if len(value) == 1 else 's'}"


def _cell(value: Any) -> str:
    return tree_html(value) if isinstance(value, (dict, list)) else _leaf(value)


def _leaf(value: Any) -> SafeString:
    """As `shown`, quickly where nothing has to be clamped, because a table has hundreds of these."""
    text = as_text(value)
    return shown(value) if len(text) > CLAMP_AT else SafeString(f'<bdi class="value">{visible(text)}</bdi>')


def _table_html(table: Table) -> str:
    head = "".join(f'<th scope="col">{visible(name, keep="")}</th>' for name in table.columns)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    left_out = [
        f"{count:,} more {noun}{'' if count == 1 else 's'}"
        for count, noun in ((table.left_out, "row"), (table.hidden_columns, "column"))
        if count
    ]
    note = f'<p class="small">and {" and ".join(left_out)}</p>' if left_out else ""
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="Rows"><table class="data"><thead><tr>{head}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>{note}"
    )


def _only_rows(data: Any) -> tuple[list[Any] | None, dict[str, Any]]:
    """The one list of objects in an object, and the fields beside it."""
    if not isinstance(data, dict):
        return None, {}
    found = [name for name, value in data.items() if isinstance(value, list) and value and isinstance(value[0], dict)]
    if len(found) != 1:
        return None, {}
    return data[found[0]], {name: value for name, value in data.items() if name != found[0]}
