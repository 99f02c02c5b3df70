"""Excerpts of large results, short enough for a model: complete rows, complete lines, or characters."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from tools.contract.canonical import canonical_json
from tools.contract.result import ToolResult

MAX_CHARACTERS = 24_000
"""The longest result of one call that a model receives in full."""
_MAX_EXCERPT_CHARACTERS = MAX_CHARACTERS - 300
"""Leaves room for the line that names the position and the next step."""
MAX_REST_CHARACTERS = 6_000
_NEXT_STEP = "continue with results.read if available; otherwise request less"
_HANDLE = re.compile(r"r-([1-9]\d{0,17})")


@dataclass(frozen=True)
class Excerpt:
    """A part of a result.

    Attributes:
        text: the pieces from `start` up to, but not including, `end`.
        unit: rows, lines or characters.
        total: the number of pieces in the result.
    """

    text: str
    unit: str
    start: int
    end: int
    total: int


def take_excerpt(result: ToolResult, start: int = 0) -> Excerpt:
    """Cut an excerpt from the result's text for the model, starting at this piece.

    A list, or the longest list in an object, is cut by rows, and Markdown by lines. If a single row or line is too
    long, or a list makes up too little of the object, the text is cut by characters.
    """
    text = result.for_model()
    if result.error is not None:
        return _cut_characters(text, start)
    if result.markdown:
        return _cut_pieces("lines", text.split("\n"), start, "\n") or _cut_characters(text, start)
    found = _find_rows(result.data)
    excerpt = found and _cut_pieces("rows", [canonical_json(row) for row in found.rows], start, ",\n")
    return excerpt or _cut_characters(text, start)


def format_for_model(result: ToolResult, handle: str) -> str:
    """Format the tool message; if the result is too long, it is shortened and its last line names the handle."""
    text = result.for_model() or "Done."
    if len(text) <= MAX_CHARACTERS:
        return text
    portion = take_excerpt(result)
    text = portion.text
    if portion.unit == "rows" and (found := _find_rows(result.data)):
        text = f"{found.rest}\n{found.key}: [{text}]" if found.key else f"[{text}]"
    return f"{text}\n[shortened: {portion.end:,} of {portion.total:,} {portion.unit}; handle {handle}; {_NEXT_STEP}]"


@dataclass(frozen=True)
class _RowList:
    """The list that makes up most of a result; in an object, `key` is its name and `rest` all other keys as JSON."""

    rows: list[Any]
    key: str = ""
    rest: str = ""


def _find_rows(data: Any) -> _RowList | None:
    if isinstance(data, list):
        return _RowList(data)
    if not isinstance(data, dict):
        return None
    lists = {key: value for key, value in data.items() if isinstance(value, list)}
    key = max(lists, key=lambda name: len(lists[name]), default=None)
    if key is None:
        return None
    rest = canonical_json({name: value for name, value in data.items() if name != key})
    return _RowList(lists[key], key, rest) if len(rest) <= MAX_REST_CHARACTERS else None


def format_handle(call_id: int) -> str:
    """Format the handle with which the model reads the rest of a call's result."""
    return f"r-{call_id}"


def parse_handle(handle: str) -> int | None:
    """Return the call's id, or None if the text is not a handle."""
    found = _HANDLE.fullmatch(handle.strip())
    return int(found[1]) if found else None


def _cut_pieces(unit: str, pieces: Sequence[str], start: int, glue: str) -> Excerpt | None:
    """Join as many pieces as fit; return None if a single one is too long."""
    if max(map(len, pieces), default=0) > _MAX_EXCERPT_CHARACTERS:
        return None
    start = min(start, len(pieces))
    lengths = accumulate(len(piece) + len(glue) for piece in pieces[start:])
    end = start + sum(1 for length in lengths if length <= _MAX_EXCERPT_CHARACTERS + len(glue))
    return Excerpt(glue.join(pieces[start:end]), unit, start, end, len(pieces))


def _cut_characters(text: str, start: int) -> Excerpt:
    start = min(start, len(text))
    end = min(start + _MAX_EXCERPT_CHARACTERS, len(text))
    return Excerpt(text[start:end], "characters", start, end, len(text))
