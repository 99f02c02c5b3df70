"""Readable summaries of tool definitions, and of their changes since an admin accepted them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from agents.approvals.warnings.card_values import PATH_SEPARATOR
from agents.web.cards.differences import Change
from tools.connections.models import SourceTool
from tools.contract import Level
from tools.schemas.references import expand_forms, list_properties
from tools.schemas.types import describe_type
from tools.sources.risks import list_risks

MAX_CHARACTERS = 400_000
"""The maximum number of characters of definitions on one page, divided among its tools."""
MAX_PARAMS = 1_000
"""The maximum number of params listed for one tool, because references can expand to any number of
params. The schema, which is also shown, contains all of them."""
CONTEXT_CHARACTERS = 60
"""The number of characters shown before and after a change in a long text."""
INTERNAL_KEYS = frozenset({"hash"})
"""The keys of a definition that only Gadget uses."""
HINTS = ("readOnlyHint", "destructiveHint")
"""The hints by which an MCP server indicates how dangerous a tool is."""
PARTS = (
    ("Parameter schema", ("input_schema", "params")),
    ("Output schema", ("output_schema",)),
    ("Server hints", ("annotations",)),
)
"""The parts of a definition that are shown as JSON, as (heading, keys): MCP servers and APIs use
different keys."""

Trail = tuple[int, ...]
"""The ids of the schemas around a param."""


@dataclass(frozen=True)
class DefinitionParam:
    """One parameter; a nested parameter has a dotted name, e.g. `owner.name`."""

    name: str
    type: str
    is_required: bool
    description: str


@dataclass(frozen=True)
class DefinitionSummary:
    """A definition, prepared for people.

    Attributes:
        level_reason: the reason for the tool's inferred level; empty if unknown.
        risks: a sentence for each risk to weigh when choosing the tool's level.
        hinted_level: the level that an MCP server's hints suggest; empty if there are no hints.
        parts: (heading, JSON) pairs.
        changes: the changes since the definition was accepted; None unless the tool is quarantined.
        left_out: the number of characters not shown.
    """

    description: str
    level_reason: str
    risks: tuple[str, ...]
    hinted_level: str
    params: tuple[DefinitionParam, ...]
    parts: tuple[tuple[str, str], ...]
    changes: tuple[Change, ...] | None
    left_out: int


def summarize_definition(row: SourceTool, limit: int) -> DefinitionSummary:
    """Summarize the definition in at most `limit` characters; if it has changed, half of the
    characters are reserved for the changes."""
    definition, changes, changes_budget = (
        _as_mapping(row.definition),
        None,
        _CharacterBudget(limit // 2),
    )
    budget = _CharacterBudget(limit)
    if row.state == "quarantined" and row.accepted_definition:
        found_changes = _find_changes(_as_mapping(row.accepted_definition), definition)
        changes, budget = (
            _limit_changes(found_changes, changes_budget),
            _CharacterBudget(limit // 2),
        )
    description = budget.take(_format_value(definition.get("description", "")))
    params = tuple(_limit_params(definition, budget))
    found = ((title, definition.get(name)) for title, names in PARTS for name in names)
    parts = tuple((title, budget.take(_format_value(value))) for title, value in found if value)
    return DefinitionSummary(
        description=description,
        level_reason=_format_value(definition.get("level_reason", "")),
        risks=tuple(list_risks(definition)),
        hinted_level=_read_hint(_as_mapping(definition.get("annotations"))),
        params=params,
        parts=tuple((title, text) for title, text in parts if text),
        changes=changes,
        left_out=budget.left_out + changes_budget.left_out,
    )


def _read_hint(hints: Mapping[str, Any]) -> str:
    if not any(isinstance(hints.get(name), bool) for name in HINTS):
        return ""
    if hints.get("readOnlyHint") is True:
        return Level.READ.value
    return Level.WRITE.value if hints.get("destructiveHint") is False else Level.DESTRUCTIVE.value


class _CharacterBudget:
    """A budget of characters for one tool.

    Attributes:
        left_out: the number of characters that did not fit.
    """

    def __init__(self, left: int) -> None:
        self._left = left
        self.left_out = 0

    @property
    def is_full(self) -> bool:
        return self._left <= 0

    def take(self, text: str) -> str:
        """Return as much of the text as still fits into the budget."""
        taken = text[: self._left]
        self._left -= len(taken)
        self.left_out += len(text) - len(taken)
        return taken


def _limit_params(
    definition: Mapping[str, Any], budget: _CharacterBudget
) -> Iterator[DefinitionParam]:
    schema = _as_mapping(definition.get("input_schema") or definition.get("params"))
    for each in islice(_walk_params(schema, schema), MAX_PARAMS):
        is_shown = not budget.is_full
        name, type_, description = map(budget.take, (each.name, each.type, each.description))
        if is_shown:
            yield DefinitionParam(name, type_, each.is_required, description)


def _walk_params(
    schema: Mapping[str, Any], root: Mapping[str, Any], path: str = "", trail: Trail = ()
) -> Iterator[DefinitionParam]:
    """Yield the params that a schema names, including those of its alternatives, those of list
    entries, and nested params. Skip schemas that contain themselves."""
    named: dict[str, tuple[bool, Mapping[str, Any]]] = {}
    forms = {id(form): form for form in expand_forms(schema, root, with_entries=True)}
    for form in (form for key, form in forms.items() if key not in trail):
        required = form.get("required")
        for name, part in list_properties(form).items():
            is_required = isinstance(required, list) and name in required
            named.setdefault(name, (is_required, _as_mapping(part)))
    for name, (is_required, part) in named.items():
        texts = (form.get("description") for form in expand_forms(part, root))
        description = _format_value(next(filter(None, texts), ""))
        yield DefinitionParam(f"{path}{name}", describe_type(part, root), is_required, description)
        yield from _walk_params(part, root, f"{path}{name}.", (*trail, *forms))


def _find_changes(before: Any, after: Any, path: tuple[str, ...] = ()) -> Iterator[Change]:
    """Yield the innermost values that differ, so that only the changed words of a long schema are
    shown."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            inner = (*path, name)
            if path or name not in INTERNAL_KEYS:
                yield from _compare_entry(before, after, inner)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, pair in enumerate(zip(before, after, strict=True), start=1):
            yield from _find_changes(*pair, (*path, str(number)))
    elif type(before) is not type(after) or before != after:
        yield Change(
            PATH_SEPARATOR.join(path),
            *_show_difference(_format_value(before), _format_value(after)),
        )


