"""JSON schemas for display: references resolved, and types in words."""

from collections.abc import Mapping
from typing import Any

from tools.contract.addresses import resolve_reference

_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


def inline_references(schema: Any, root: Mapping[str, Any], trail: tuple[int, ...] = ()) -> Any:
    """Replace the schema's references with their targets; circular ones stay.

    Keywords next to a reference, such as a description, stay too.

    Args:
        trail: ids of the schemas that the references led through so far.
    """
    if isinstance(schema, list):
        return [inline_references(part, root, trail) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    target = resolve_reference(schema, root)
    if target is schema:
        return {key: inline_references(value, root, trail) for key, value in schema.items()}
    if id(target) in trail:
        return schema
    merged = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    return {key: inline_references(value, root, (*trail, id(target))) for key, value in merged.items()}


def describe_type(schema: Any) -> str:
    """Describe the schema's type, e.g. `string` or `integer or null`; `any` if it allows every type."""
    return " or ".join(dict.fromkeys(_list_types(schema))) or "any"


def _list_types(schema: Any) -> list[str]:
    if not isinstance(schema, Mapping):
        return []
    given = schema.get("type")
    if given:
        return [str(each) for each in (given if isinstance(given, list) else [given])]
    if "enum" in schema or "const" in schema:
        values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema.get("const")]
        return ["null" if value is None else _TYPES.get(type(value), "any") for value in values]
    forms = [form for word in ("anyOf", "oneOf", "allOf") for form in _as_list(schema.get(word))]
    return [name for form in forms for name in _list_types(form)]


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
