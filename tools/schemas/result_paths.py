"""Paths into the results of tools: from their schema, and from recorded results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from tools.schemas.references import expand_forms, list_properties

ANY_NAME = "*"
_DEEPEST = 8
_MOST = 500
"""The maximum number of paths listed for one schema or result."""
_MOST_VALUES = 5_000
"""The maximum number of values listed for one result."""
_SCALARS = frozenset({"string", "integer", "number"})


def list_schema_paths(schema: Mapping[str, Any] | None) -> list[str]:
    """List the paths of the texts and numbers that a schema describes; the entries of a list share
    its path, and `*` stands for the names of an open object."""
    return _take(_list_schema_paths(schema, schema, "", _DEEPEST)) if schema else []


def list_result_paths(data: Any) -> list[str]:
    """List the paths of the texts and numbers in a recorded result, except under names with dots.

    If all names of an object have digits, as ids do, `*` stands for them too.
    """
    return _take(path for path, _ in _list_value_places(data, "", _DEEPEST))


def list_value_places(data: Any) -> list[tuple[str, str | int | float]]:
    """List the texts and numbers in a recorded result, each with its path in the form of
    `list_result_paths`."""
    return list(islice(_list_value_places(data, "", _DEEPEST), _MOST_VALUES))


def _take(paths: Iterator[str]) -> list[str]:
    found: dict[str, None] = {}
    for path in paths:
        found[path] = None
        if len(found) >= _MOST:
            break
    return list(found)


def _list_schema_paths(node: Any, root: Mapping[str, Any], path: str, depth: int) -> Iterator[str]:
    for form in expand_forms(node, root) if isinstance(node, Mapping) and depth else ():
        types = form.get("type", ())
        named = {types} if isinstance(types, str) else set(types)
        if named & _SCALARS or "enum" in form or "const" in form:
            yield path
        if "items" in form:
            yield from _list_schema_paths(form["items"], root, path, depth - 1)
        for name, part in list_properties(form).items():
            if name and "." not in name:
                yield from _list_schema_paths(part, root, _join(path, name), depth - 1)
        others = form.get("additionalProperties")
        if isinstance(others, Mapping):
            yield from _list_schema_paths(others, root, _join(path, ANY_NAME), depth - 1)


def _list_value_places(node: Any, path: str, depth: int) -> Iterator[tuple[str, str | int | float]]:
    if isinstance(node, list):
        for entry in node if depth else ():
            yield from _list_value_places(entry, path, depth - 1)
    elif isinstance(node, Mapping):
        is_keyed = bool(node) and all(any(c.isdecimal() for c in name) for name in node)
        for name, value in node.items() if depth else ():
            if is_keyed:
                yield from _list_value_places(value, _join(path, ANY_NAME), depth - 1)
            elif name and "." not in name:
                yield from _list_value_places(value, _join(path, name), depth - 1)
    elif isinstance(node, str | int | float) and not isinstance(node, bool):
        yield path, node


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
