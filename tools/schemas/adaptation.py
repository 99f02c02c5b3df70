"""Schemas that a server sends, such as MCP's inputSchema: checks, and adaptation for a model."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from jsonschema_specifications import REGISTRY
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from tools.schemas.dialects import modernize_schema
from tools.schemas.expansion import IllegalSchemaError, refuse_endless
from tools.schemas.references import resolve_reference

MAX_DEPTH = 64
MAX_SIZE = 200_000
"""The maximum number of characters in one schema as JSON."""
MAX_VALUES = 20_000
"""The maximum number of entries in all lists and objects of one schema together."""
MAX_DESCRIPTION_LENGTH = 1_024

_DATA = frozenset({"default", "const", "enum", "example", "examples"})
_BY_NAME = frozenset({"properties", "dependentSchemas"})
_BY_WORD = frozenset({"$defs", "definitions"})
_OF_NAMES = _BY_NAME | _BY_WORD
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_LEFT_TO_THE_SERVER = frozenset(
    {"uniqueItems", "patternProperties", "$schema", "$id", "$comment", "x-mcp-header"}
)
"""Keywords that only the server checks. The toolbox refuses sets (`uniqueItems`), because their
order is not stable, and matching names with patterns may take forever.

`x-mcp-header` asks the client for HTTP headers, and the client is Gadget, not the model.
"""


NO_PARAMS: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
_OBJECT_KEYWORDS = frozenset(
    {"properties", "required", "additionalProperties", "patternProperties", "minProperties"}
)
_FORMS = ("allOf", "anyOf", "oneOf")


@dataclass(frozen=True)
class ShownParams:
    """The schema of a tool's params for the model.

    Attributes:
        names: {the param's own name: the name for the model}.
        notes: the keywords that are left out, each as part of a sentence.
    """

    schema: dict[str, Any]
    names: Mapping[str, str]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class SchemaAdapter:
    """Adapts schemas for a model.

    Attributes:
        is_reserved: returns True if a param of this name must be renamed.
        clean: cleans a description, and shortens it to the given number of characters.
    """

    is_reserved: Callable[[str], bool]
    clean: Callable[[str, int], str]

    def read_params(self, given: Any) -> ShownParams:
        """Read the schema of a tool's params; if the schema is missing or empty, the tool does not
        take params.

        Raises:
            IllegalSchemaError: the schema cannot be used for params.
        """
        if given is None or given is True or given == {}:
            return ShownParams(dict(NO_PARAMS), {}, ())
        if not isinstance(given, Mapping):
            raise IllegalSchemaError("its schema is not an object")
        schema, notes = _check_schema(given)
        schema = _require_object(schema)
        names = self._map_reserved_names(schema)
        shown = {"properties": {}, **_Adaptation(names, self.clean).adapt(schema)}
        refuse_endless(shown)
        return ShownParams(shown, names, tuple(notes))

    def read_output(self, given: Any) -> tuple[dict[str, Any] | None, str]:
        """Read the schema of a tool's results; drop a schema that cannot be used.

        Returns:
            The schema, or None; and the reason why it was dropped, as part of a sentence.
        """
        if given is None:
            return None, ""
        try:
            if not isinstance(given, Mapping):
                raise IllegalSchemaError("it is not an object")
            schema, _ = _check_schema(given)
            shown: dict[str, Any] = _Adaptation({}, self.clean).adapt(schema)
            refuse_endless(shown)
        except IllegalSchemaError as error:
            return None, str(error)
        except (RecursionError, ValueError):
            return None, "it is not valid JSON"
        return shown, ""

    def _map_reserved_names(self, schema: Mapping[str, Any]) -> dict[str, str]:
        """Return {own name: name for the model} for each reserved property name, such as `user_id`.

        Each name gets an extra `_`, or as many as it needs to be unique.
        """
        names = {name for node in _list_nodes(schema) for name in _list_properties(node)}
        changed: dict[str, str] = {}
        for name in sorted(filter(self.is_reserved, names)):
            renamed = f"{name}_"
            while renamed in names or self.is_reserved(renamed):
                renamed += "_"
            changed[name] = renamed
        return changed


def _check_schema(given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a legal form of the schema, with notes about the parts that were dropped.

    `refuse_endless`, not this function, limits the cost of checking values.

    Raises:
        IllegalSchemaError: it is too large or too deep, or has a reference that is broken, uses a
            name or leads to another document.
    """
    _refuse_shape(given)
    size = len(json.dumps(given, separators=(",", ":"), ensure_ascii=False, allow_nan=False))
    if size > MAX_SIZE:
        raise IllegalSchemaError(
            f"its schema has {size:,} characters; at most {MAX_SIZE:,} are read"
        )
    schema, notes = modernize_schema(given)
    resolver = REGISTRY.resolver_with_root(DRAFT202012.create_resource(schema))
    for reference in _list_references(schema):
        if not reference.startswith("#"):
            raise IllegalSchemaError(f"its schema refers to another document: {reference!r:.200}")
        # References by name are refused, because finding one would need a search of the whole
        # schema.
        if reference[1:] and not reference.startswith("#/"):
            raise IllegalSchemaError(
                f"its schema has a reference by name, not by path: {reference!r:.200}"
            )
        try:
            resolver.lookup(reference)
        except Unresolvable:
            raise IllegalSchemaError(
                f"its schema has a broken reference: {reference!r:.200}"
            ) from None
    return schema, notes


def _require_object(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with the type `object` at its root.

    Raises:
        IllegalSchemaError: it does not describe an object.
    """
    target = resolve_reference(schema, schema)
    if target is not schema:
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    if not _may_be_object(schema):
        raise IllegalSchemaError("its params are not an object")
    is_open = "type" in schema or any(
        key in schema for key in (*_OBJECT_KEYWORDS, *_FORMS, *_REFERENCES)
    )
    return {**schema, "type": "object"} if is_open else {**schema, **NO_PARAMS}


def _may_be_object(node: Any) -> bool:
    if not isinstance(node, Mapping):
        return node is True
    kind = node.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        return False
    choices = [node[form] for form in ("anyOf", "oneOf") if isinstance(node.get(form), list)]
    return all(any(map(_may_be_object, forms)) for forms in choices)


def rename_keys(value: Any, names: Mapping[str, str]) -> Any:
    """Rename the keys of the value, at every depth."""
    if not names:
        return value
    if isinstance(value, list):
        return [rename_keys(entry, names) for entry in value]
    if isinstance(value, Mapping):
        return {names.get(key, key): rename_keys(entry, names) for key, entry in value.items()}
    return value


def _refuse_shape(schema: Any) -> None:
    """Refuse a schema that is too large or too deep, level by level instead of recursively."""
    level, values = [schema], 0
    for _ in range(MAX_DEPTH):
        values += sum(len(node) for node in level)
        if values > MAX_VALUES:
            raise IllegalSchemaError(f"its schema has more than {MAX_VALUES:,} parts")
        level = [child for node in level for child in _list_children(node)]
        if not level:
            return
    raise IllegalSchemaError(f"its schema is nested more than {MAX_DEPTH} levels deep")


def _list_children(node: Any) -> list[Any]:
    values = node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ()
    return [value for value in values if isinstance(value, Mapping | list)]


def _list_nodes(node: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(node, Mapping):
        yield node
    for child in _list_children(node):
        yield from _list_nodes(child)


def _list_properties(node: Mapping[str, Any]) -> list[str]:
    properties = node.get("properties")
    return list(properties) if isinstance(properties, Mapping) else []


def _list_references(schema: Mapping[str, Any]) -> Iterator[str]:
    for node in _list_nodes(schema):
        yield from (node[key] for key in _REFERENCES if isinstance(node.get(key), str))


@dataclass(frozen=True)
class _Adaptation:
    """Renames properties, cleans descriptions and drops some keywords."""

    names: Mapping[str, str]
    clean: Callable[[str, int], str]

    def adapt(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.adapt(child) for child in node]
        if not isinstance(node, Mapping):
            return node
        kept = {key: value for key, value in node.items() if key not in _LEFT_TO_THE_SERVER}
        adapted = {key: self._adapt_keyword(key, value) for key, value in kept.items()}
        if "patternProperties" in node:
            adapted.pop("additionalProperties", None)
        return adapted

    def _adapt_keyword(self, key: str, value: Any) -> Any:
        names = self.names
        if isinstance(value, str):
            return self._adapt_text(key, value)
        if key in _DATA:
            return rename_keys(value, names)
        if isinstance(value, Mapping) and key in _OF_NAMES:
            changed = names if key not in _BY_WORD else {}
            return {changed.get(name, name): self.adapt(part) for name, part in value.items()}
        if key == "required" and isinstance(value, list):
            return [names.get(name, name) for name in value]
        if key == "dependentRequired" and isinstance(value, Mapping):
            return {
                names.get(name, name): [names.get(each, each) for each in wanted]
                for name, wanted in value.items()
            }
        return self.adapt(value)

    def _adapt_text(self, key: str, value: str) -> str:
        if key in ("description", "title"):
            return self.clean(value, MAX_DESCRIPTION_LENGTH)
        return self._adapt_reference(value) if key in _REFERENCES else value

    def _adapt_reference(self, pointer: str) -> str:
        parts = pointer.split("/")
        renamed = [
            self.names.get(part, part) if before in _BY_NAME else part
            for before, part in pairwise(parts)
        ]
        return "/".join([*parts[:1], *renamed])
