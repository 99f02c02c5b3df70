"""The JSON types of values and schemas, in words."""

from collections.abc import Mapping
from typing import Any

from tools.schemas.references import list_forms


def name_type(value: Any) -> str:
    """Return the JSON type of a value; `null` for anything that is not JSON."""
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")


def describe_type(schema: Any) -> str:
    """Describe the schema's type, e.g. `integer or null`; `any` if it allows every type."""
    return " or ".join(dict.fromkeys(_list_types(schema))) or "any"


def _list_types(schema: Any) -> list[str]:
    if not isinstance(schema, Mapping):
        return []
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
    return [name for form in list_forms(schema) for name in _list_types(form)]
