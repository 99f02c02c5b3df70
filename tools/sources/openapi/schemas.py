"""Makes bounded JSON schemas (Draft 2020-12) without references out of those in a description of any version."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.sources.given_schema import linear_pattern

from .credential_names import why_kept_back
from .names import one_line, shown_name
from .references import CycleError, References, RefusedError

Names = dict[str, Any]
"""{shown name: [the outside's own name, Names of what stands inside]}; `*` stands for any entry."""

_DEPTHS = (10, 7, 5, 4, 3, 2, 1)
_LARGEST = 1_500
_LARGEST_PARAMETER = 300
_LARGEST_IN_ALL = 300_000
_DEEPEST_COMPOSITION = 40
_MOST_CHOICES = 250
_LONGEST_DESCRIPTION = 400
_LONGEST_PATTERN = 500
_LONGEST_DEFAULT = 200

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")


class NeededError(RefusedError):
    """Nothing can be given here without what no model may give; says what, as part of a sentence."""


class _TooLargeError(Exception):
    """Read it again, less deep."""


@dataclass(frozen=True)
class Shape:
    """A schema as the model sees it, and the names in it that the outside knows by others."""

    schema: dict[str, Any]
    names: Names = field(default_factory=dict)


WhyKeptBack = Callable[[str, str, int], str]
"""By name, description and depth of a property, see `why_kept_back`."""


class Schemas:
    """Reads the schemas of one document; after 300,000 parts, what is left is told only at its surface.

    What no model may give is in none of them: optional properties are dropped, and so are forms that need it.

    Args:
        keys: place and name, in lower case, of API keys that the document's security schemes name.
    """

    def __init__(self, references: References, keys: frozenset[tuple[str, str]] = frozenset()) -> None:
        self._references = references
        self._keys = keys
        self._left = _LARGEST_IN_ALL

    def body(self, schema: Any) -> Shape:
        """At most 1,500 parts: what lies deeper is told as any object, and so is what goes on in itself.

        Raises:
            NeededError, RefusedError: it cannot be given, or read.
        """

        def why(name: str, told: str, depth: int) -> str:
            return why_kept_back(name, "body", told, is_top=depth == 0)

        return self._read(schema, _LARGEST, why)

    def parameter(self, schema: Any, spread: str = "") -> Shape:
        """At most 300 parts.

        Args:
            spread: query or cookie, if each property of an object becomes a parameter of its own there.

        Raises:
            NeededError, RefusedError: it cannot be given, or read.
        """

        def why(name: str, told: str, depth: int) -> str:
            if depth or not spread:
                return why_kept_back(name, "body", told, is_top=False)
            if (spread, name.lower()) in self._keys:
                return f"needs a credential: {name[:100]!r}"
            return why_kept_back(name, spread, told)

        return self._read(schema, _LARGEST_PARAMETER, why)

    def _read(self, schema: Any, largest: int, why: WhyKeptBack) -> Shape:
        for depth in _DEPTHS if self._left > 0 else _DEPTHS[-1:]:
            reading = _Reading(self._references, depth, largest, why)
            try:
                shape = reading.shape(schema, 0, frozenset())
            except _TooLargeError:
                continue
            finally:
                self._left -= largest - reading.left
            shape.schema.pop("readOnly", None)
            return shape
        return Shape(_cut(self._references.found(schema), "its description is too large to be shown"))


class _Reading:
    """One attempt: down to a depth, and with a number of parts that it may have."""

    def __init__(self, references: References, depth: int, largest: int, why: WhyKeptBack) -> None:
        self._references = references
        self._depth = depth
        self._why = why
        self.left = largest
        self._composing = 0

    def shape(self, schema: Any, depth: int, trail: frozenset[str]) -> Shape:
        """Raises _TooLargeError, NeededError, RefusedError."""
        self._spend(1)
        try:
            place = self._references.follow(schema, trail)
        except CycleError as error:
            return Shape(_cut(error.at, "from here on it repeats itself"))
        node, trail = place.node, place.trail
        if not isinstance(node, Mapping):
            return Shape({})
        made: dict[str, Any] = {**_type_of(node), **_bounds_of(node), **self._choices_of(node), **_words_of(node)}
        if depth >= self._depth and _holds_more(node):
            return Shape(_cut(node, "what is in it lies too deep to be shown"))
        parts = (
            self._properties(node, depth, trail),
            self._items(node, depth, trail),
            self._composition(node, depth, trail),
        )
        names: Names = {}
        for part in parts:
            made.update(part.schema)
            names = joined_names(names, part.names)
        return Shape(_nullable(made, node), names)

    def _spend(self, parts: int) -> None:
        self.left -= parts
        if self.left < 0:
            raise _TooLargeError

    def _properties(self, node: Mapping[str, Any], depth: int, trail: frozenset[str]) -> Shape:
        properties, required = node.get("properties"), _required(node)
        given: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
        made, names, is_partial = dict[str, Any](), Names(), False
        for name in required - given.keys():
            self._refuse_kept_back(name, "", depth)
        for name, schema in given.items():
            try:
                shape = self.shape(schema, depth + 1, trail)
                if shape.schema.pop("readOnly", False) is True:
                    continue
                self._refuse_kept_back(name, str(shape.schema.get("description", "")), depth)
            except NeededError:
                if name in required and not self._is_read_only(schema):
                    raise
                is_partial = True
                continue
            made[shown_name(name)] = shape.schema
            if shape.names or shown_name(name) != name:
                names[shown_name(name)] = [name, shape.names]
        found: dict[str, Any] = {"type": "object", "properties": made} if made else {}
        if kept := [name for name in made if names.get(name, [name])[0] in required]:
            found["required"] = kept
        if is_partial and not made and self._is_alone(node):
            found = {"type": "object", "additionalProperties": False}
        return self._additional(node, Shape(found, names), depth, trail)

    def _refuse_kept_back(self, name: str, description: str, depth: int) -> None:
        if why := self._why(name, description, depth):
            raise NeededError(why)

    def _is_read_only(self, schema: Any) -> bool:
        try:
            return self._references.found(schema).get("readOnly") is True
        except RefusedError:
            return False

    def _is_alone(self, node: Mapping[str, Any]) -> bool:
        """Whether no other form says what the same object may hold."""
        return self._composing == 0 and not any(node.get(key) for key in ("allOf", "anyOf", "oneOf"))

    def _additional(self, node: Mapping[str, Any], found: Shape, depth: int, trail: frozenset[str]) -> Shape:
        extra = node.get("additionalProperties")
        if isinstance(extra, Mapping) and extra:
            try:
                shape = self.shape(extra, depth + 1, trail)
            except NeededError:
                return Shape({**found.schema, "additionalProperties": False}, found.names)
            shape.schema.pop("readOnly", None)
            names = {**found.names, **({"*": ["*", shape.names]} if shape.names else {})}
            return Shape({**found.schema, "additionalProperties": shape.schema}, names)
        if extra is False and self._composing == 0 and "allOf" not in node:
            return Shape({**found.schema, "additionalProperties": False}, found.names)
        return Shape({**found.schema, "additionalProperties": True}, found.names) if extra is True else found

    def _items(self, node: Mapping[str, Any], depth: int, trail: frozenset[str]) -> Shape:
        items = node.get("items")
        if not isinstance(items, Mapping) or not items:
            return Shape({})
        shape = self.shape(items, depth + 1, trail)
        shape.schema.pop("readOnly", None)
        return Shape({"items": shape.schema}, {"*": ["*", shape.names]} if shape.names else {})

    def _composition(self, node: Mapping[str, Any], depth: int, trail: frozenset[str]) -> Shape:
        """One of several forms becomes any of them, because forms that were cut may overlap."""
        made, names = dict[str, Any](), Names()
        for keyword, shown in (("allOf", "allOf"), ("anyOf", "anyOf"), ("oneOf", "anyOf")):
            forms = node.get(keyword)
            if not isinstance(forms, list) or not forms or shown in made:
                continue
            self._composing += 1
            try:
                if self._composing > _DEEPEST_COMPOSITION:
                    raise _TooLargeError
                shapes = self._forms(forms, depth, trail, are_choices=shown == "anyOf")
            finally:
                self._composing -= 1
            for shape in shapes:
                shape.schema.pop("readOnly", None)
                names = joined_names(names, shape.names)
            if shown == "allOf" or all(shape.schema for shape in shapes):
                made[shown] = [shape.schema for shape in shapes if shape.schema]
        return Shape({keyword: forms for keyword, forms in made.items() if forms}, names)

    def _forms(self, forms: list[Any], depth: int, trail: frozenset[str], *, are_choices: bool) -> list[Shape]:
        """Without the choices that cannot be given; NeededError if that leaves none."""
        shapes, refused = list[Shape](), None
        for form in forms:
            try:
                shapes.append(self.shape(form, depth, trail))
            except NeededError as error:
                if not are_choices:
                    raise
                refused = error
        if refused is not None and not shapes:
            raise refused
        return shapes

    def _choices_of(self, node: Mapping[str, Any]) -> dict[str, Any]:
        if "const" in node and _is_plain(node["const"]):
            return {"const": node["const"]}
        choices = node.get("enum")
        if not isinstance(choices, list) or not choices or len(choices) > _MOST_CHOICES:
            return {}
        self._spend(len(choices) // 10)
        plain = [choice for choice in choices if _is_plain(choice)]
        return {"enum": [each for at, each in enumerate(plain) if each not in plain[:at]]} if plain else {}


def joined_names(names: Names, more: Names) -> Names:
    """Both, where forms of the same value stand side by side."""
    joined = dict(names)
    for shown, (own, inside) in more.items():
        joined[shown] = [own, joined_names(joined[shown][1], inside) if shown in joined else inside]
    return joined


def outside_value(value: Any, names: Names) -> Any:
    """The value with the outside's own names in it, explicit nulls kept."""
    if not names:
        return value
    if isinstance(value, list):
        inside = names["*"][1] if "*" in names else {}
        return [outside_value(entry, inside) for entry in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for shown, entry in value.items():
        own, inside = names.get(shown) or (shown, names["*"][1] if "*" in names else {})
        found[own] = outside_value(entry, inside)
    return found


def _required(node: Mapping[str, Any]) -> frozenset[str]:
    wanted = node.get("required")
    return frozenset(name for name in wanted if isinstance(name, str)) if isinstance(wanted, list) else frozenset()


def _holds_more(node: Mapping[str, Any]) -> bool:
    return any(node.get(key) for key in ("properties", "items", "allOf", "anyOf", "oneOf", "additionalProperties"))


def _cut(node: Any, why: str) -> dict[str, Any]:
    """What is still true of it: its type and its words, and that it was cut."""
    found = dict(node) if isinstance(node, Mapping) else {}
    made = _nullable(_type_of(found), found)
    kind = {"object": "Any object", "array": "Any list"}.get(str(made.get("type")), "Any value")
    return {**made, **_words_of({**found, "description": f"{kind}: {why}. {_described(found)}".strip()})}


def _described(node: Mapping[str, Any]) -> str:
    return one_line(node.get("description") or node.get("title"), _LONGEST_DESCRIPTION + 1)


def _type_of(node: Mapping[str, Any]) -> dict[str, Any]:
    given = node.get("type")
    if given == "file":
        return {"type": "string"}
    named = [kind for kind in (given if isinstance(given, list) else [given]) if isinstance(kind, str)]
    kinds = [kind for kind in named if kind in _TYPES]
    if not kinds:
        return {"type": "object"} if isinstance(node.get("properties"), Mapping) and "type" not in node else {}
    return {"type": kinds[0] if len(kinds) == 1 else list(dict.fromkeys(kinds))}


def _nullable(made: dict[str, Any], node: Mapping[str, Any]) -> dict[str, Any]:
    """OpenAPI 3.0 says beside the type that null is allowed."""
    if node.get("nullable") is not True and node.get("x-nullable") is not True:
        return made
    kind = made.get("type")
    if isinstance(kind, str) and kind != "null":
        made["type"] = [kind, "null"]
    if "enum" in made and None not in made["enum"]:
        made["enum"] = [*made["enum"], None]
    for keyword in ("anyOf", "allOf"):
        if keyword in made and kind is None:
            words = {"description": made.pop("description")} if "description" in made else {}
            return {"anyOf": [made, {"type": "null"}], **words}
    return made


def _bounds_of(node: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {key: node[key] for key in _NUMBERS if _is_number(node.get(key))}
    for exclusive, inclusive in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if node.get(exclusive) is True and inclusive in made:
            made[exclusive] = made.pop(inclusive)
    made.update({key: node[key] for key in _COUNTS if _is_number(node.get(key)) and _is_count(node[key])})
    if _is_number(node.get("multipleOf")) and node["multipleOf"] > 0:
        made["multipleOf"] = node["multipleOf"]
    pattern = node.get("pattern")
    if isinstance(pattern, str) and len(pattern) <= _LONGEST_PATTERN and linear_pattern(pattern) is not None:
        made["pattern"] = pattern
    return made


def _words_of(node: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if text := _described(node):
        made["description"] = text if len(text) <= _LONGEST_DESCRIPTION else f"{text[: _LONGEST_DESCRIPTION - 1]}…"
    if isinstance(node.get("format"), str):
        made["format"] = node["format"][:40]
    default = node.get("default")
    is_short = isinstance(default, str) and len(default) <= _LONGEST_DEFAULT
    if is_short or isinstance(default, bool) or _is_number(default):
        made["default"] = default
    if node.get("readOnly") is True:
        made["readOnly"] = True
    return made


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: float) -> bool:
    return value >= 0 and value == int(value)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | bool) or _is_number(value)
