"""Form fields of the admin: a list of lines, a JSON object, and the choice of tools from the catalog."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextareaWidget

from tools.contract import Tool

SHORT = 60
FIELD_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
"""Of a field of credentials."""
NOT_USABLE = "Granted, but not usable now"
NOT_INSTALLED = "it is not installed"


class LinesField(forms.CharField):
    """A list of texts, one per line; blank lines and doubles are left out.

    Args:
        longest: characters that one line may have.
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
                    f"The line {line[:40]!r}… has {len(line)} characters; at most {self.longest} are allowed."
                )

    def run_validators(self, value: Any) -> None:
        """The validators of a text do not fit a list; `validate` has looked at each line."""

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.to_python(self.prepare_value(initial)) != self.to_python(data))


class ObjectField(forms.JSONField):
    """A JSON object, written down as text; an empty one is an empty text."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("required", False)
        options.setdefault("widget", UnfoldAdminTextareaWidget(attrs={"rows": 4, "spellcheck": "false"}))
        options.setdefault("error_messages", {"invalid": 'This is not JSON; write an object such as {"name": 1}.'})
        super().__init__(**options)

    def bound_data(self, data: Any, initial: Any) -> Any:
        """What was typed stays as it was typed."""
        return initial if self.disabled else data

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return value
        return super().prepare_value(value) if value else ""

    def to_python(self, value: Any) -> Any:
        return {} if value in self.empty_values else super().to_python(value)


class AllowedToolsField(forms.MultipleChoiceField):
    """Tools picked from the catalog, grouped by category, each with its level; the value is a list of exact names."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("required", False)
        options.setdefault("widget", UnfoldAdminCheckboxSelectMultipleWidget())
        super().__init__(**options)

    def offer(self, catalog: Iterable[Tool], granted: Iterable[str], reasons: Mapping[str, str]) -> None:
        """Offers every tool of the catalog, and what is granted already though it is not there now.

        Args:
            reasons: why not, by name, where more is known than that it is not installed.
        """
        latest = {tool.name: tool for tool in catalog if not tool.is_system}
        ordered = sorted(latest.values(), key=lambda tool: (tool.category, tool.level.rank, tool.name))
        groups: list[tuple[str, list[tuple[str, str]]]] = [
            (category, [(tool.name, _label(tool)) for tool in tools])
            for category, tools in groupby(ordered, key=lambda tool: tool.category)
        ]
        if absent := sorted(set(granted) - set(latest)):
            told = [(name, f"{name} · {reasons.get(name, NOT_INSTALLED)}") for name in absent]
            groups.append((NOT_USABLE, told))
        self.choices = groups

    def has_changed(self, initial: Any, data: Any) -> bool:
        return set(initial or ()) != set(data or ())


def _label(tool: Tool) -> str:
    return f"{tool.name} · {tool.level.value.upper()} · {tool.title[:SHORT]}"
