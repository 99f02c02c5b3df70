"""Operations on the values of expressions, each paid for before it runs."""

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from jinja2 import Undefined

from agents.providers.base import CallOutcome
from agents.providers.expression_allowance import CHARACTER, MAX_BITS, STEP, Allowance, ExpressionError

MAX_RANGE = 1_000
LONGEST_NEEDLE = 1_000
"""The longest text, in characters, that may be searched for in another one."""

Operation = Callable[..., Any]
_NUMBERS: dict[str, Operation] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}
_COMPARISONS: dict[str, Operation] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gteq": operator.ge,
    "lt": operator.lt,
    "lteq": operator.le,
    "in": lambda left, right: left in right,
    "notin": lambda left, right: left not in right,
}


class ValueOperations:
    """The operations of one evaluation.

    Args:
        allowance: pays for the operations.
        undefined: the class of missing values.
    """

    def __init__(self, allowance: Allowance, undefined: type[Undefined]) -> None:
        self.allowance = allowance
        self._undefined = undefined

    def build_missing(self, name: str, owner: Any = None) -> Undefined:
        return self._undefined(name=name) if owner is None else self._undefined(obj=owner, name=name)

    def attribute(self, owner: Any, name: str) -> Any:
        """Return an attribute; keys win over dict methods: `data.items` is the field named items."""
        if isinstance(owner, Undefined):
            return getattr(owner, name)
        if isinstance(owner, dict) and name in owner:
            return owner[name]
        if isinstance(owner, CallOutcome) and name in CallOutcome.__dataclass_fields__:
            return getattr(owner, name)
        methods = TEXT_METHODS if isinstance(owner, str) else DICT_METHODS if isinstance(owner, dict) else {}
        return partial(methods[name], self, owner) if name in methods else self.build_missing(name, owner)

    def attribute_path(self, owner: Any, path: Any) -> Any:
        """Follow a path such as `data.records.0`, from a filter's `attribute=`."""
        for step in str(path).split(".") if isinstance(path, str) else [path]:
            self.allowance.spend(STEP)
            key = int(step) if isinstance(step, int) or step.isdecimal() else step
            owner = self.item(owner, key) if isinstance(key, int) else self.attribute(owner, key)
        return owner

    def item(self, owner: Any, key: Any) -> Any:
        """Return an item by its key or number, or a slice."""
        if isinstance(owner, Undefined):
            return owner[key]
        if isinstance(key, slice) and isinstance(owner, str | list | tuple | range):
            self.allowance.spend(len(owner) * (CHARACTER if isinstance(owner, str) else STEP))
            return owner[key]
        if isinstance(owner, str | list | tuple | range | dict) and isinstance(key, str | int):
            try:
                return owner[key]  # type: ignore[index]
            except (LookupError, TypeError):
                pass
        return self.build_missing(str(key) if isinstance(key, str | int) else type(key).__name__, owner)

    def items(self, value: Any) -> Sequence[Any]:
        """Return all items of a value, to loop over."""
        if isinstance(value, list | tuple | range):
            return value
        if isinstance(value, str | dict):
            self.allowance.spend(STEP * len(value))
        elif not isinstance(value, Undefined):
            raise ExpressionError(f"{type(value).__name__} is not a list")
        return list(value)

    def text(self, value: Any) -> str:
        """Return the value as text."""
        if not isinstance(value, Undefined):
            self.allowance.pay(value)
        return str(value)

    def calculate(self, sign: str, left: Any, right: Any) -> Any:
        """Calculate with two numbers, or add two texts or lists."""
        if _is_number(left) and _is_number(right):
            if sign == "**" and _estimate_power_bits(left, right) > MAX_BITS:
                raise ExpressionError("** is only allowed with small numbers")
            value = _NUMBERS[sign](left, right)
            if not _is_number(value) or (isinstance(value, int) and value.bit_length() > MAX_BITS):
                raise ExpressionError(f"the result of {sign} is too large")
            return value
        for value in (left, right):
            if isinstance(value, Undefined):
                value + 0  # raises the error that it stands for
        addable = any(isinstance(left, kind) and isinstance(right, kind) for kind in (str, list, tuple))
        if sign != "+" or not addable:
            raise ExpressionError(f"{sign} is only allowed between numbers")
        self.allowance.pay(left)
        self.allowance.pay(right)
        return left + right

    def compare(self, sign: str, left: Any, right: Any) -> bool:
        """Return True if the comparison holds."""
        self.allowance.pay_to_read(left)
        self.allowance.pay_to_read(right)
        return bool(_COMPARISONS[sign](left, right))

    def range(self, *bounds: int) -> range:
        """Return Python's range(), of at most 1,000 numbers."""
        numbers = range(*bounds)
        if len(numbers) > MAX_RANGE:
            raise ExpressionError(f"range() is limited to {MAX_RANGE} numbers")
        self.allowance.spend(STEP * len(numbers))
        return numbers


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _estimate_power_bits(base: Any, exponent: Any) -> int:
    if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1:
        return base.bit_length() * abs(exponent)
    return 0


def split(values: ValueOperations, text: str, separator: str | None = None, most: int = -1) -> list[str]:
    """Split a text into parts."""
    needle = None if separator is None else check_needle(separator)
    parts = text.count(needle) if needle else len(text) // 2
    values.allowance.spend(CHARACTER * len(text) + STEP * (parts + 2))
    return text.split(needle, most)


def replace(values: ValueOperations, text: str, old: str, new: str) -> str:
    """Replace every `old` in the text."""
    values.allowance.spend(len(text))
    values.allowance.spend(CHARACTER * (len(text) + text.count(check_needle(old)) * len(new)))
    return text.replace(old, new)


def check_needle(needle: str) -> str:
    """Return the text; raise ExpressionError if it is too long for a quick search."""
    if len(needle) > LONGEST_NEEDLE:
        raise ExpressionError(f"a text to search for has more than {LONGEST_NEEDLE} characters")
    return needle


def _build_text_operation(method: Callable[..., Any]) -> Operation:
    """Build an operation from a str method whose result is about as long as its text."""

    def call(values: ValueOperations, text: str, *needles: str) -> Any:
        values.allowance.spend(2 * CHARACTER * len(text))
        return method(text, *map(check_needle, needles))

    return call


def _get(_: ValueOperations, owner: dict[str, Any], key: str, default: Any = None) -> Any:
    return owner.get(key, default)


def _build_list_operation(method: Callable[[dict[str, Any]], Any]) -> Operation:
    def call(values: ValueOperations, owner: dict[str, Any]) -> list[Any]:
        values.allowance.spend(2 * STEP * len(owner))
        return list(method(owner))

    return call


TEXT_METHODS: dict[str, Operation] = {
    **{
        name: _build_text_operation(getattr(str, name))
        for name in (
            *("upper", "lower", "title", "capitalize", "strip", "lstrip", "rstrip", "removeprefix", "removesuffix"),
            *("startswith", "endswith", "find", "count", "isdigit", "isalpha", "isupper", "islower", "partition"),
        )
    },
    "split": split,
}
DICT_METHODS: dict[str, Operation] = {
    "get": _get,
    "items": _build_list_operation(dict.items),
    "keys": _build_list_operation(dict.keys),
    "values": _build_list_operation(dict.values),
}
