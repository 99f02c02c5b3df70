"""Markdown tables of records and figures."""

from collections.abc import Iterable, Sequence
from typing import Any

LONGEST_CELL = 120


def markdown_table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table whose cells cannot break it: pipes escaped, line breaks made spaces, long values cut."""
    lines = [_line(headers), _line(["---"] * len(headers))]
    lines += [_line([_cell(value) for value in row]) for row in rows]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Any) -> str:
    text = " ".join(("" if value is None else str(value)).split())
    if len(text) > LONGEST_CELL:
        text = f"{text[: LONGEST_CELL - 1]}…"
    return text.replace("\\", "\\\\").replace("|", "\\|")
