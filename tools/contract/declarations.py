"""Rules for a tool's attributes and for the results of its methods, taken from the contract's
annotations.

The author of a tool may give any attribute any value. Each value is checked and converted when the
tool is registered and whenever it changes later, so that pages and runs can rely on it.
"""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from tools.contract.canonical import storable_json
from tools.contract.plain_json import describe_value

NORMALIZED_ELSEWHERE = frozenset({"execute", "result"})
"""The methods whose results `tools.toolbox.outcome` normalizes."""
_CONTRACT = "tools.contract."
_OWN_CODE = "tools."
_SETTLED = "_is_settled"
_CACHED_CLASSES = 2_000


class InvalidTool(ValueError):
    """An unusable tool; the message names its class, the attribute, the value and an example."""


@dataclass(frozen=True)
class Example:
    """An example of an attribute, as Python code; part of its annotation."""

    code: str


@dataclass(frozen=True)
class ValueRule:
    """The type of an attribute or of a returned value.

    Attributes:
        example: as Python code; empty for a returned value.
    """

    type: TypeAdapter[Any]
    example: str = ""

    def convert(self, value: Any) -> Any:
        """Return the value in its declared type.

        Raises:
            ValueError: the value cannot be converted; the error says what is expected.
        """
        try:
            return self.type.validate_python(value)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            place = ".".join(
                str(part) for part in first["loc"] if not str(part).startswith("function-")
            )
            said = (
                first["msg"]
                .removeprefix("Value error, ")
                .replace("Input should be", "Expected")
                .replace("frozenset", "set")
            )
            raise ValueError(f"{place}: {said}" if place else said) from error


@dataclass(frozen=True)
class Declarations:
    """The public names of a tool's class that the contract defines, with the rule of each.

    Attributes:
        attributes: set by a class or an instance.
        computed: properties.
        returned: methods, with the rules of their results; None for a method that should return
            nothing, so that its result is dropped.
        methods: all methods, with the number of their arguments besides `self`.
    """

    attributes: Mapping[str, ValueRule]
    computed: Mapping[str, ValueRule]
    returned: Mapping[str, ValueRule | None]
    methods: Mapping[str, int]


def read_declarations(cls: type) -> Declarations:
    """Read the declarations of the contract's classes that this class inherits from."""
    return _read_contract(
        tuple(base for base in cls.__mro__ if base.__module__.startswith(_CONTRACT))
    )


@lru_cache(maxsize=_CACHED_CLASSES)
def _read_contract(bases: tuple[type, ...]) -> Declarations:
    found = Declarations({}, {}, {}, {})
    for base in reversed(bases):
        hints = get_type_hints(base, include_extras=True)
        own = {name for name in base.__annotations__ if not name.startswith("_")}
        attributes = {name: _build_rule(hints[name]) for name in hints if name in own}
        computed, returned, methods = (
            dict[str, ValueRule](),
            dict[str, ValueRule | None](),
            dict[str, int](),
        )
        for name, member in vars(base).items():
            if name.startswith("_"):
                continue
            if isinstance(member, property | cached_property):
                getter = member.fget if isinstance(member, property) else member.func
                computed[name] = _build_rule(get_type_hints(getter, include_extras=True)["return"])
            elif inspect.isfunction(member):
                methods[name] = len(inspect.signature(member).parameters) - 1
                if name not in NORMALIZED_ELSEWHERE:
                    hint = get_type_hints(member, include_extras=True)["return"]
                    returned[name] = None if hint is type(None) else _build_rule(hint)
        found = Declarations(
            {**found.attributes, **attributes},
            {**found.computed, **computed},
            {**found.returned, **returned},
            {**found.methods, **methods},
        )
    return found


def _build_rule(hint: Any) -> ValueRule:
    examples = [part.code for part in get_args(hint)[1:] if isinstance(part, Example)]
    return ValueRule(TypeAdapter(hint), examples[0] if examples else "")


