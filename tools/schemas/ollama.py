"""Simplify schemas for Ollama: move the rules that it ignores, such as bounds, into
descriptions."""

import json
from collections.abc import Mapping
from typing import Any

from tools.schemas.references import find_target

MAX_REFERENCES = 5
"""The maximum depth of nested references; a deeper or recursive reference becomes an object of any
kind."""
_KEPT = frozenset({"type", "description", "enum", "items", "properties", "required", "anyOf"})
_SILENT = frozenset(
    {"$defs", "definitions", "$schema", "$id", "$ref", "title", "const", "oneOf", "allOf"}
)
"""Rules that are expressed in another way, or that a model does not need."""

Schema = dict[str, Any]


def simplify_definition(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of a tool with simplified parameters."""
    function = tool["function"]
    return {
        **tool,
        "function": {**function, "parameters": simplify_schema(function.get("parameters") or {})},
    }


def simplify_schema(schema: Schema) -> Schema:
    """Return the schema with its references inlined, and with descriptions of the rules that
    Ollama ignores."""
    return {"type": "object", "properties": {}, **_Simplifier(schema).simplify(schema, ())}


class _Simplifier:
    def __init__(self, root: Schema) -> None:
        self._root = root

    def simplify(self, node: Any, within: tuple[str, ...]) -> Schema:
        """Return the simplified schema; `within` holds the references that led here."""
        if not isinstance(node, dict):
            return {}
        node, within = self._resolve(node, within)
        simple: Schema = {name: value for name, value in node.items() if name in _KEPT}
        if "const" in node:
            simple["enum"] = [node["const"]]
        if isinstance(properties := node.get("properties"), dict):
            simple["properties"] = {
                name: self.simplify(value, within) for name, value in properties.items()
            }
        if "items" in node:
            simple["items"] = self.simplify(node["items"], within)
        if options := node.get("anyOf") or node.get("oneOf"):
            simple["anyOf"] = [self.simplify(option, within) for option in options]
        if rules := self._list_rules(node, within):
            simple["description"] = " ".join(
                filter(None, (node.get("description"), f"({'; '.join(rules)})"))
            )
        return simple

    def _resolve(self, node: Schema, within: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
        """Return the node with its references and the parts of `allOf` inlined."""
        while isinstance(reference := node.get("$ref"), str):
            others = {name: value for name, value in node.items() if name != "$ref"}
            if reference in within or len(within) == MAX_REFERENCES:
                return {"type": "object", **others}, within
            within = (*within, reference)
            node = {**(find_target(reference, self._root) or {}), **others}
        for part in node.get("allOf") or ():
            if isinstance(part, dict):
                resolved, within = self._resolve(part, within)
                node = _merge(resolved, node)
        return node, within

    def _list_rules(self, node: Schema, within: tuple[str, ...]) -> list[str]:
        """List the rules that Ollama drops, as `name value`."""
        rules = {name: value for name, value in node.items() if name not in _KEPT | _SILENT}
        more = rules.pop("additionalProperties", None)
        if isinstance(more, dict) and (values := self.simplify(more, within)):
            rules["each value"] = values
        return [f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in rules.items()]


def _merge(first: Schema, second: Schema) -> Schema:
    """Merge both schemas; the second wins where they differ."""
    merged = {**first, **second}
    if "properties" in first and "properties" in second:
        merged["properties"] = {**first["properties"], **second["properties"]}
    if "required" in first and "required" in second:
        merged["required"] = list(dict.fromkeys([*first["required"], *second["required"]]))
    return merged
