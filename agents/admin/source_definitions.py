"""What a source says of a tool, and what of it has changed since it was accepted, in parts that people can read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agents.web.cards.differences import INSIDE, Change
from tools.connections.models import SourceTool
from tools.contract import Level
from tools.sources.risks import risks_of

MOST_CHARACTERS = 400_000
"""Of definitions on one page, shared by its tools."""
AROUND = 60
"""Characters that are shown before and behind what has changed in a long text."""
NOT_TOLD = frozenset({"hash"})
"""What stands in a definition for us alone."""
HINTS = ("readOnlyHint", "destructiveHint")
"""By which an MCP server says how dangerous its tool is."""
PARTS = (
    ("Schema of its parameters", ("input_schema", "params")),
    ("Schema of its answer", ("output_schema",)),
    ("Its own hints", ("annotations",)),
)
"""What is shown as JSON, by the names that the definitions of MCP servers and of APIs have for it."""


@dataclass(frozen=True)
class Param:
    """One parameter, with a dot before the name of one that stands inside another."""

    name: str
    type: str
    is_required: bool
    description: str


@dataclass(frozen=True)
class Told:
    """A definition for people.

    Attributes:
        level_reason: why its level was inferred; empty if its source cannot say.
        risks: what the choice of its level decides about, a sentence each.
        calls_itself: the level that an MCP server's hints speak for; empty if it says nothing of what its tool does.
        parts: JSON, each with its heading.
        changes: since it was accepted, if it waits for that again; None if it does not.
        left_out: characters that are not shown.
    """

    description: str
    level_reason: str
    risks: tuple[str, ...]
    calls_itself: str
    params: tuple[Param, ...]
    parts: tuple[tuple[str, str], ...]
    changes: tuple[Change, ...] | None
    left_out: int


def told_of(row: SourceTool, at_most: int) -> Told:
    """In at most so many characters; what has changed gets half of them."""
    definition, of_changes = _dict(row.definition), _Room(at_most // 2)
    is_compared = row.state == "quarantined" and row.accepted_definition
    changes = _cut(_changes(_dict(row.accepted_definition), definition), of_changes) if is_compared else None
    room = _Room(at_most // 2 if is_compared else at_most)
    description = room.take(_words(definition.get("description", "")))
    params = tuple(_named(definition, room))
    found = ((title, definition.get(name)) for title, names in PARTS for name in names)
    parts = tuple((title, room.take(_words(value))) for title, value in found if value)
    return Told(
        description=description,
        level_reason=_words(definition.get("level_reason", "")),
        risks=tuple(risks_of(definition)),
        calls_itself=_read_hint(_dict(definition.get("annotations"))),
        params=params,
        parts=tuple((title, text) for title, text in parts if text),
        changes=changes,
        left_out=room.left_out + of_changes.left_out,
    )


def _read_hint(hints: Mapping[str, Any]) -> str:
    if not any(isinstance(hints.get(name), bool) for name in HINTS):
        return ""
    if hints.get("readOnlyHint") is True:
        return Level.READ.value
    return Level.WRITE.value if hints.get("destructiveHint") is False else Level.DESTRUCTIVE.value


class _Room:
    """Characters that may still be shown.

    Attributes:
        left_out: how many did not fit.
    """

    def __init__(self, left: int) -> None:
        self._left = left
        self.left_out = 0

    @property
    def is_full(self) -> bool:
        return self._left <= 0

    def take(self, text: str) -> str:
        """As much of the text as fits."""
        kept = text[: self._left]
        self._left -= len(kept)
        self.left_out += len(text) - len(kept)
        return kept


def _named(definition: Mapping[str, Any], room: _Room) -> Iterator[Param]:
    schema = definition.get("input_schema") or definition.get("params")
    for each in _params(_dict(schema)):
        is_shown = not room.is_full
        name, type_, description = map(room.take, (each.name, each.type, each.description))
        if is_shown:
            yield Param(name, type_, each.is_required, description)


def _params(schema: Mapping[str, Any], before: str = "") -> Iterator[Param]:
    required = schema.get("required")
    for name, described in _dict(schema.get("properties")).items():
        each = _dict(described)
        is_required = isinstance(required, list) and name in required
        yield Param(f"{before}{name}", _type(each), is_required, _words(each.get("description", "")))
        for inner in (each, _dict(each.get("items"))):
            yield from _params(inner, f"{before}{name}.")


def _type(schema: Mapping[str, Any]) -> str:
    said = schema.get("type") or ""
    return " or ".join(map(str, said)) if isinstance(said, list) else str(said)


def _changes(before: Any, after: Any, path: tuple[str, ...] = ()) -> Iterator[Change]:
    """By the innermost values that differ, so that a long schema shows the one word that is another."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            inner = (*path, name)
            if path or name not in NOT_TOLD:
                yield from _change_of_one(before, after, inner)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, pair in enumerate(zip(before, after, strict=True), start=1):
            yield from _changes(*pair, (*path, str(number)))
    elif type(before) is not type(after) or before != after:
        yield Change(INSIDE.join(path), *_apart(_words(before), _words(after)))


def _change_of_one(before: dict[str, Any], after: dict[str, Any], path: tuple[str, ...]) -> Iterator[Change]:
    name, where = path[-1], INSIDE.join(path)
    if name not in after:
        yield Change(where, _words(before[name]), None)
    elif name not in before:
        yield Change(where, None, _words(after[name]))
    else:
        yield from _changes(before[name], after[name], path)


def _cut(changes: Iterator[Change], room: _Room) -> tuple[Change, ...]:
    shown = []
    for change in changes:
        is_shown = not room.is_full
        name = room.take(change.name)
        before, after = (text if text is None else room.take(text) for text in (change.before, change.after))
        if is_shown:
            shown.append(Change(name, before, after))
    return tuple(shown)


def _apart(before: str, after: str) -> tuple[str, str]:
    """Both without what they begin and end with alike, but for a few words of it."""
    start = _alike(before, after)
    end = _alike(before[start:][::-1], after[start:][::-1])
    return _around(before, start, end), _around(after, start, end)


def _alike(before: str, after: str) -> int:
    """How many characters they begin with alike."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(before), len(after)))


def _around(text: str, start: int, end: int) -> str:
    first, last = max(start - AROUND, 0), min(len(text) - end + AROUND, len(text))
    return f"{'…' if first else ''}{text[first:last]}{'…' if last < len(text) else ''}"


def _words(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
