"""Conversion of a description's schemas into bounded JSON schemas (2020-12) without references."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from tools.schemas.openapi import (
    apply_nullable,
    has_content,
    list_required,
    read_keywords,
    truncate,
)
from tools.sources.openapi.credential_names import (
    ForbiddenParamError,
    ProvidedParamError,
    object_to_name,
)
from tools.sources.openapi.names import avoid_reserved_name
from tools.sources.openapi.references import CycleError, References, UnsupportedOperationError
from tools.toolbox.objections import Objection

Names = dict[str, Any]
"""{name for the model: [the API's name, names inside the value]}; the key `*` covers any entry."""

_DEPTHS = (10, 7, 5, 4, 3, 2, 1)
_MAX_BODY_PARTS = 1_500
_MAX_PARAMETER_PARTS = 300
_MAX_IN_TOTAL = 300_000
_MAX_COMPOSITION_DEPTH = 40


class _TooLargeError(Exception):
    """A schema that is too large at this depth."""


@dataclass(frozen=True)
class Shape:
    """A schema for the model, and the names in it that differ from the API's own."""

    schema: dict[str, Any]
    names: Names = field(default_factory=dict)


ObjectToName = Callable[[str, str, int], Objection | None]
"""A function that returns the objection to a property of this name, description and depth, or None.
"""


class SchemaReader:
    """A reader of one document's schemas; after 300,000 parts, it reads only their top levels.

    It drops optional properties whose names a model may not use, and forms that require such a
    name.

    Args:
        keys: place and name, in lower case, of the API keys in the document's security schemes.
        provided: the fields of bodies that the connection fills.
    """

    def __init__(
        self,
        references: References,
        keys: frozenset[tuple[str, str]] = frozenset(),
        provided: frozenset[str] = frozenset(),
    ) -> None:
        self._references = references
        self._keys = keys
        self._provided = provided
        self._left = _MAX_IN_TOTAL
        self._bodies: dict[str, Shape] = {}  # keyed by reference, because operations share them

    def read_body(self, schema: Any) -> Shape:
        """Read a body's schema, at most 1,500 parts: deeper and recursive parts accept any object.

        Raises:
            ForbiddenParamError, UnsupportedOperationError: a model may not provide the body, or its
                schema cannot be read.
        """
        reference = (
            schema["$ref"] if isinstance(schema, dict) and schema.keys() == {"$ref"} else None
        )
        if not isinstance(reference, str):
            return self._read_body(schema)
        if reference not in self._bodies:
            self._bodies[reference] = self._read_body(schema)
        return replace(self._bodies[reference], schema=dict(self._bodies[reference].schema))

    def _read_body(self, schema: Any) -> Shape:

        def find_objection(name: str, description: str, depth: int) -> Objection | None:
            if depth == 0 and name in self._provided:
                raise ProvidedParamError
            return object_to_name(name, "body", description, is_top=depth == 0)

        return self._read_within_limits(schema, _MAX_BODY_PARTS, find_objection)

    def read_parameter(self, schema: Any, spread: str = "") -> Shape:
        """Read a parameter's schema, at most 300 parts.

        Args:
            spread: query or cookie, if each property of an object becomes a parameter of its own
                there.

        Raises:
            ForbiddenParamError, UnsupportedOperationError: a model may not provide the parameter,
                or its schema cannot be read.
        """

        def find_objection(name: str, description: str, depth: int) -> Objection | None:
            if depth or not spread:
                return object_to_name(name, "body", description, is_top=False)
            if (spread, name.lower()) in self._keys:
                return Objection(f"needs a credential: {name[:100]!r}")
            return object_to_name(name, spread, description)

        return self._read_within_limits(schema, _MAX_PARAMETER_PARTS, find_objection)

    def _read_within_limits(self, schema: Any, largest: int, find_objection: ObjectToName) -> Shape:
        for depth in _DEPTHS if self._left > 0 else _DEPTHS[-1:]:
            attempt = _SchemaAttempt(self._references, depth, largest, find_objection)
            try:
                shape = attempt.read_shape(schema, 0, frozenset())
            except _TooLargeError:
                continue
            finally:
                self._left -= largest - attempt.left
            shape.schema.pop("readOnly", None)
            return shape
        return Shape(
            truncate(
                self._references.resolve_object(schema), "its description is too large to show"
            )
        )


class _SchemaAttempt:
    """One attempt to read a schema, with limits on its depth and number of parts."""

    def __init__(
        self, references: References, depth: int, largest: int, find_objection: ObjectToName
    ) -> None:
        self._references = references
        self._depth = depth
        self._object_to_name = find_objection
        self.left = largest
        self._composing = 0

    def read_shape(self, schema: Any, depth: int, trail: frozenset[str]) -> Shape:
        """Read the schema.

        Raises:
            _TooLargeError, ForbiddenParamError, UnsupportedOperationError: the schema exceeds the
                limits, needs a forbidden name, or cannot be read.
        """
        self._spend(1)
        try:
            place = self._references.resolve(schema, trail)
        except CycleError as error:
            return Shape(truncate(error.at, "the structure repeats from here"))
        node, trail = place.node, place.trail
        if not isinstance(node, Mapping):
            return Shape({})
        converted = read_keywords(node)
        self._spend(len(converted.get("enum", ())) // 10)
        if depth >= self._depth and has_content(node):
            return Shape(truncate(node, "its content is nested too deeply to show"))
        parts = (
            self._read_properties(node, depth, trail),
            self._read_items(node, depth, trail),
            self._read_composition(node, depth, trail),
        )
        names: Names = {}
        for part in parts:
            converted.update(part.schema)
            names = merge_names(names, part.names)
        return Shape(apply_nullable(converted, node), names)

    def _spend(self, parts: int) -> None:
        self.left -= parts
        if self.left < 0:
            raise _TooLargeError

    def _read_properties(self, node: Mapping[str, Any], depth: int, trail: frozenset[str]) -> Shape:
        properties, required = node.get("properties"), list_required(node)
        given: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
        converted, names, is_partial = dict[str, Any](), Names(), False
        for name in required - given.keys():
            with suppress(ProvidedParamError):
                self._refuse_forbidden(name, "", depth)
        for name, schema in given.items():
            try:
                shape = self.read_shape(schema, depth + 1, trail)
                if shape.schema.pop("readOnly", False) is True:
                    continue
                self._refuse_forbidden(name, str(shape.schema.get("description", "")), depth)
            except ForbiddenParamError as error:
                is_missed = name in required and not isinstance(error, ProvidedParamError)
                if is_missed and not self._is_read_only(schema):
                    raise
                is_partial = True
                continue
            converted[avoid_reserved_name(name)] = shape.schema
            if shape.names or avoid_reserved_name(name) != name:
                names[avoid_reserved_name(name)] = [name, shape.names]
        result: dict[str, Any] = {"type": "object", "properties": converted} if converted else {}
        if required_names := [name for name in converted if names.get(name, [name])[0] in required]:
            result["required"] = required_names
        if is_partial and not converted and self._is_alone(node):
            result = {"type": "object", "additionalProperties": False}
        return self._read_additional(node, Shape(result, names), depth, trail)

    def _refuse_forbidden(self, name: str, description: str, depth: int) -> None:
        if (objection := self._object_to_name(name, description, depth)) is not None:
            raise ForbiddenParamError(objection.why)

    def _is_read_only(self, schema: Any) -> bool:
        try:
            return self._references.resolve_object(schema).get("readOnly") is True
        except UnsupportedOperationError:
            return False

    def _is_alone(self, node: Mapping[str, Any]) -> bool:
        """Return True if this is the only form that describes the object."""
        return self._composing == 0 and not any(
            node.get(key) for key in ("allOf", "anyOf", "oneOf")
        )

    def _read_additional(
        self, node: Mapping[str, Any], result: Shape, depth: int, trail: frozenset[str]
    ) -> Shape:
        extra = node.get("additionalProperties")
        if isinstance(extra, Mapping) and extra:
            try:
                shape = self.read_shape(extra, depth + 1, trail)
            except ForbiddenParamError:
                return Shape({**result.schema, "additionalProperties": False}, result.names)
            shape.schema.pop("readOnly", None)
            names = {**result.names, **({"*": ["*", shape.names]} if shape.names else {})}
            return Shape({**result.schema, "additionalProperties": shape.schema}, names)
        if extra is False and self._composing == 0 and "allOf" not in node:
            return Shape({**result.schema, "additionalProperties": False}, result.names)
        return (
            Shape({**result.schema, "additionalProperties": True}, result.names)
            if extra is True
            else result
        )

    def _read_items(self, node: Mapping[str, Any], depth: int, trail: frozenset[str]) -> Shape:
        items = node.get("items")
        if not isinstance(items, Mapping) or not items:
            return Shape({})
        shape = self.read_shape(items, depth + 1, trail)
        shape.schema.pop("readOnly", None)
        return Shape({"items": shape.schema}, {"*": ["*", shape.names]} if shape.names else {})

    def _read_composition(
        self, node: Mapping[str, Any], depth: int, trail: frozenset[str]
    ) -> Shape:
        """Read the combined forms; `oneOf` becomes `anyOf`, because truncated forms may overlap."""
        converted, names = dict[str, Any](), Names()
        for keyword, shown in (("allOf", "allOf"), ("anyOf", "anyOf"), ("oneOf", "anyOf")):
            forms = node.get(keyword)
            if not isinstance(forms, list) or not forms or shown in converted:
                continue
            self._composing += 1
            try:
                if self._composing > _MAX_COMPOSITION_DEPTH:
                    raise _TooLargeError
                shapes = self._read_forms(forms, depth, trail, are_choices=shown == "anyOf")
            finally:
                self._composing -= 1
            for shape in shapes:
                shape.schema.pop("readOnly", None)
                names = merge_names(names, shape.names)
            if shown == "allOf" or all(shape.schema for shape in shapes):
                converted[shown] = [shape.schema for shape in shapes if shape.schema]
        return Shape({keyword: forms for keyword, forms in converted.items() if forms}, names)

    def _read_forms(
        self, forms: list[Any], depth: int, trail: frozenset[str], *, are_choices: bool
    ) -> list[Shape]:
        """Read the forms, without forbidden choices; ForbiddenParamError if none is left."""
        shapes, refused = list[Shape](), None
        for form in forms:
            try:
                shapes.append(self.read_shape(form, depth, trail))
            except ForbiddenParamError as error:
                if not are_choices:
                    raise
                refused = error
        if refused is not None and not shapes:
            raise refused
        return shapes


def merge_names(names: Names, more: Names) -> Names:
    """Merge the names of several forms of the same value."""
    joined = dict(names)
    for shown, (own, inside) in more.items():
        joined[shown] = [own, merge_names(joined[shown][1], inside) if shown in joined else inside]
    return joined


def restore_api_names(value: Any, names: Names) -> Any:
    """Restore the API's own names in the value; explicit nulls are kept."""
    if not names:
        return value
    if isinstance(value, list):
        inside = names["*"][1] if "*" in names else {}
        return [restore_api_names(entry, inside) for entry in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for shown, entry in value.items():
        own, inside = names.get(shown) or (shown, names["*"][1] if "*" in names else {})
        result[own] = restore_api_names(entry, inside)
    return result
