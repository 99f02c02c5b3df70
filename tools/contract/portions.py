"""A large result in portions that a model can read: whole rows, whole lines, or characters."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from .canonical import canonical_json
from .result import ToolResult

MOST_CHARACTERS = 24_000
"""Of what a model is told of one call."""
_MOST_OF_A_PORTION = MOST_CHARACTERS - 300
"""Room is left for the line that says where it stands and how to go on."""
MOST_OF_THE_REST = 6_000
_GO_ON = "read on with results.read if you have it, else ask for less"
_HANDLE = re.compile(r"r-([1-9]\d{0,17})")


@dataclass(frozen=True)
class Portion:
    """A part of a result: `text` holds the pieces from `start` to before `end`, of `total`, in `unit`s."""

    text: str
    unit: str
    start: int
    end: int
    total: int


def portion_of(result: ToolResult, start: int = 0) -> Portion:
    """As much of what the model gets of the result as fits, from this piece on.

    A list, or the longest list that an object holds, is told row by row, markdown line by line. Where a single row or
    line is too long, or most of it is no list, it is told by characters.
    """
    whole = result.for_model()
    if result.error is not None:
        return _by_characters(whole, start)
    if result.markdown:
        return _by_pieces("lines", whole.split("\n"), start, "\n") or _by_characters(whole, start)
    found = _rows_in(result.data)
    told = found and _by_pieces("rows", [canonical_json(row) for row in found.rows], start, ",\n")
    return told or _by_characters(whole, start)


def for_model(result: ToolResult, handle: str) -> str:
    """The text of the tool message. What is too long is shortened, and its last line says so and names the handle."""
    whole = result.for_model() or "Done."
    if len(whole) <= MOST_CHARACTERS:
        return whole
    portion = portion_of(result)
    text = portion.text
    if portion.unit == "rows" and (found := _rows_in(result.data)):
        text = f"{found.rest}\n{found.key}: [{text}]" if found.key else f"[{text}]"
    return f"{text}\n[shortened: {portion.end:,} of {portion.total:,} {portion.unit}; handle {handle}; {_GO_ON}]"


@dataclass(frozen=True)
class _Rows:
    """The list that makes up most of a result; inside an object `key` names it and `rest` is all else as JSON."""

    rows: list[Any]
    key: str = ""
    rest: str = ""


def _rows_in(data: Any) -> _Rows | None:
    if isinstance(data, list):
        return _Rows(data)
    if not isinstance(data, dict):
        return None
    lists = {key: value for key, value in data.items() if isinstance(value, list)}
    key = max(lists, key=lambda name: len(lists[name]), default=None)
    if key is None:
        return None
    rest = canonical_json({name: value for name, value in data.items() if name != key})
    return _Rows(lists[key], key, rest) if len(rest) <= MOST_OF_THE_REST else None


def handle_of(call_id: int) -> str:
    """The name under which the rest of a call's result is read."""
    return f"r-{call_id}"


def call_of(handle: str) -> int | None:
    """The call's id; None if this is no handle."""
    found = _HANDLE.fullmatch(handle.strip())
    return int(found[1]) if found else None


def _by_pieces(unit: str, pieces: Sequence[str], start: int, glue: str) -> Portion | None:
    """None if a piece is too long to be told with others."""
    if max(map(len, pieces), default=0) > _MOST_OF_A_PORTION:
        return None
    start = min(start, len(pieces))
    lengths = accumulate(len(piece) + len(glue) for piece in pieces[start:])
    end = start + sum(1 for length in lengths if length <= _MOST_OF_A_PORTION + len(glue))
    return Portion(glue.join(pieces[start:end]), unit, start, end, len(pieces))


def _by_characters(text: str, start: int) -> Portion:
    start = min(start, len(text))
    end = min(start + _MOST_OF_A_PORTION, len(text))
    return Portion(text[start:end], "characters", start, end, len(text))