class Settlement:
    """The check and conversion of everything that one tool declares.

    Attributes:
        place: the name of the part that is being read, for the error if the tool's own code fails.
    """

    def __init__(self, tool: Any) -> None:
        self._tool = tool
        self._where = name_class(tool)
        self.place = "its class"

    def settle(self) -> None:
        """Check and convert everything that the tool declares; computed values are computed once.

        Raises:
            InvalidTool: an attribute, a method or a schema is wrong.
            Exception: any exception that the tool's own code raises.
        """
        tool, cls = self._tool, type(self._tool)
        _refuse_methods(cls)  # type: ignore[arg-type] # a class is hashable
        pinned = dict[str, Any]()
        for name, rule in read_declarations(cls).attributes.items():
            value = self._read(name)
            converted = _convert(self._where, name, value, rule)
            if _is_computed(cls, name):
                pinned[name] = converted
            elif type(value) is not type(converted) or value != converted:
                tool.__dict__[name] = converted
        for name, rule in read_declarations(cls).computed.items():
            if not _find_definer(cls, name).__module__.startswith(_OWN_CODE):
                pinned[name] = _convert(self._where, name, self._read(name), rule)
        self.place = "its class"
        _pin(tool, pinned)
        self._refuse_schemas()
        hash(tool)
        tool.__dict__[_SETTLED] = True

    def _read(self, name: str) -> Any:
        self.place = name
        tool, rule = self._tool, read_declarations(type(self._tool)).attributes.get(name)
        if rule is not None and name not in tool.__dict__ and not hasattr(type(tool), name):
            raise InvalidTool(f"{self._where} has no {name}; for example: {name} = {rule.example}")
        return getattr(tool, name)

    def _refuse_schemas(self) -> None:
        """Refuse models whose JSON schemas cannot be built, stored or shown."""
        for name, built in (("Params", "schema"), ("Output", "output_schema")):
            self.place = name
            module = getattr(getattr(self._tool, name), "__module__", _OWN_CODE)
            if module.startswith(_OWN_CODE) and built == "output_schema":
                continue  # it is slow to build, and our own tools' schemas are tested
            try:
                storable_json(getattr(self._tool, built))
            except (PydanticUserError, ValueError, TypeError) as error:
                reason = str(error).partition("\n")[0]
                raise InvalidTool(f"{self._where}: {name} has no JSON schema: {reason}") from error


def settle_value(tool: Any, name: str, value: Any) -> Any:
    """Convert a new value of an attribute; before the tool is registered, return it unchanged.

    Raises:
        InvalidTool: the tool is registered, and the value is wrong.
    """
    if _SETTLED not in tool.__dict__:
        return value
    rule = read_declarations(type(tool)).attributes.get(name)
    return value if rule is None else _convert(name_class(tool), name, value, rule)


def name_class(tool: object) -> str:
    """Return the full name of the tool's class, or of the function from which it was built."""
    made_of = getattr(tool, "function", None)
    named = made_of if inspect.isfunction(made_of) else type(tool)
    return f"{named.__module__}.{named.__qualname__}"


def _convert(where: str, name: str, value: Any, rule: ValueRule) -> Any:
    try:
        return rule.convert(value)
    except ValueError as error:
        example = f"; for example: {name} = {rule.example}" if rule.example else ""
        raise InvalidTool(
            f"{where}: {name} is {describe_value(value)}. {error}{example}"
        ) from error


def _find_definer(cls: type, name: str) -> type:
    return next((base for base in cls.__mro__ if name in vars(base)), cls)


def _is_computed(cls: type, name: str) -> bool:
    """Return True if the class computes this attribute, for example by a property."""
    return hasattr(vars(_find_definer(cls, name)).get(name), "__get__")


def _pin(tool: Any, values: Mapping[str, Any]) -> None:
    """Replace these properties of the tool's class with fixed values, for this tool only."""
    if values:
        cls = type(tool)
        names = {
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
        }
        metaclass: Any = type(cls)
        tool.__class__ = metaclass(cls.__name__, (cls,), {**names, **values})


@lru_cache(maxsize=_CACHED_CLASSES)
def _refuse_methods(cls: type) -> None:
    for fault in _find_method_faults(cls):
        raise InvalidTool(f"{cls.__module__}.{cls.__qualname__}: {fault}")


def _find_method_faults(cls: type) -> Iterator[str]:
    for name, arguments in read_declarations(cls).methods.items():
        method = getattr(cls, name)
        form = f"def {name}({', '.join(['self', *_name_arguments(cls, name)])})"
        if not callable(method):
            yield f"{name} is {describe_value(method)}, not a method; for example: {form}"
            continue
        is_async = inspect.iscoroutinefunction(method) and name != "execute"
        if is_async or inspect.isasyncgenfunction(method) or inspect.isgeneratorfunction(method):
            yield f"{name} must be a plain function that returns its value; for example: {form}"
        if not _takes(cls, name, arguments):
            yield f"{name} takes other arguments; for example: {form}"


def _takes(cls: type, name: str, arguments: int) -> bool:
    static = inspect.getattr_static(cls, name)
    is_bound = isinstance(static, staticmethod | classmethod)
    try:
        signature = inspect.signature(getattr(cls, name))
    except (TypeError, ValueError):
        return True  # a callable without a signature
    try:
        signature.bind(*[None] * (arguments + (not is_bound)))
    except TypeError:
        return False
    return True


def _name_arguments(cls: type, name: str) -> list[str]:
    original = next(
        vars(base)[name]
        for base in reversed(cls.__mro__)
        if inspect.isfunction(vars(base).get(name))
    )
    return list(inspect.signature(original).parameters)[1:]
