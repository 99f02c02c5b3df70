"""Limits of an employee's tools, one per line: a raised level, or a condition on a param."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django import forms

from agents.employees.models import Grant
from tools.contract import Level, Tool
from tools.toolbox import Condition, Otherwise, Rule

from .fields import LinesField

LEVEL = "level"
EXAMPLES = (
    'data.updateRecord changes.status one_of ["active", "pending"] else forbid',
    "data.searchRecords limit maximum 100 else ask",
    "data.getStats level write",
)
HELP = (
    "One limit per line. A condition names a tool, one of its params, a rule and a value as JSON; a call that breaks "
    "it asks a person (else ask) or is refused (else forbid). A level may be raised, never lowered. "
    f"The rules: {', '.join(rule.value for rule in Rule)}. For example: {' · '.join(EXAMPLES)}"
)


@dataclass
class Limits:
    """What is said of one tool."""

    level: str = ""
    conditions: list[Condition] = field(default_factory=list)


class LimitsField(LinesField):
    """The lines as {tool: Limits}, checked against the catalog."""

    def __init__(self, **options: Any) -> None:
        super().__init__(longest=1_000, help_text=HELP, label="Limits", **options)
        self.catalog: Mapping[str, Tool] = {}
        self.known: frozenset[str] = frozenset()
        """Lines that are kept already; they may name tools that are not installed any more."""

    def clean(self, value: Any) -> dict[str, Limits]:
        lines = super().clean(value)
        limits: dict[str, Limits] = {}
        for line in lines:
            try:
                _read(line, self.catalog, limits, is_known=line in self.known)
            except ValueError as error:
                raise forms.ValidationError(f"{line!r}: {error}.") from error
        return limits


def lines_of(grants: Iterable[Grant]) -> list[str]:
    """The limits of these grants as the field takes them."""
    lines = []
    for grant in grants:
        if grant.level:
            lines.append(f"{grant.tool} {LEVEL} {grant.level}")
        for kept in grant.conditions:
            value = json.dumps(kept["value"], ensure_ascii=False)
            lines.append(f"{grant.tool} {kept['param']} {kept['rule']} {value} else {kept['otherwise']}")
    return lines


def with_limits(grant: Grant, limits: Mapping[str, Limits]) -> Grant:
    """The same grant with exactly these limits, not saved."""
    wanted = limits.get(grant.tool, Limits())
    grant.level, grant.conditions = wanted.level, [each.as_json() for each in wanted.conditions]
    return grant


def _read(line: str, catalog: Mapping[str, Tool], limits: dict[str, Limits], *, is_known: bool) -> None:
    words = line.split(None, 3)
    tool = catalog.get(words[0])
    if tool is None and not is_known:
        raise ValueError(f"there is no tool {words[0]!r}")
    found = limits.setdefault(words[0], Limits())
    if len(words) == 3 and words[1] == LEVEL:
        found.level = _level(tool, words[2])
    elif len(words) == 4:
        found.conditions.append(_condition(tool, words))
    else:
        raise ValueError(f"expected a line like {EXAMPLES[0]}")


def _level(tool: Tool | None, word: str) -> str:
    if word not in tuple(Level):
        raise ValueError(f"{word!r} is none of the levels {', '.join(Level)}")
    if tool is not None and Level(word).rank < tool.level.rank:
        raise ValueError(f"{tool.name} is {tool.level.value} by itself, which cannot be lowered")
    return word


def _condition(tool: Tool | None, words: list[str]) -> Condition:
    _, param, rule, rest = words
    known = sorted(tool.schema["properties"]) if tool else []
    if tool is not None and param.partition(".")[0] not in known:
        raise ValueError(f"{tool.name} has no param {param!r}, only {', '.join(known) or 'none'}")
    if rule not in tuple(Rule):
        raise ValueError(f"{rule!r} is none of the rules {', '.join(Rule)}")
    try:
        value, end = json.JSONDecoder().raw_decode(rest)
    except ValueError:
        raise ValueError(f"{rest!r} does not begin with a value as JSON; a text needs quotes") from None
    tail = rest[end:].split()
    if tail and (len(tail) != 2 or tail[0] != "else" or tail[1] not in tuple(Otherwise)):
        raise ValueError(f"after the value comes 'else ask' or 'else forbid', not {' '.join(tail)!r}")
    otherwise = tail[1] if tail else Otherwise.ASK.value
    return Condition.from_json({"param": param, "rule": rule, "value": value, "otherwise": otherwise})