def _compare_entry(
    before: dict[str, Any], after: dict[str, Any], path: tuple[str, ...]
) -> Iterator[Change]:
    name, where = path[-1], PATH_SEPARATOR.join(path)
    if name not in after:
        yield Change(where, _format_value(before[name]), None)
    elif name not in before:
        yield Change(where, None, _format_value(after[name]))
    else:
        yield from _find_changes(before[name], after[name], path)


def _limit_changes(changes: Iterator[Change], budget: _CharacterBudget) -> tuple[Change, ...]:
    shown = []
    for change in changes:
        is_shown = not budget.is_full
        name = budget.take(change.name)
        before, after = (
            text if text is None else budget.take(text) for text in (change.before, change.after)
        )
        if is_shown:
            shown.append(Change(name, before, after))
    return tuple(shown)


def _show_difference(before: str, after: str) -> tuple[str, str]:
    """Cut off the start and the end that both texts share, but keep some context."""
    start = _count_common_start(before, after)
    end = _count_common_start(before[start:][::-1], after[start:][::-1])
    return _excerpt(before, start, end), _excerpt(after, start, end)


def _count_common_start(before: str, after: str) -> int:
    """Count the characters that both texts share at the start."""
    pairs = enumerate(zip(before, after, strict=False))
    return next(
        (number for number, (one, other) in pairs if one != other), min(len(before), len(after))
    )


def _excerpt(text: str, start: int, end: int) -> str:
    first, last = (
        max(start - CONTEXT_CHARACTERS, 0),
        min(len(text) - end + CONTEXT_CHARACTERS, len(text)),
    )
    return f"{'…' if first else ''}{text[first:last]}{'…' if last < len(text) else ''}"


def _format_value(value: Any) -> str:
    """Return a text unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
