"""The size of a schema with all references expanded, which bounds the cost of checking a value."""

from collections.abc import Iterator, Mapping
from typing import Any

from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

MAX_EXPANDED = 20_000
"""The maximum number of subschemas in one schema, with all references expanded."""

_SAME_VALUE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
"""Keywords whose schemas apply to the same value. The schemas of other keywords apply to parts of
the value."""
_PARTS = (
    *(
        "properties",
        "patternProperties",
        "additionalProperties",
        "propertyNames",
        "unevaluatedProperties",
    ),
    *("items", "prefixItems", "contains", "unevaluatedItems"),
)
_BY_NAME = frozenset({"dependentSchemas", "properties", "patternProperties"})
_REFERENCES = ("$ref", "$dynamicRef")


class IllegalSchemaError(ValueError):
    """A schema that cannot be used; the message gives the reason, for the admin."""


def refuse_endless(schema: Mapping[str, Any]) -> None:
    """Refuse a schema that expands too far or has an endless reference cycle.

    A cycle through parts of a value, such as a tree of folders, ends where the value ends;
    `find_faults` bounds its cost.

    Args:
        schema: a legal schema whose references are paths within it (`#/…`).

    Raises:
        IllegalSchemaError: the schema expands too far, is endless, or has a broken reference.
    """
    try:
        _Expansion(schema).refuse_endless()
    except RecursionError:
        raise IllegalSchemaError("its schema has too long a chain of references") from None
    except Unresolvable as error:
        raise IllegalSchemaError(f"its schema has a broken reference: {error.ref!r:.200}") from None


class _Expansion:
    """The expansion of a schema; each subschema is measured once, even if it is referenced several
    times."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema
        self._resolver = Registry().resolver_with_root(DRAFT202012.create_resource(schema))
        self._found: list[Mapping[str, Any]] = []
        self._sizes: dict[int, int] = {}
        self._ends: dict[int, bool] = {}

    def refuse_endless(self) -> None:
        self._measure(self._root)
        for node in self._found:
            self._follow(node)

    def _measure(self, node: Mapping[str, Any]) -> int:
        """Measure the subschema; if it is already being measured, return 1."""
        if id(node) in self._sizes:
            return self._sizes[id(node)]
        self._found.append(node)
        self._sizes[id(node)] = size = 1
        for part in (*self._list_applied(node), *_list_parts(node, _PARTS)):
            size += self._measure(part)
            if size > MAX_EXPANDED:
                raise IllegalSchemaError(
                    f"its schema repeats itself: it expands to more than {MAX_EXPANDED:,} parts"
                )
        self._sizes[id(node)] = size
        return size

    def _follow(self, node: Mapping[str, Any]) -> None:
        if id(node) not in self._ends:
            self._ends[id(node)] = False
            for part in self._list_applied(node):
                self._follow(part)
            self._ends[id(node)] = True
        elif not self._ends[id(node)]:
            raise IllegalSchemaError("its schema has a circular reference")

    def _list_applied(self, node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        yield from _list_parts(node, _SAME_VALUE)
        for reference in (node[keyword] for keyword in _REFERENCES if keyword in node):
            target = self._resolver.lookup(reference).contents
            if isinstance(target, Mapping):
                yield target
            elif not isinstance(target, bool):
                raise IllegalSchemaError(
                    f"its schema refers to something that is not a schema: {reference!r:.200}"
                )


def _list_parts(node: Mapping[str, Any], keywords: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    for keyword in keywords:
        value = node.get(keyword)
        if isinstance(value, Mapping):
            parts: Any = value.values() if keyword in _BY_NAME else (value,)
        else:
            parts = value if isinstance(value, list) else ()
        yield from (part for part in parts if isinstance(part, Mapping))
