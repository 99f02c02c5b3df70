"""The JSON types of values and schemas, in words."""

from collections.abc import Mapping
from typing import Any

from tools.schemas.references import list_forms, resolve_reference


def name_type(value: Any) -> str:
    """Return the JSON type of a value; `null` for anything that is not JSON."""
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")


def describe_type(schema: Any, root: Mapping[str, Any]) -> str:
    """Describe the schema's type, e.g. `integer or null`; `any` if it allows every type.

    Args:
        root: the schema with the targets of its references.
    """
    return " or ".join(dict.fromkeys(_list_types(schema, root))) or "any"


def _list_types(schema: Any, root: Mapping[str, Any]) -> list[str]:
    if not isinstance(schema, Mapping):
        return []
    schema = resolve_reference(schema, root)
    given = schema.get("type")
    if given:
        return [str(each) for each in (given if isinstance(given, list) else [given])]
    if "enum" in schema or "const" in schema:
        return list(
            map(
                name_type,
                schema["enum"] if isinstance(schema.get("enum"), list) else [schema.get("const")],
            )
        )
    return [name for form in list_forms(schema) for name in _list_types(form, root)]
