"""Limits on an employee's tools, one per line: a raised level, or a condition on a param."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django import forms

from agents.admin.fields import LinesField
from agents.employees.models import Grant
from tools.contract import Level, Tool
from tools.toolbox import Condition, Otherwise, Rule

LEVEL = "level"
WITHOUT_VALUE = (Rule.NOT_FROM_OUTSIDE.value,)
"""Rules that take no value in a line."""
EXAMPLES = (
    'data.updateRecord changes.status one_of ["active", "pending"] else forbid',
    "data.searchRecords limit maximum 100 else ask",
    "data.updateRecord changes.email not_from_outside else forbid",
    "data.getStats level write",
)
HELP = (
    "One limit per line. A condition is a tool, a parameter, a rule and a JSON value. A call that breaks it "
    "needs approval (else ask) or is refused (else forbid). The rule not_from_outside takes no value: it is broken by "
    "a value that was first seen in a web page, a connected source or an uploaded file. "
    "A level can be raised, never lowered. "
    f"Rules: {', '.join(rule.value for rule in Rule)}. Examples: {' · '.join(EXAMPLES)}"
)


@dataclass
class ToolLimits:
    """The raised level and the conditions of one tool."""

    level: str = ""
    conditions: list[Condition] = field(default_factory=list)


class LimitsField(LinesField):
    """Lines of limits; the value is {tool: ToolLimits}, checked against the catalog."""

    def __init__(self, **options: Any) -> None:
        super().__init__(longest=1_000, help_text=HELP, label="Limits", **options)
        self.catalog: Mapping[str, Tool] = {}
        self.known: frozenset[str] = frozenset()
        """Stored lines, which may name tools that are no longer installed."""

    def clean(self, value: Any) -> dict[str, ToolLimits]:
        lines = super().clean(value)
        limits: dict[str, ToolLimits] = {}
        for line in lines:
            try:
                _parse_line(line, self.catalog, limits, is_known=line in self.known)
            except ValueError as error:
                raise forms.ValidationError(f"{line!r}: {error}.") from error
        return limits


def format_limits(grants: Iterable[Grant]) -> list[str]:
    """Return the limits of these grants as lines of the field."""
    lines = []
    for grant in grants:
        if grant.level:
            lines.append(f"{grant.tool} {LEVEL} {grant.level}")
        for condition in grant.conditions:
            value = [] if condition["rule"] in WITHOUT_VALUE else [json.dumps(condition["value"], ensure_ascii=False)]
            words = [grant.tool, condition["param"], condition["rule"], *value, "else", condition["otherwise"]]
            lines.append(" ".join(words))
    return lines


def apply_limits(grant: Grant, limits: Mapping[str, ToolLimits]) -> Grant:
    """Give the grant exactly these limits, without saving it, and return it."""
    wanted = limits.get(grant.tool, ToolLimits())
    grant.level, grant.conditions = wanted.level, [each.as_json() for each in wanted.conditions]
    return grant


def _parse_line(line: str, catalog: Mapping[str, Tool], limits: dict[str, ToolLimits], *, is_known: bool) -> None:
    words = line.split(None, 3)
    tool = catalog.get(words[0])
    if tool is None and not is_known:
        raise ValueError(f"there is no tool {words[0]!r}")
    found = limits.setdefault(words[0], ToolLimits())
    if len(words) == 3 and words[1] == LEVEL:
        found.level = _parse_level(tool, words[2])
    elif len(words) == 4 or (words[2:] and words[2] in WITHOUT_VALUE):
        found.conditions.append(_parse_condition(tool, words))
    else:
        raise ValueError(f"expected a line like {EXAMPLES[0]}")


def _parse_level(tool: Tool | None, word: str) -> str:
    if word not in tuple(Level):
        raise ValueError(f"{word!r} is not a level; use one of {', '.join(Level)}")
    if tool is not None and Level(word).rank < tool.level.rank:
        raise ValueError(f"{tool.name} has the level {tool.level.value}, which cannot be lowered")
    return word


def _parse_condition(tool: Tool | None, words: list[str]) -> Condition:
    _, param, rule, *rest = words
    known = sorted(tool.schema["properties"]) if tool else []
    if tool is not None and param.partition(".")[0] not in known:
        raise ValueError(f"{tool.name} has no parameter {param!r}, only {', '.join(known) or 'none'}")
    if rule not in tuple(Rule):
        raise ValueError(f"{rule!r} is not a rule; use one of {', '.join(Rule)}")
    value, tail = (True, "".join(rest).split()) if rule in WITHOUT_VALUE else _parse_value(rest[0])
    if tail and (len(tail) != 2 or tail[0] != "else" or tail[1] not in tuple(Otherwise)):
        raise ValueError(f"expected 'else ask' or 'else forbid' at the end, not {' '.join(tail)!r}")
    otherwise = tail[1] if tail else Otherwise.ASK.value
    return Condition.from_json({"param": param, "rule": rule, "value": value, "otherwise": otherwise})


def _parse_value(text: str) -> tuple[Any, list[str]]:
    """Return the JSON value at the start of the text, and the words after it."""
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        raise ValueError(f"{text!r} does not start with a JSON value; quote a text") from None
    return value, text[end:].split()
