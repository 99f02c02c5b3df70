"""Markdown tables of records and figures."""

from collections.abc import Iterable, Sequence
from typing import Any

LONGEST_CELL = 120


def build_markdown_table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Build a table with safe cells: pipes escaped, line breaks as spaces, long values cut."""
    lines = [_format_line(headers), _format_line(["---"] * len(headers))]
    lines += [_format_line([_format_cell(value) for value in row]) for row in rows]
    return "\n".join(lines)


def _format_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _format_cell(value: Any) -> str:
    text = " ".join(("" if value is None else str(value)).split())
    if len(text) > LONGEST_CELL:
        text = f"{text[: LONGEST_CELL - 1]}…"
    return text.replace("\\", "\\\\").replace("|", "\\|")
