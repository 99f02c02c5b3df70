"""The kinds of things that a tool's params name: a recipient, a destination, an account, a right,
an amount, a command, something unknown, or nothing.

Standing grants, the origins of values and pages all use this. Declarations of an admin or of the
tool are considered first, then known names, the schema, and the shapes of values. If a param seems
to name something, only a declaration can state that it does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from tools.contract.contacts import ACCOUNT, EMAIL, list_contacts
from tools.contract.param_words import LATER_WORDS, NamedThing, find_named
from tools.contract.value_shapes import is_currency, read_shape
from tools.schemas.param_paths import list_types, list_value_forms
from tools.schemas.patterns import compile_linear_pattern
from tools.schemas.references import list_properties

MAX_VALUES = 2_000
"""The maximum number of values that are read in one call. If a call has more values, each param
that could name something is treated as naming something."""
STANDING_OUT = frozenset(NamedThing) - {NamedThing.UNKNOWN, NamedThing.NOTHING}
"""A value from outside stands out on a card if its param names one of these."""
DESCRIPTIONS = {
    NamedThing.RECIPIENT: "names a recipient",
    NamedThing.DESTINATION: "names a destination",
    NamedThing.ACCOUNT: "names an account",
    NamedThing.RIGHT: "names a right",
    NamedThing.AMOUNT: "names an amount",
    NamedThing.COMMAND: "names a command",
    NamedThing.UNKNOWN: "looks like an id or an address",
}
_FORMATS = {
    "email": NamedThing.RECIPIENT,
    "idn-email": NamedThing.RECIPIENT,
    **dict.fromkeys(("date", "date-time", "time", "duration"), NamedThing.NOTHING),
    **dict.fromkeys(("int32", "int64", "float", "double", "decimal"), NamedThing.NOTHING),
    **dict.fromkeys(("byte", "binary", "regex", "json-pointer"), NamedThing.NOTHING),
    **dict.fromkeys(("uri", "url", "iri", "hostname", "idn-hostname"), NamedThing.DESTINATION),
    **dict.fromkeys(("uri-reference", "iri-reference", "uri-template"), NamedThing.DESTINATION),
    **dict.fromkeys(("ipv4", "ipv6"), NamedThing.DESTINATION),
    "password": NamedThing.RIGHT,
}
"""The things that values of a format name. Values of any other format name something unknown."""
_SENTENCE = "Two words, or more."
_TIMES = ("2026-11-30", "10:30", "2026-11-30T10:30:00Z")
_SHORTEST_CODE = 4
"""The minimum length of a text of fixed length that names something. Shorter texts are codes of
languages, countries and currencies."""


class Naming(Protocol):
    """An object that finds the params of a call that name something."""

    def find_naming(self, paths: Iterable[str], params: Mapping[str, Any]) -> dict[str, NamedThing]:
        """Return the params at these paths that name something in this call, with what each
        names."""


class ToolWithParams(Protocol):
    """The properties of a tool that `ParamNaming` needs; every `Tool` has them."""

    @property
    def schema(self) -> Mapping[str, Any]: ...
    @property
    def destination_params(self) -> frozenset[str]: ...
    @property
    def address_params(self) -> frozenset[str]: ...
    @property
    def plain_params(self) -> frozenset[str]: ...
    @property
    def is_from_outside(self) -> bool: ...


@dataclass(frozen=True)
class FirstNaming:
    """The naming that was used for the first recordings, which knew only English names.

    Attributes:
        declared: further names of params that name something.
    """

    declared: frozenset[str] = frozenset()

    def find_naming(self, paths: Iterable[str], params: Mapping[str, Any]) -> dict[str, NamedThing]:
        """Return those params at these paths whose names stand for a recipient, a place or an
        amount."""
        found = ((path, self._find(path.split("."))) for path in paths)
        return {path: kind for path, kind in found if kind is not NamedThing.NOTHING}

    def _find(self, names: list[str]) -> NamedThing:
        if not self.declared.isdisjoint(names):
            return NamedThing.DESTINATION
        known = (find_named(name, LATER_WORDS) for name in names)
        return next((kind for kind in known if kind is not NamedThing.NOTHING), NamedThing.NOTHING)


@dataclass(frozen=True)
class RecordedNaming:
    """The params of a recorded call that named something, as judged at that time."""

    naming: Mapping[str, NamedThing]

    def find_naming(self, paths: Iterable[str], params: Mapping[str, Any]) -> dict[str, NamedThing]:
        """Return those params at these paths that named something."""
        return {path: self.naming[path] for path in paths if path in self.naming}


class ParamNaming:
    """Decides what each param of one tool names. Use an instance for one judgment only, because it
    remembers every path.

    Args:
        declared: names, at every depth, and paths of params that certainly name something.
        plain: paths of params that certainly name nothing, with everything inside them.
        is_known: True for a tool that declares all its params with unusual names, so that the
            schema and the shapes of values are not considered.
    """

    def __init__(
        self,
        schema: Mapping[str, Any],
        declared: frozenset[str] = frozenset(),
        plain: frozenset[str] = frozenset(),
        *,
        is_known: bool = False,
    ) -> None:
        self._schema, self._declared, self._plain = schema, declared, plain
        self._is_known = is_known
        self._found: dict[str, tuple[NamedThing, bool]] = {}

    @classmethod
    def of(cls, tool: ToolWithParams) -> ParamNaming:
        """Build the naming of a tool; the params of tools that ship with Gadget are known."""
        declared = tool.destination_params | tool.address_params
        return cls(tool.schema, declared, tool.plain_params, is_known=not tool.is_from_outside)

    def find(
        self, path: str, values: Iterable[Any] = (), *, has_currency: bool = False
    ) -> NamedThing:
        """Find what the param at this path names.

        Args:
            values: values of the param, in this call and in earlier ones.
            has_currency: a currency stands beside the values.
        """
        kind, is_settled = self._found.get(path) or self._found.setdefault(path, self._read(path))
        if is_settled:
            return kind
        for value in values:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            shape = NamedThing.AMOUNT if has_currency and is_number else read_shape(value)
            if shape is not NamedThing.NOTHING:
                return shape
        return NamedThing.NOTHING

    def find_naming(self, paths: Iterable[str], params: Mapping[str, Any]) -> dict[str, NamedThing]:
        """Return the params at these paths that name something in this call, with what each
        names."""
        wanted = set(paths)
        values: dict[str, list[tuple[Any, bool]]] = {}
        every = list(islice(_walk(params), MAX_VALUES + 1))
        for path, value, has_currency in every:
            values.setdefault(path, []).append((value, has_currency))
        found = {path: self._find_alone(path) for path in wanted}
        for path in wanted & values.keys():
            kinds = (self.find(path, [one], has_currency=money) for one, money in values[path])
            named = (kind for kind in kinds if kind is not NamedThing.NOTHING)
            found[path] = next(named, found[path])
        if len(every) > MAX_VALUES:
            found = {
                path: kind
                if self.is_settled(path) or kind is not NamedThing.NOTHING
                else NamedThing.UNKNOWN
                for path, kind in found.items()
            }
        return {path: kind for path, kind in found.items() if kind is not NamedThing.NOTHING}

    def is_settled(self, path: str) -> bool:
        """Return True if what the param names does not depend on its values."""
        self.find(path)
        return self._found[path][1]

    def stands_out(self, names: Iterable[str], value: Any) -> bool:
        """Return True if a value from outside must stand out in the param with these names."""
        return self.find(".".join(names), [value]) in STANDING_OUT

    def _read(self, path: str) -> tuple[NamedThing, bool]:
        """Return what the param names before any value is known, and True if values cannot change
        that."""
        names = path.split(".")
        trail = {".".join(names[: end + 1]) for end in range(len(names))}
        if not self._plain.isdisjoint(trail):
            return NamedThing.NOTHING, True
        known = (find_named(name) for name in names)
        kind = next((each for each in known if each is not NamedThing.NOTHING), NamedThing.NOTHING)
        if kind is NamedThing.NOTHING and not self._declared.isdisjoint({*names, *trail}):
            kind = NamedThing.DESTINATION
        if kind is not NamedThing.NOTHING or self._is_known:
            return kind, True
        forms = list_value_forms(self._schema, path)
        if forms and all(map(_is_listed, forms)):
            return NamedThing.NOTHING, True
        kinds = (kind for form in forms for kind in _read_form(form))
        kind = next((each for each in kinds if each is not NamedThing.NOTHING), NamedThing.NOTHING)
        return kind, kind is not NamedThing.NOTHING

    def _find_alone(self, path: str) -> NamedThing:
        """Find what the param names, regardless of its value."""
        kind = self.find(path)
        if kind is NamedThing.NOTHING and not self.is_settled(path):
            is_whole = "integer" in list_types(self._schema, path)
            return NamedThing.AMOUNT if is_whole and self._has_currency_beside(path) else kind
        return kind

    def _has_currency_beside(self, path: str) -> bool:
        """Return True if the object that contains the param also has a param that accepts only
        currencies."""
        where = path.rpartition(".")[0]
        around = list_value_forms(self._schema, where) if where else [self._schema]
        beside = [
            list_value_forms(self._schema, f"{where}.{name}" if where else name)
            for form in around
            for name in list_properties(form)
        ]
        return any(forms and all(map(_takes_currencies, forms)) for forms in beside)


def _read_form(form: Mapping[str, Any]) -> Iterator[NamedThing]:
    """Yield what a value of this schema names according to each part of the schema."""
    if isinstance(name := form.get("format"), str):
        yield _FORMATS.get(name.lower(), NamedThing.UNKNOWN)
    if isinstance(pattern := form.get("pattern"), str) and _takes_only_words(pattern):
        yield NamedThing.UNKNOWN
    length = form.get("minLength", 0)
    if length == form.get("maxLength") and isinstance(length, int) and length >= _SHORTEST_CODE:
        yield NamedThing.UNKNOWN
    types = _read_types(form)
    if "number" in types and not {"maximum", "exclusiveMaximum"} & form.keys():
        yield NamedThing.AMOUNT
    examples = form.get("examples")
    offered = [*(examples if isinstance(examples, list) else ()), form.get("example")]
    yield from map(read_shape, (*offered, form.get("default")))
    kinds = {one.kind for one in list_contacts(str(form.get("description", "")))}
    if EMAIL in kinds:
        yield NamedThing.RECIPIENT
    if ACCOUNT in kinds:
        yield NamedThing.ACCOUNT


def _is_listed(form: Mapping[str, Any]) -> bool:
    """Return True if the schema allows only booleans, null, or values that it lists."""
    if "enum" in form or "const" in form:
        return True
    types = _read_types(form)
    return bool(types) and types <= {"boolean", "null"}


def _read_types(form: Mapping[str, Any]) -> frozenset[str]:
    named = form.get("type")
    return frozenset(map(str, [named] if isinstance(named, str) else named or ()))


def _takes_only_words(pattern: str) -> bool:
    """Return True for a pattern that matches neither sentences nor dates or times."""
    compiled = compile_linear_pattern(pattern)
    samples = (_SENTENCE, _SENTENCE.lower(), "two words", *_TIMES)
    return compiled is not None and not any(map(compiled.search, samples))


def _takes_currencies(form: Mapping[str, Any]) -> bool:
    listed = form.get("enum")
    offered = listed if isinstance(listed, list) else [form.get("const", form.get("default"))]
    texts = [each for each in offered if each is not None]
    return bool(texts) and all(map(is_currency, texts))


def _walk(params: Mapping[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    """Yield the path of each single value, the value, and whether a currency stands beside it."""
    waiting: list[tuple[str, Any, bool]] = [("", params, False)]
    while waiting:  # no recursion, because params may be nested as deeply as JSON allows
        path, node, has_currency = waiting.pop()
        if isinstance(node, Mapping):
            beside = any(map(is_currency, node.values()))
            waiting += [
                (f"{path}.{name}" if path else name, inner, beside) for name, inner in node.items()
            ]
        elif isinstance(node, list):
            waiting += [(path, entry, False) for entry in node]
        else:
            yield path, node, has_currency
