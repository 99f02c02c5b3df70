"""Keywords of OpenAPI schemas, which differ from JSON Schema's, translated into Draft 2020-12."""

import math
from collections.abc import Mapping
from typing import Any

from tools.schemas.dialects import EXCLUSIVE, translate_bounds
from tools.schemas.patterns import compile_linear_pattern

_MAX_CHOICES = 250
_MAX_DESCRIPTION_LENGTH = 400
_MAX_PATTERN_LENGTH = 500
_MAX_DEFAULT_LENGTH = 200
_MARGIN = 4
"""The factor by which more characters are read than are wanted, because some may be spaces."""

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_NUMBERS = ("minimum", "maximum", *EXCLUSIVE)
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")


def read_keywords(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the type, bounds, choices and annotations of a schema, without its parts."""
    return {
        **_read_type(node),
        **_read_bounds(node),
        **_read_choices(node),
        **_read_annotations(node),
    }


def list_required(node: Mapping[str, Any]) -> frozenset[str]:
    """List the names in `required`; anything else in it is ignored."""
    wanted = node.get("required")
    return (
        frozenset(name for name in wanted if isinstance(name, str))
        if isinstance(wanted, list)
        else frozenset()
    )


def has_content(node: Mapping[str, Any]) -> bool:
    """Return True if the schema has subschemas."""
    return any(
        node.get(key)
        for key in ("properties", "items", "allOf", "anyOf", "oneOf", "additionalProperties")
    )


def truncate(node: Any, reason: str) -> dict[str, Any]:
    """Truncate a schema to its type and texts, and note this in its description."""
    result = dict(node) if isinstance(node, Mapping) else {}
    converted = apply_nullable(_read_type(result), result)
    kind = {"object": "Any object", "array": "Any list"}.get(
        str(converted.get("type")), "Any value"
    )
    return {
        **converted,
        **_read_annotations(
            {**result, "description": f"{kind}: {reason}. {_read_text(result)}".strip()}
        ),
    }


def read_line(value: Any, longest: int) -> str:
    """Return the beginning of a text on one line; empty for a value that is not a text."""
    return " ".join(value[: _MARGIN * longest].split())[:longest] if isinstance(value, str) else ""


def _read_text(node: Mapping[str, Any]) -> str:
    return read_line(node.get("description") or node.get("title"), _MAX_DESCRIPTION_LENGTH + 1)


def _read_type(node: Mapping[str, Any]) -> dict[str, Any]:
    given = node.get("type")
    if given == "file":
        return {"type": "string"}
    named = [
        kind for kind in (given if isinstance(given, list) else [given]) if isinstance(kind, str)
    ]
    kinds = [kind for kind in named if kind in _TYPES]
    if not kinds:
        return (
            {"type": "object"}
            if isinstance(node.get("properties"), Mapping) and "type" not in node
            else {}
        )
    return {"type": kinds[0] if len(kinds) == 1 else list(dict.fromkeys(kinds))}


def apply_nullable(converted: dict[str, Any], node: Mapping[str, Any]) -> dict[str, Any]:
    """Apply `nullable`, which allows null in addition to the type in OpenAPI 3.0."""
    if node.get("nullable") is not True and node.get("x-nullable") is not True:
        return converted
    kind = converted.get("type")
    if isinstance(kind, str) and kind != "null":
        converted["type"] = [kind, "null"]
    if "enum" in converted and None not in converted["enum"]:
        converted["enum"] = [*converted["enum"], None]
    for keyword in ("anyOf", "allOf"):
        if keyword in converted and kind is None:
            words = (
                {"description": converted.pop("description")} if "description" in converted else {}
            )
            return {"anyOf": [converted, {"type": "null"}], **words}
    return converted


def _read_bounds(node: Mapping[str, Any]) -> dict[str, Any]:
    given = {key: node[key] for key in _NUMBERS if key in node}
    converted = {
        key: value
        for key, value in given.items()
        if _is_number(value) or (key in EXCLUSIVE and value is True)
    }
    translate_bounds(converted)
    converted.update(
        {key: node[key] for key in _COUNTS if _is_number(node.get(key)) and _is_count(node[key])}
    )
    if _is_number(node.get("multipleOf")) and node["multipleOf"] > 0:
        converted["multipleOf"] = node["multipleOf"]
    pattern = node.get("pattern")
    if (
        isinstance(pattern, str)
        and len(pattern) <= _MAX_PATTERN_LENGTH
        and compile_linear_pattern(pattern) is not None
    ):
        converted["pattern"] = pattern
    return converted


def _read_choices(node: Mapping[str, Any]) -> dict[str, Any]:
    if "const" in node and _is_plain(node["const"]):
        return {"const": node["const"]}
    choices = node.get("enum")
    if not isinstance(choices, list) or not choices or len(choices) > _MAX_CHOICES:
        return {}
    plain = [choice for choice in choices if _is_plain(choice)]
    return (
        {"enum": [each for at, each in enumerate(plain) if each not in plain[:at]]} if plain else {}
    )


def _read_annotations(node: Mapping[str, Any]) -> dict[str, Any]:
    converted: dict[str, Any] = {}
    if text := _read_text(node):
        converted["description"] = (
            text
            if len(text) <= _MAX_DESCRIPTION_LENGTH
            else f"{text[: _MAX_DESCRIPTION_LENGTH - 1]}…"
        )
    if isinstance(node.get("format"), str):
        converted["format"] = node["format"][:40]
    default = node.get("default")
    is_short = isinstance(default, str) and len(default) <= _MAX_DEFAULT_LENGTH
    if is_short or isinstance(default, bool) or _is_number(default):
        converted["default"] = default
    if node.get("readOnly") is True:
        converted["readOnly"] = True
    return converted


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: float) -> bool:
    return value >= 0 and value == int(value)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | bool) or _is_number(value)
