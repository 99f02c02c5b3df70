"""Limits on an employee's tools, edited as sentences: raised levels, and conditions on params and
on earlier calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django import forms

from agents.admin.limits_widget import REMOVE, LimitsWidget
from agents.employees.limit_sentences import (
    Row,
    Sentence,
    format_condition,
    format_level,
    list_blanks,
    parse_condition,
    parse_level,
)
from agents.employees.models import Grant
from tools.contract import Tool
from tools.toolbox import Condition

MAX_LIMITS = 100
HELP = (
    "Each sentence limits the calls of one tool. A call that breaks it needs approval by a person, or is refused. "
    "Periods are rolling: a day is the last 24 hours. Use dots for nested parameters, e.g. changes.status. A missing "
    "parameter breaks its limit. A level can be raised, never lowered. “From outside” means first seen in a web page, "
    "a connected source or an uploaded file."
)


@dataclass
class ToolLimits:
    """The raised level and the conditions of one tool."""

    level: str = ""
    conditions: list[Condition] = field(default_factory=list)

    def list_sentences(self) -> list[str]:
        """List the limits in words."""
        level = [f"treated as {self.level}."] if self.level else []
        return [*level, *(condition.describe() for condition in self.conditions)]

    def __str__(self) -> str:
        return " ".join(self.list_sentences())


class LimitsField(forms.Field):
    """A field for limits as sentences. Its value is {tool: ToolLimits}, checked against the
    catalog."""

    widget: LimitsWidget

    def __init__(self) -> None:
        super().__init__(required=False, widget=LimitsWidget(), help_text=HELP, label="Limits")
        self.catalog: Mapping[str, Tool] = {}
        self.stored: list[Row] = []

    def offer(self, catalog: Iterable[Tool], stored: list[Row]) -> None:
        """Offer the tools of the catalog, and accept the stored sentences unchecked.

        A stored sentence may name a tool that is no longer installed.
        """
        self.catalog = {tool.name: tool for tool in catalog if not tool.is_system}
        self.stored = stored
        self.widget.params = {
            name: sorted(tool.schema["properties"]) for name, tool in self.catalog.items()
        }

    def clean(self, value: Any) -> dict[str, ToolLimits]:
        rows = [row for row in value or () if REMOVE not in row]
        if len(rows) > MAX_LIMITS:
            raise forms.ValidationError(
                f"{len(rows)} limits are too many. Keep at most {MAX_LIMITS}."
            )
        limits: dict[str, ToolLimits] = {}
        for number, row in enumerate(rows, start=1):
            try:
                self._add(row, limits)
            except ValueError as error:
                name = row.get("tool") or "no tool"
                raise forms.ValidationError(f"Limit {number} ({name}): {error}.") from error
        return limits

    def has_changed(self, initial: Any, data: Any) -> bool:
        return list(initial or ()) != [
            _normalize(row) if REMOVE not in row else None for row in data or ()
        ]

    def _add(self, row: Row, limits: dict[str, ToolLimits]) -> None:
        name = row.get("tool", "")
        is_stored = _normalize(row) in self.stored
        if not name:
            raise ValueError("choose its tool")
        if name not in self.catalog and not is_stored:
            raise ValueError(f"there is no tool {name!r}")
        found = limits.setdefault(name, ToolLimits())
        if row["sentence"] == Sentence.LEVEL:
            found.level = row["level"] if is_stored else parse_level(row, self.catalog[name])
        else:
            found.conditions.append(parse_condition(row, self.catalog, is_stored=is_stored))


def list_rows(grants: Iterable[Grant], catalog: Mapping[str, Tool]) -> list[Row]:
    """Return the limits of these grants as rows of the form, one for each sentence."""
    rows = []
    for grant in grants:
        if grant.level:
            rows.append(format_level(grant.tool, grant.level))
        stored = map(Condition.from_json, grant.conditions)
        rows += [
            format_condition(grant.tool, condition, catalog.get(grant.tool)) for condition in stored
        ]
    return rows


def list_limits(grants: Iterable[Grant]) -> list[tuple[str, str]]:
    """List the limits of these grants in words, each with its tool."""
    return [
        (grant.tool, sentence)
        for grant in grants
        for sentence in _load_limits(grant).list_sentences()
    ]


def apply_limits(grant: Grant, limits: Mapping[str, ToolLimits]) -> Grant:
    """Give the grant exactly these limits, without saving it, and return it."""
    wanted = limits.get(grant.tool, ToolLimits())
    grant.level, grant.conditions = wanted.level, [each.as_json() for each in wanted.conditions]
    return grant


def _load_limits(grant: Grant) -> ToolLimits:
    return ToolLimits(grant.level, [Condition.from_json(stored) for stored in grant.conditions])


def _normalize(row: Row) -> Row:
    """Return the row as it is stored: only the blanks of its sentence, without surrounding
    spaces."""
    names = ["sentence", *(blank.name for blank in list_blanks(Sentence(row["sentence"])))]
    return {name: "\n".join(row.get(name, "").strip().splitlines()) for name in names}
