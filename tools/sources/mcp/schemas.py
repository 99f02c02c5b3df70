"""Schemas from servers: refused where they cannot be used, and made fit for a model where they can."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from jsonschema import Draft202012Validator, SchemaError
from jsonschema_specifications import REGISTRY
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from tools.contract import canonical_json
from tools.sources.given_schema import IllegalSchemaError
from tools.toolbox import comes_from_the_run

from .words import shown

DEEPEST = 64
LARGEST = 200_000
"""Characters of one schema as JSON."""
MOST_VALUES = 20_000
"""In one schema: lists, objects and all that is in them."""
LONGEST_DESCRIPTION = 1_024

_DATA = frozenset({"default", "const", "enum", "example", "examples"})
_BY_NAME = frozenset({"properties", "dependentSchemas"})
_BY_WORD = frozenset({"$defs", "definitions"})
_OF_NAMES = _BY_NAME | _BY_WORD
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_LEFT_TO_THE_SERVER = frozenset({"uniqueItems", "patternProperties", "$schema", "$id", "$comment"})
"""A set has no stable order, patterns of names may take forever, and the rest is not about values."""


def refuse_illegal(schema: Mapping[str, Any]) -> None:
    """Raises IllegalSchemaError for what is no JSON Schema (2020-12), too large, too deep, or leads out of itself.

    What it makes a check cost is left to `given_schema.refuse_endless`.
    """
    _refuse_shape(schema)
    size = len(canonical_json(schema))
    if size > LARGEST:
        raise IllegalSchemaError(f"its schema has {size:,} characters; at most {LARGEST:,} are read")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        place = ".".join(str(part) for part in error.absolute_path) or "the root"
        raise IllegalSchemaError(f"its schema is not legal at {place:.200}: {error.message:.200}") from None
    resolver = REGISTRY.resolver_with_root(DRAFT202012.create_resource(schema))
    for reference in _references(schema):
        if not reference.startswith("#"):
            raise IllegalSchemaError(f"its schema refers to another document: {reference!r:.200}")
        if reference[1:] and not reference.startswith("#/"):  # by a name, which is looked for everywhere, each time
            raise IllegalSchemaError(f"its schema refers to a place by its name, not by its path: {reference!r:.200}")
        try:
            resolver.lookup(reference)
        except Unresolvable:
            raise IllegalSchemaError(f"its schema refers to what is not there: {reference!r:.200}") from None


def changed_names(schema: Mapping[str, Any]) -> dict[str, str]:
    """{own name: shown name} of every property that the toolbox keeps for what comes from the run (`user_id`).

    Each gets one `_` more, or as many as no other property has.
    """
    names = {name for node in _nodes(schema) for name in _properties(node)}
    changed: dict[str, str] = {}
    for name in sorted(filter(comes_from_the_run, names)):
        told = f"{name}_"
        while told in names or comes_from_the_run(told):
            told += "_"
        changed[name] = told
    return changed


def tamed(schema: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The schema for a model: these names changed, descriptions made fit, without what the server alone checks."""
    made: dict[str, Any] = _tamed(schema, names)
    return made


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """The value with the keys changed, at every depth."""
    if not names:
        return value
    if isinstance(value, list):
        return [renamed(entry, names) for entry in value]
    if isinstance(value, Mapping):
        return {names.get(key, key): renamed(entry, names) for key, entry in value.items()}
    return value


def _refuse_shape(schema: Any) -> None:
    """Level by level, so that no nesting can exhaust the stack."""
    level, values = [schema], 0
    for _ in range(DEEPEST):
        values += sum(len(node) for node in level)
        if values > MOST_VALUES:
            raise IllegalSchemaError(f"its schema has more than {MOST_VALUES:,} parts")
        level = [child for node in level for child in _children(node)]
        if not level:
            return
    raise IllegalSchemaError(f"its schema is nested more than {DEEPEST} deep")


def _children(node: Any) -> list[Any]:
    values = node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ()
    return [value for value in values if isinstance(value, Mapping | list)]


def _nodes(node: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(node, Mapping):
        yield node
    for child in _children(node):
        yield from _nodes(child)


def _properties(node: Mapping[str, Any]) -> list[str]:
    properties = node.get("properties")
    return list(properties) if isinstance(properties, Mapping) else []


def _references(schema: Mapping[str, Any]) -> Iterator[str]:
    for node in _nodes(schema):
        yield from (node[key] for key in _REFERENCES if isinstance(node.get(key), str))


def _tamed(node: Any, names: Mapping[str, str]) -> Any:
    if isinstance(node, list):
        return [_tamed(child, names) for child in node]
    if not isinstance(node, Mapping):
        return node
    made = {key: _keyword(key, value, names) for key, value in node.items() if key not in _LEFT_TO_THE_SERVER}
    if "patternProperties" in node:
        made.pop("additionalProperties", None)
    return made


def _keyword(key: str, value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _text(key, value, names)
    if key in _DATA:
        return renamed(value, names)
    if isinstance(value, Mapping) and key in _OF_NAMES:
        changed = names if key not in _BY_WORD else {}
        return {changed.get(name, name): _tamed(part, names) for name, part in value.items()}
    if key == "required" and isinstance(value, list):
        return [names.get(name, name) for name in value]
    if key == "dependentRequired" and isinstance(value, Mapping):
        return {names.get(name, name): [names.get(each, each) for each in wanted] for name, wanted in value.items()}
    return _tamed(value, names)


def _text(key: str, value: str, names: Mapping[str, str]) -> str:
    if key in ("description", "title"):
        return shown(value, LONGEST_DESCRIPTION)
    return _reference(value, names) if key in _REFERENCES else value


def _reference(pointer: str, names: Mapping[str, str]) -> str:
    parts = pointer.split("/")
    told = [names.get(part, part) if before in _BY_NAME else part for before, part in pairwise(parts)]
    return "/".join([*parts[:1], *told])
