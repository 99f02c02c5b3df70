"""Evaluates the `{{ }}` of scripted employees in a sandbox that cannot reach Python's insides or run for long."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import ChainableUndefined, StrictUndefined, TemplateError, Undefined, nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_RANGE = 1_000
MAX_RANGE_TOTAL = 20_000
MAX_TEXT = 100_000
_PADDING_METHODS = frozenset(
    {"center", "ljust", "rjust", "zfill", "expandtabs", "format", "format_map", "replace", "join"}
)
_PADDING_FILTERS = (
    "attr",
    "batch",
    "center",
    "format",
    "indent",
    "pprint",
    "replace",
    "slice",
    "tojson",
    "urlize",
    "wordwrap",
)


class ExpressionError(ValueError):
    """An expression that cannot be read or evaluated; the text quotes it."""


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(self, undefined: type[Undefined]) -> None:
        super().__init__(undefined=undefined)
        for name in _PADDING_FILTERS:
            self.filters.pop(name, None)
        for name in ("range", "lipsum", "cycler", "joiner"):
            self.globals.pop(name, None)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if not (isinstance(left, int | float) and isinstance(right, int | float)):
            raise ExpressionError(f"{operator} is only allowed between numbers")
        if operator == "**" and (abs(right) > 64 or abs(left) > 1_000_000):
            raise ExpressionError("** is only allowed with small numbers")
        return super().call_binop(context, operator, left, right)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A key of a result comes before a method of dict: `data.items` is the field named items."""
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        if _would_pad(obj, attribute):
            return self.unsafe_undefined(obj, attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if _would_pad(obj, argument):
            return self.unsafe_undefined(obj, argument)
        return super().getitem(obj, argument)


def _would_pad(obj: Any, attribute: Any) -> bool:
    """Whether this method could make a text of any length out of a small number."""
    return isinstance(obj, str) and attribute in _PADDING_METHODS


_STRICT = _Sandbox(StrictUndefined)
_LENIENT = _Sandbox(ChainableUndefined)


class _RangeBudget:
    """range() that is counted over one evaluation, so that nested loops end soon."""

    def __init__(self) -> None:
        self._left = MAX_RANGE_TOTAL

    def __call__(self, *bounds: int) -> range:
        numbers = range(*bounds)
        self._left -= len(numbers)
        if len(numbers) > MAX_RANGE or self._left < 0:
            raise ExpressionError(f"range() is limited to {MAX_RANGE} numbers, {MAX_RANGE_TOTAL} in one expression")
        return numbers


@dataclass(frozen=True)
class _Compiled:
    """`evaluate` for a text that is one whole expression, else `pieces`, which yields the parts of the text."""

    evaluate: Callable[..., Any] | None
    pieces: Callable[..., Any]


def render(value: Any, names: Mapping[str, Any], *, strict: bool = True) -> Any:
    """The value with every expression in it evaluated; one whole `{{ expression }}` gives its native value.

    Lists and dicts are gone through, keys stay. Raises ExpressionError; not strict: what is missing becomes "".
    """
    if isinstance(value, str):
        return _render_text(value, names, strict)
    if isinstance(value, list | tuple):
        return [render(item, names, strict=strict) for item in value]
    if isinstance(value, dict):
        return {key: render(item, names, strict=strict) for key, item in value.items()}
    return value


def is_true(condition: bool | str | None, names: Mapping[str, Any]) -> bool:
    """Whether a `when` holds; one that is not given does."""
    if condition is None or isinstance(condition, bool):
        return condition is not False
    return bool(render(_as_expression(condition), names))


def check_values(value: Any) -> None:
    """Raises ExpressionError for a syntax error anywhere in the value."""
    if isinstance(value, str):
        _compiled(value, strict=True)
    elif isinstance(value, list | tuple):
        for item in value:
            check_values(item)
    elif isinstance(value, dict):
        for item in value.values():
            check_values(item)


def check_expression(condition: str) -> None:
    """Raises ExpressionError unless the condition is one expression, with or without its braces."""
    if _compiled(_as_expression(condition), strict=True).evaluate is None:
        raise ExpressionError(f"a condition must be one expression, not {_brief(condition)}")


def _as_expression(condition: str) -> str:
    return condition if "{{" in condition or "{%" in condition else "{{ " + condition + " }}"


def _render_text(text: str, names: Mapping[str, Any], strict: bool) -> Any:
    if "{{" not in text and "{%" not in text and "{#" not in text:
        return text
    compiled = _compiled(text, strict=strict)
    context = {**names, "range": _RangeBudget()}
    try:
        if compiled.evaluate is not None:
            return _defined(compiled.evaluate(context), strict)
        return _joined(compiled.pieces(context))
    except ExpressionError as error:
        raise ExpressionError(f"{error} in {_brief(text)}") from error
    except (
        TemplateError,
        TypeError,
        ValueError,
        LookupError,
        ArithmeticError,
        AttributeError,
        RecursionError,
    ) as error:
        raise ExpressionError(f"{error} in {_brief(text)}") from error


def _defined(value: Any, strict: bool) -> Any:
    if isinstance(value, Undefined):
        if strict:
            raise ExpressionError("something is not there")
        return ""
    return value


def _joined(pieces: Any) -> str:
    parts, length = [], 0
    for piece in pieces:
        length += len(piece)
        if length > MAX_TEXT:
            raise ExpressionError(f"the text is longer than {MAX_TEXT} characters")
        parts.append(piece)
    return "".join(parts)


@functools.lru_cache(maxsize=4096)
def _compiled(text: str, *, strict: bool) -> _Compiled:
    environment = _STRICT if strict else _LENIENT
    try:
        tree = environment.parse(text.strip())
        evaluate = None
        if _is_one_expression(tree):
            evaluate = environment.compile_expression(_inner(text), undefined_to_none=False)
        return _Compiled(evaluate=evaluate, pieces=environment.from_string(text).generate)
    except (TemplateError, RecursionError) as error:
        raise ExpressionError(f"{error} in {_brief(text)}") from error


def _inner(text: str) -> str:
    """What stands between the braces, without the marks that trim blanks."""
    inner = text.strip()[2:-2]
    inner = inner[1:] if inner[:1] in ("-", "+") else inner
    return inner[:-1] if inner[-1:] in ("-", "+") else inner


def _is_one_expression(tree: nodes.Template) -> bool:
    if len(tree.body) != 1 or not isinstance(tree.body[0], nodes.Output):
        return False
    parts = tree.body[0].nodes
    return len(parts) == 1 and not isinstance(parts[0], nodes.TemplateData)


def _brief(text: str) -> str:
    return repr(text if len(text) <= 120 else text[:119] + "…")
