"""Form fields of the admin: a list of lines, a JSON object, and a choice of tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextareaWidget

from agents.platform.known_secrets import name_common_kind
from tools.contract import SHORTEST_SECRET, Tool
from tools.contract.outside_text import OutsideText

SHORT = 60
FIELD_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
"""The pattern of a credentials field's name."""
COMMON_VALUE = (
    "The log and tool results would hide this {kind} everywhere. "
    "Enter a value that does not appear in ordinary text."
)
NOT_USABLE = "Allowed, but currently unavailable"
NOT_INSTALLED = "it is not installed"


def find_secret_fault(value: str) -> str | None:
    """Return the reason why a value is too common to be a secret; None if it can be one.

    Values shorter than `SHORTEST_SECRET` are never redacted, so any of them is accepted.
    """
    kind = name_common_kind(value) if len(value) >= SHORTEST_SECRET else ""
    return COMMON_VALUE.format(kind=kind.partition(" ")[2]) if kind else None


class LinesField(forms.CharField):
    """A list of texts, one per line, without blank lines and duplicates.

    Args:
        longest: the maximum number of characters in a line.
    """

    def __init__(self, *, longest: int = 200, **options: Any) -> None:
        options.setdefault("required", False)
        options.setdefault("widget", UnfoldAdminTextareaWidget(attrs={"rows": 4}))
        super().__init__(**options)
        self.longest = longest

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(str(line) for line in value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        lines = (line.strip() for line in str(value or "").splitlines())
        return list(dict.fromkeys(line for line in lines if line))

    def validate(self, value: Any) -> None:
        super().validate(value)
        for line in value:
            if len(line) > self.longest:
                raise forms.ValidationError(
                    f"The line {line[:40]!r}… has {len(line)} characters. Use at most {self.longest}."
                )

    def run_validators(self, value: Any) -> None:
        """Skip the text validators, which do not fit a list; `validate` has checked each line."""

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.to_python(self.prepare_value(initial)) != self.to_python(data))


class ObjectField(forms.JSONField):
    """A JSON object as text; an empty text is an empty object."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("required", False)
        options.setdefault(
            "widget", UnfoldAdminTextareaWidget(attrs={"rows": 4, "spellcheck": "false"})
        )
        options.setdefault(
            "error_messages", {"invalid": 'This is not JSON. Enter an object such as {"name": 1}.'}
        )
        super().__init__(**options)

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Return the typed text unchanged, so that an error keeps the user's formatting."""
        return initial if self.disabled else data

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return value
        return super().prepare_value(value) if value else ""

    def to_python(self, value: Any) -> Any:
        return {} if value in self.empty_values else super().to_python(value)


class AllowedToolsField(forms.MultipleChoiceField):
    """A choice of tools, grouped by category and shown with their levels; the value is a list of
    exact names."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("required", False)
        options.setdefault("widget", UnfoldAdminCheckboxSelectMultipleWidget())
        super().__init__(**options)

    def offer(
        self, catalog: Iterable[Tool], granted: Iterable[str], reasons: Mapping[str, str]
    ) -> None:
        """Offer every tool of the catalog, and granted tools that the catalog no longer has.

        Args:
            reasons: the reasons why tools are missing, by the tools' names; a tool without a reason
                is shown as not installed.
        """
        latest = {tool.name: tool for tool in catalog if not tool.is_system}
        ordered = sorted(
            latest.values(), key=lambda tool: (tool.category, tool.level.rank, tool.name)
        )
        groups: list[tuple[str, list[tuple[str, str]]]] = [
            (category, [(tool.name, _format_label(tool)) for tool in tools])
            for category, tools in groupby(ordered, key=lambda tool: tool.category)
        ]
        if absent := sorted(set(granted) - set(latest)):
            missing = [(name, f"{name} · {reasons.get(name, NOT_INSTALLED)}") for name in absent]
            groups.append((NOT_USABLE, missing))
        self.choices = groups

    def has_changed(self, initial: Any, data: Any) -> bool:
        return set(initial or ()) != set(data or ())


def _format_label(tool: Tool) -> str:
    name, title = (
        (OutsideText(tool.name), f"{tool.title}")
        if tool.is_from_outside
        else (tool.name, tool.title[:SHORT])
    )
    return f"{name} · {tool.level.value.upper()}{f' · {title}' if tool.title != tool.name else ''}"
