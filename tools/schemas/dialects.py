"""Translation of older and faulty JSON schemas into Draft 2020-12, keyword by keyword.

A keyword that means something else today is translated; a keyword without a meaning is dropped,
with a note for the admin.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, SchemaError

from tools.schemas.expansion import IllegalSchemaError
from tools.schemas.patterns import compile_linear_pattern, translate_pattern

MAX_FAULTS = 50
"""The maximum number of illegal keywords that are dropped from one schema."""
EXCLUSIVE = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_OF_SCHEMAS = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
)
_DATA = frozenset(
    {"default", "const", "enum", "example", "examples", "required", "dependentRequired"}
)
_NO_FORMATS = FormatChecker(formats=())


def refuse_illegal_schema(schema: Mapping[str, Any]) -> None:
    """Refuse a schema that is not valid in Draft 2020-12.

    Raises:
        IllegalSchemaError: with the place and the reason, as part of a sentence.
    """
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        where = ".".join(str(part) for part in error.path)
        raise IllegalSchemaError(f"wrong at {where}: {error.message}") from error


def modernize_schema(schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the schema in Draft 2020-12, and notes about dropped keywords, as parts of a sentence.

    Args:
        schema: of bounded size and depth.

    Raises:
        IllegalSchemaError: it is not a schema, or has more than MAX_FAULTS illegal keywords.
    """
    notes: list[str] = []
    translated: dict[str, Any] = _translate_node(schema, notes)
    _drop_illegal(translated, notes)
    return translated, notes


def _translate_node(node: Any, notes: list[str]) -> Any:
    if isinstance(node, list):
        return [_translate_node(child, notes) for child in node]
    if not isinstance(node, Mapping):
        return node
    translated: dict[str, Any] = {}
    for key, value in node.items():
        if key in _OF_SCHEMAS and isinstance(value, Mapping):
            translated[key] = {name: _translate_node(part, notes) for name, part in value.items()}
        else:
            translated[key] = deepcopy(value) if key in _DATA else _translate_node(value, notes)
    translate_bounds(translated)
    _translate_required(node, translated)
    _translate_lists(translated)
    _translate_dependencies(translated)
    _drop_pattern(translated, notes)
    return translated


def translate_bounds(node: dict[str, Any]) -> None:
    """Translate Draft 4's `exclusiveMinimum: true` and `exclusiveMaximum: true`, which made
    `minimum` and `maximum` exclusive."""
    for exclusive, inclusive in EXCLUSIVE.items():
        is_exclusive = node.get(exclusive)
        if not isinstance(is_exclusive, bool):
            continue
        del node[exclusive]
        if is_exclusive and inclusive in node:
            node[exclusive] = node.pop(inclusive)


def _translate_required(before: Mapping[str, Any], node: dict[str, Any]) -> None:
    """Translate Draft 3's `required: true`, which belonged to the property, not to the object."""
    if isinstance(node.get("required"), bool):
        del node["required"]
    properties = before.get("properties")
    required = [
        name
        for name, part in (properties.items() if isinstance(properties, Mapping) else ())
        if isinstance(part, Mapping) and part.get("required") is True
    ]
    if required:
        named = node.get("required")
        known = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
        node["required"] = list(dict.fromkeys([*known, *required]))


def _translate_lists(node: dict[str, Any]) -> None:
    """Translate the list form of `items`, which is `prefixItems` today, and drop the type `any`."""
    if isinstance(node.get("items"), list) and "prefixItems" not in node:
        first, rest = node.pop("items"), node.pop("additionalItems", None)
        if first:
            node["prefixItems"] = first
        if rest is not None:
            node["items"] = rest
    if node.get("type") == "any":
        del node["type"]


def _translate_dependencies(node: dict[str, Any]) -> None:
    """Translate `dependencies` into the two keywords that have replaced it."""
    found = node.pop("dependencies", None)
    for name, wanted in found.items() if isinstance(found, Mapping) else ():
        is_names = isinstance(wanted, list | str)
        keyword = "dependentRequired" if is_names else "dependentSchemas"
        if not isinstance(node.setdefault(keyword, {}), dict):
            node[keyword] = {}  # an invalid value has no effect
        node[keyword][name] = [wanted] if isinstance(wanted, str) else wanted


def _drop_pattern(node: dict[str, Any], notes: list[str]) -> None:
    """Drop a pattern that Gadget's engines do not understand; the server checks it."""
    pattern = node.get("pattern")
    if not isinstance(pattern, str) or compile_linear_pattern(pattern) is not None:
        return
    try:
        re.compile(translate_pattern(pattern))
    except (re.error, OverflowError, RecursionError):
        del node["pattern"]
        notes.append(f"the pattern {pattern!r:.80} is not checked")


def _drop_illegal(schema: dict[str, Any], notes: list[str]) -> None:
    """Drop illegal keywords, and replace illegal subschemas with subschemas that allow anything."""
    checker = Draft202012Validator(Draft202012Validator.META_SCHEMA, format_checker=_NO_FORMATS)
    for _ in range(MAX_FAULTS):
        fault = next(checker.iter_errors(schema), None)
        if fault is None:
            return
        path = list(fault.absolute_path)
        if not path:
            raise IllegalSchemaError(f"its schema is not valid: {fault.message:.200}")
        holder: Any = schema
        for part in path[:-1]:
            holder = holder[part]
        _remove_value(holder, path)
        notes.append(f"{'.'.join(map(str, path)):.80} is not valid, so it is left out")
    raise IllegalSchemaError(f"its schema has more than {MAX_FAULTS} faults")


def _remove_value(holder: Any, path: list[Any]) -> None:
    is_subschema = len(path) > 1 and (path[-2] in _OF_SCHEMAS or isinstance(path[-1], int))
    if is_subschema and path[-2] not in _DATA:
        holder[path[-1]] = {}
    else:
        del holder[path[-1]]
