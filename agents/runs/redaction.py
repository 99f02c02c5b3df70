"""Redact parts of events, for example for an exported playback."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tools.contract import Tool
from tools.schemas.references import expand_forms, list_properties

REDACTED = "redacted"


def find_no_tool(_name: str) -> Tool | None:
    """Return None for every name, so that all field names are redacted; use it as `find_tool`."""
    return None


@dataclass(frozen=True)
class EventRedaction:
    """The parts of events to redact.

    Attributes:
        values: True to redact inputs and results of calls, with the sentences, summaries and
            progress that repeat them.
        texts: True to redact texts of the employee and of people, such as the task, messages,
            reasons and answers.
        find_tool: finds a tool by name; only field names that its schemas have are kept.
    """

    values: bool = False
    texts: bool = False
    find_tool: Callable[[str], Tool | None] = find_no_tool

    def redact_inputs(self, tool_name: str, params: dict[str, Any]) -> Any:
        """Return the inputs of a call, redacted if `values` is set."""
        tool = self.find_tool(tool_name) if self.values else None
        return redact_fields(params, tool.schema if tool else None) if self.values else params

    def redact_data(self, tool_name: str, data: Any) -> Any:
        """Return the data of a result, redacted if `values` is set."""
        tool = self.find_tool(tool_name) if self.values else None
        return redact_fields(data, tool.output_schema if tool else None) if self.values else data

    def redact_summary(self, text: str) -> str:
        """Return a text that may repeat inputs or results, redacted if `values` is set."""
        return _redact_words(text) if self.values else text

    def redact_text(self, text: str) -> str:
        """Return a text of a person or the employee, redacted if `texts` is set."""
        return _redact_words(text) if self.texts else text


NOTHING_REDACTED = EventRedaction()


def redact_fields(value: Any, schema: Mapping[str, Any] | None) -> Any:
    """Redact a value. Dicts keep only the names of fields that the schema has, because other names
    may be values themselves."""
    root = schema or {}
    return _redact_value(value, [root], root)


def _redact_value(value: Any, schemas: Iterable[Any], root: Mapping[str, Any]) -> Any:
    if value in (None, "", [], {}):
        return value
    if not isinstance(value, dict):
        return REDACTED
    known = defaultdict[str, list[Any]](list)
    for form in (form for schema in schemas for form in expand_forms(schema, root)):
        for name, part in list_properties(form).items():
            known[name].append(part)
    return {
        name if name in known else f"field {number}": _redact_value(each, known.get(name, ()), root)
        for number, (name, each) in enumerate(value.items(), start=1)
    }


def _redact_words(text: str) -> str:
    return f"{REDACTED}, {len(text):,} characters" if text else ""
