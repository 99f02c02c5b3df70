"""Schemas for Ollama's server, which forgets references, bounds, patterns and defaults: the description says them."""

import json
from collections.abc import Mapping
from typing import Any

MOST_REFERENCES = 5
"""That stand inside each other; what lies deeper, or refers to itself, is described as any object."""
_KEPT = frozenset({"type", "description", "enum", "items", "properties", "required", "anyOf"})
_SILENT = frozenset({"$defs", "definitions", "$schema", "$id", "$ref", "title", "const", "oneOf", "allOf"})
"""Said otherwise, or nothing that a model has to know."""

Schema = dict[str, Any]


def plain_definition(tool: Mapping[str, Any]) -> dict[str, Any]:
    """The definition of a tool with plain parameters."""
    function = tool["function"]
    return {**tool, "function": {**function, "parameters": plain_schema(function.get("parameters") or {})}}


def plain_schema(schema: Schema) -> Schema:
    """The same schema with references inlined, and with every other rule told in the descriptions of its fields."""
    return {"type": "object", "properties": {}, **_Plain(schema).schema(schema, ())}


class _Plain:
    def __init__(self, root: Schema) -> None:
        self._root = root

    def schema(self, node: Any, within: tuple[str, ...]) -> Schema:
        """The plain form of one schema; `within` are the references that led here."""
        if not isinstance(node, dict):
            return {}
        node, within = self._resolved(node, within)
        plain: Schema = {name: value for name, value in node.items() if name in _KEPT}
        if "const" in node:
            plain["enum"] = [node["const"]]
        if isinstance(properties := node.get("properties"), dict):
            plain["properties"] = {name: self.schema(value, within) for name, value in properties.items()}
        if "items" in node:
            plain["items"] = self.schema(node["items"], within)
        if options := node.get("anyOf") or node.get("oneOf"):
            plain["anyOf"] = [self.schema(option, within) for option in options]
        if rules := self._rules(node, within):
            plain["description"] = " ".join(filter(None, (node.get("description"), f"({'; '.join(rules)})")))
        return plain

    def _resolved(self, node: Schema, within: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
        """The node with what it refers to, and with the parts that it is made of, written into it."""
        while isinstance(reference := node.get("$ref"), str):
            others = {name: value for name, value in node.items() if name != "$ref"}
            if reference in within or len(within) == MOST_REFERENCES:
                return {"type": "object", **others}, within
            within = (*within, reference)
            node = {**self._target(reference), **others}
        for part in node.get("allOf") or ():
            if isinstance(part, dict):
                whole, within = self._resolved(part, within)
                node = _joined(whole, node)
        return node, within

    def _target(self, reference: str) -> Schema:
        """What a reference inside the schema points to; an empty schema if that is not there."""
        node: Any = self._root
        for step in filter(None, reference.removeprefix("#").split("/")):
            node = node.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
        return node if isinstance(node, dict) else {}

    def _rules(self, node: Schema, within: tuple[str, ...]) -> list[str]:
        """What the server would forget, as `name value`."""
        rules = {name: value for name, value in node.items() if name not in _KEPT | _SILENT}
        more = rules.pop("additionalProperties", None)
        if isinstance(more, dict) and (values := self.schema(more, within)):
            rules["each value"] = values
        return [f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in rules.items()]


def _joined(first: Schema, second: Schema) -> Schema:
    """Both schemas as one; where they differ, the second holds."""
    joined = {**first, **second}
    if "properties" in first and "properties" in second:
        joined["properties"] = {**first["properties"], **second["properties"]}
    if "required" in first and "required" in second:
        joined["required"] = list(dict.fromkeys([*first["required"], *second["required"]]))
    return joined
