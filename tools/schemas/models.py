"""The JSON schema of a Pydantic model, as a language model sees it."""

from typing import Any

from pydantic import BaseModel


def build_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Build the model's JSON schema without titles; it is always an object with `properties`."""
    schema: dict[str, Any] = _drop_titles(model.model_json_schema())
    schema.setdefault("properties", {})
    return schema


def _drop_titles(node: Any, inside_properties: bool = False) -> Any:
    if isinstance(node, list):
        return [_drop_titles(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _drop_titles(
            value, inside_properties=key in ("properties", "$defs") and not inside_properties
        )
        for key, value in node.items()
        if inside_properties or not (key == "title" and isinstance(value, str))
    }
