"""A table of a tool's params for people, with the name, kind and limits of each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 4
MAX_ROWS = 200
MAX_REFERENCES = 8
"""The most references to follow, because they can form a circle."""
_KINDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "yes or no", "object": "object"}
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
    """Build a row for each param; the fields of an object follow it."""
    return _build_rows(schema, schema.get("$defs", {}), "", 0)[:MAX_ROWS]


def _build_rows(schema: Mapping[str, Any], definitions: Mapping[str, Any], prefix: str, depth: int) -> list[ParamRow]:
    required = schema.get("required", ())
    found: list[ParamRow] = []
    for name, part in schema.get("properties", {}).items():
        core = _simplify_schema(part, definitions)
        row = ParamRow(
            name=prefix + name,
            kind=_describe_kind(core, definitions),
            is_required=name in required,
            description=str(part.get("description") or core.get("description", "")),
            limits=", ".join(_describe_limits({**core, **part})),
        )
        found.append(row)
        inner = _simplify_schema(core["items"], definitions) if isinstance(core.get("items"), dict) else core
        if depth < MAX_DEPTH and inner.get("properties"):
            suffix = "[]." if inner is not core else "."
            found += _build_rows(inner, definitions, f"{prefix}{name}{suffix}", depth + 1)
    return found


def _simplify_schema(part: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Resolve references, and unwrap a schema that only adds null."""
    for _ in range(MAX_REFERENCES):
        if not isinstance(part, dict):
            return {}
        if "$ref" in part:
            part = definitions.get(str(part["$ref"]).rpartition("/")[2])
            continue
        options = [option for option in part.get("anyOf") or part.get("oneOf") or () if option.get("type") != "null"]
        if len(options) != 1:
            return part
        part = options[0]
    return {}


def _describe_kind(core: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    if "const" in core:
        return "always " + _format_value(core["const"])
    if core.get("enum"):
        return "one of " + ", ".join(_format_value(choice) for choice in core["enum"])
    options = core.get("anyOf") or core.get("oneOf")
    if options:
        kinds = dict.fromkeys(_describe_kind(_simplify_schema(option, definitions), definitions) for option in options)
        return " or ".join(kinds)
    type_ = core.get("type")
    if type_ == "array":
        return f"list of {_describe_kind(_simplify_schema(core.get('items', {}), definitions), definitions)}"
    if isinstance(type_, list):
        return " or ".join(_KINDS.get(name, str(name)) for name in type_ if name != "null")
    return _KINDS.get(str(type_), "any value")


def _describe_limits(part: Mapping[str, Any]) -> list[str]:
    limits = [text.format(_format_limit(part[key], unit)) for key, text, unit in _LIMITS if part.get(key) is not None]
    return limits if part.get("default") in (None, "") else [*limits, f"default {_format_value(part['default'])}"]


def _format_limit(value: Any, unit: str) -> str:
    if not isinstance(value, int | float):
        return _format_value(value)
    number = f"{value:,}"
    return f"{number} {unit}{'' if value == 1 else 's'}" if unit else number


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
