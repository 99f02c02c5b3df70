"""A table of a tool's params for people, with the name, kind and limits of each param."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any

from tools.schemas.references import find_target, leave_out_null, list_choices

MAX_DEPTH = 4
MAX_ROWS = 200
MAX_REFERENCES = 8
"""The maximum number of references to follow, because references can form a cycle."""
ANYTHING: Mapping[str, Any] = MappingProxyType({})
_KINDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "yes or no",
    "object": "object",
}
_LIMITS = (
    ("minimum", "at least {}", ""),
    ("exclusiveMinimum", "more than {}", ""),
    ("maximum", "at most {}", ""),
    ("exclusiveMaximum", "less than {}", ""),
    ("minLength", "at least {}", "character"),
    ("maxLength", "at most {}", "character"),
    ("minItems", "at least {}", "value"),
    ("maxItems", "at most {}", "value"),
    ("pattern", "matching {}", ""),
    ("format", "format {}", ""),
)


@dataclass(frozen=True)
class ParamRow:
    """One param, or one field of an object param.

    Attributes:
        name: the full name, such as `filters.region`.
        limits: the limits and the default, in words.
    """

    name: str
    kind: str
    is_required: bool
    description: str
    limits: str


def build_param_rows(schema: Mapping[str, Any]) -> list[ParamRow]:
    """Build at most MAX_ROWS rows: one for each param; an object's row is followed by rows for its
    fields."""
    return list(islice(_ParamTable(schema).build_rows(schema, "", 0), MAX_ROWS))


class _ParamTable:
    """Reads one schema, in which every part may refer to itself. Each part's kind is described only
    once."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._kinds: dict[int, str] = {}

    def build_rows(self, schema: Mapping[str, Any], prefix: str, depth: int) -> Iterator[ParamRow]:
        required = schema.get("required", ())
        for name, part in schema.get("properties", {}).items():
            core = self._simplify(part)
            yield ParamRow(
                name=prefix + name,
                kind=self._describe_kind(core),
                is_required=name in required,
                description=str(part.get("description") or core.get("description", "")),
                limits=", ".join(_describe_limits({**core, **part})),
            )
            inner = self._simplify(core["items"]) if isinstance(core.get("items"), dict) else core
            if depth < MAX_DEPTH and inner.get("properties"):
                suffix = "[]." if inner is not core else "."
                yield from self.build_rows(inner, f"{prefix}{name}{suffix}", depth + 1)

    def _simplify(self, part: Any) -> Mapping[str, Any]:
        """Resolve references, and unwrap a schema that only adds null to another schema."""
        for _ in range(MAX_REFERENCES):
            if not isinstance(part, Mapping):
                return ANYTHING
            if "$ref" in part:
                part = find_target(str(part["$ref"]), self._root)
                continue
            options = leave_out_null(list_choices(part))
            if len(options) != 1:
                return part
            part = options[0]
        return ANYTHING

    def _describe_kind(self, core: Mapping[str, Any]) -> str:
        """Describe the kind of a part of the schema; where a part contains itself, its kind is `any
        value`."""
        if id(core) not in self._kinds:
            self._kinds[id(core)] = "any value"
            self._kinds[id(core)] = self._describe_new_kind(core)
        return self._kinds[id(core)]

    def _describe_new_kind(self, core: Mapping[str, Any]) -> str:
        if "const" in core:
            return "always " + _format_value(core["const"])
        if core.get("enum"):
            return "one of " + ", ".join(_format_value(choice) for choice in core["enum"])
        if options := list_choices(core):
            return " or ".join(
                dict.fromkeys(self._describe_kind(self._simplify(option)) for option in options)
            )
        type_ = core.get("type")
        if type_ == "array":
            return f"list of {self._describe_kind(self._simplify(core.get('items')))}"
        if isinstance(type_, list):
            return " or ".join(_KINDS.get(name, str(name)) for name in type_ if name != "null")
        return _KINDS.get(str(type_), "any value")


def _describe_limits(part: Mapping[str, Any]) -> list[str]:
    limits = [
        text.format(_format_limit(part[key], unit))
        for key, text, unit in _LIMITS
        if part.get(key) is not None
    ]
    return (
        limits
        if part.get("default") in (None, "")
        else [*limits, f"default {_format_value(part['default'])}"]
    )


def _format_limit(value: Any, unit: str) -> str:
    if not isinstance(value, int | float):
        return _format_value(value)
    number = f"{value:,}"
    return f"{number} {unit}{'' if value == 1 else 's'}" if unit else number


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
