"""Excerpts of large results, short enough for a model: whole rows, whole lines, or characters."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from tools.contract.canonical import canonical_json
from tools.contract.result import ToolResult

MAX_CHARACTERS = 24_000
"""The maximum length of a result that a model receives in full."""
_LAST_LINE = 300
"""The number of characters reserved for the last line, which names the position and the next
step."""
_REST_SHARE = 4
"""The other values of an object may take at most 1 / _REST_SHARE of an excerpt."""
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


def take_excerpt(result: ToolResult, start: int = 0, longest: int = MAX_CHARACTERS) -> Excerpt:
    """Cut an excerpt from the text for the model, starting at piece `start`.

    A list, or the longest list in an object, is cut by rows, and Markdown by lines. If a single row
    or line is too long, or a list makes up too little of the object, the text is cut by characters.

    Args:
        longest: the maximum number of characters, including the last line.
    """
    text, room = result.for_model(), longest - _LAST_LINE
    if result.error is not None:
        return _cut_characters(text, start, room)
    if result.markdown:
        return _cut_pieces(("lines", "\n"), text.split("\n"), start, room) or _cut_characters(
            text, start, room
        )
    found = _find_rows(result.data, longest)
    excerpt = found and _cut_pieces(
        ("rows", ",\n"), [canonical_json(row) for row in found.rows], start, room
    )
    return excerpt or _cut_characters(text, start, room)


def take_rows(result: ToolResult, excerpt: Excerpt) -> Any:
    """Return the result's data with only the rows of this excerpt; None if the excerpt was not cut
    by rows."""
    rows = slice(excerpt.start, excerpt.end)
    if excerpt.unit != "rows" or isinstance(result.data, list):
        return result.data[rows] if excerpt.unit == "rows" else None
    return {**result.data, (key := _find_longest_list(result.data)): result.data[key][rows]}


def format_for_model(result: ToolResult, handle: str, next_step: str = _NEXT_STEP) -> str:
    """Format the tool message; a result that is too long is shortened and ends with its handle.

    Args:
        next_step: how to read the rest; `{end}` is replaced with the number of the first piece of
            the rest.
    """
    files = "".join(f"\n{file.describe()}" for file in result.list_files())
    text = result.for_model() or "Done."
    if len(text) <= MAX_CHARACTERS:
        return f"{text}{files}"
    portion = take_excerpt(result)
    text = portion.text
    if portion.unit == "rows" and (found := _find_rows(result.data, MAX_CHARACTERS)):
        text = f"{found.rest}\n{found.key}: [{text}]" if found.key else f"[{text}]"
    step = next_step.format(end=portion.end)
    return f"{text}\n[shortened: {portion.end:,} of {portion.total:,} {portion.unit}; handle {handle}; {step}]{files}"


def describe_position(excerpt: Excerpt, next_step: str) -> str:
    """Describe the excerpt's position and the next step, in which `{end}` is replaced with the
    position where the rest starts."""
    position = (
        f"{excerpt.unit.capitalize()} {excerpt.start:,} to {excerpt.end:,} of {excerpt.total:,}"
    )
    is_last = excerpt.end == excerpt.total
    return f"{position}; {'this is the end' if is_last else next_step.format(end=excerpt.end)}"


@dataclass(frozen=True)
class _RowList:
    """Rows of a result. For rows in an object, `key` is their name there, and `rest` is the
    object's other values as JSON."""

    rows: list[Any]
    key: str = ""
    rest: str = ""


def _find_rows(data: Any, longest: int) -> _RowList | None:
    if isinstance(data, list):
        return _RowList(data)
    key = _find_longest_list(data) if isinstance(data, dict) else None
    if key is None:
        return None
    rest = canonical_json({name: value for name, value in data.items() if name != key})
    return _RowList(data[key], key, rest) if len(rest) <= longest // _REST_SHARE else None


def _find_longest_list(data: dict[str, Any]) -> str | None:
    lists = {key: value for key, value in data.items() if isinstance(value, list)}
    return max(lists, key=lambda name: len(lists[name]), default=None)


def format_handle(call_id: int) -> str:
    """Format the handle with which the model reads the rest of a call's result."""
    return f"r-{call_id}"


def parse_handle(handle: str) -> int | None:
    """Return the call's id, or None if the text is not a handle."""
    found = _HANDLE.fullmatch(handle.strip())
    return int(found[1]) if found else None


def _cut_pieces(
    kind: tuple[str, str], pieces: Sequence[str], start: int, longest: int
) -> Excerpt | None:
    """Join as many pieces as fit, or return None if one is too long; `kind` is (unit, glue)."""
    unit, glue = kind
    if max(map(len, pieces), default=0) > longest:
        return None
    start = min(start, len(pieces))
    lengths = accumulate(len(piece) + len(glue) for piece in pieces[start:])
    end = start + sum(1 for length in lengths if length <= longest + len(glue))
    return Excerpt(glue.join(pieces[start:end]), unit, start, end, len(pieces))


def _cut_characters(text: str, start: int, longest: int) -> Excerpt:
    start = min(start, len(text))
    end = min(start + longest, len(text))
    return Excerpt(text[start:end], "characters", start, end, len(text))
