"""Evaluate the expressions of scripted employees in Jinja's sandbox."""

import functools
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from dataclasses import dataclass
from typing import Any

from jinja2 import ChainableUndefined, StrictUndefined, TemplateError, Undefined, nodes
from jinja2.environment import TemplateExpression
from jinja2.sandbox import ImmutableSandboxedEnvironment


class ExpressionError(ValueError):
    """An expression cannot be parsed or evaluated; the error quotes it."""


class _Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox with one change: a key of a dict takes precedence over a method, so that
    `data.items` is the field named items."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        is_key = isinstance(obj, dict) and attribute in obj
        return obj[attribute] if is_key else super().getattr(obj, attribute)


_STRICT = _Sandbox(undefined=StrictUndefined)
_LENIENT = _Sandbox(undefined=ChainableUndefined)
_FAULTS = (
    *(TemplateError, TypeError, ValueError, LookupError, ArithmeticError),
    *(AttributeError, RecursionError),
)


@dataclass(frozen=True)
class ExpressionScope:
    """The names that expressions can use. A missing name is an error if `strict` is True;
    otherwise, it is an empty text."""

    names: Mapping[str, Any]
    strict: bool = True

    def with_names(self, **names: Any) -> "ExpressionScope":
        """Return a copy of the scope with additional names."""
        return ExpressionScope({**self.names, **names}, self.strict)


def render(value: Any, scope: ExpressionScope) -> Any:
    """Evaluate every expression in a value. If a text consists of a single expression, it becomes
    that expression's value.

    Lists and dicts are traversed, but keys are not evaluated.

    Raises:
        ExpressionError: an expression fails, or uses a missing name of a strict scope.
    """
    if isinstance(value, str):
        return _evaluate(value, scope)
    if isinstance(value, list | tuple):
        return [render(item, scope) for item in value]
    if isinstance(value, dict):
        return {key: render(item, scope) for key, item in value.items()}
    return value


def is_true(condition: bool | str | None, scope: ExpressionScope) -> bool:
    """Return True if the condition of a `when` is met, or if there is no condition."""
    if condition is None or isinstance(condition, bool):
        return condition is not False
    return bool(_evaluate(_wrap_condition(condition), scope))


def check_values(value: Any) -> None:
    """Raise ExpressionError for a syntax error anywhere in the value."""
    if isinstance(value, str):
        _compile(value, _STRICT)
    elif isinstance(value, list | tuple):
        for item in value:
            check_values(item)
    elif isinstance(value, dict):
        for item in value.values():
            check_values(item)


def check_expression(condition: str) -> None:
    """Raise ExpressionError unless the condition is one expression, with or without its braces."""
    if not isinstance(_compile(_wrap_condition(condition), _STRICT), TemplateExpression):
        raise ExpressionError(f"a condition must be one expression, not {_quote(condition)}")


def _wrap_condition(condition: str) -> str:
    has_braces = "{{" in condition or "{%" in condition
    return condition if has_braces else "{{ " + condition + " }}"


def _evaluate(text: str, scope: ExpressionScope) -> Any:
    if "{{" not in text and "{%" not in text and "{#" not in text:
        return text
    evaluate = _compile(text, _STRICT if scope.strict else _LENIENT)
    try:
        value = evaluate(scope.names)
        if isinstance(value, Iterator | ItemsView | KeysView | ValuesView):
            return list(value)  # filters such as map return iterators
        return str(value) if isinstance(value, Undefined) else value  # in strict mode, `str` raises
    except _FAULTS as error:
        raise ExpressionError(f"{error} in {_quote(text)}") from error


@functools.lru_cache(maxsize=4096)
def _compile(text: str, sandbox: _Sandbox) -> Callable[[Mapping[str, Any]], Any]:
    """Compile a text to a function. The function of a single expression returns the expression's
    value; that of any other text returns a text."""
    try:
        expression = _find_single_expression(sandbox.parse(text.strip()))
        if expression is None:
            return sandbox.from_string(text).render
        result = nodes.Assign(nodes.Name("result", "store"), expression, lineno=1)
        template = sandbox.from_string(nodes.Template([result], lineno=1))
        return TemplateExpression(template, undefined_to_none=False)
    except (TemplateError, ValueError, RecursionError) as error:
        raise ExpressionError(f"{error} in {_quote(text)}") from error


def _find_single_expression(tree: nodes.Template) -> nodes.Node | None:
    if len(tree.body) != 1 or not isinstance(tree.body[0], nodes.Output):
        return None
    parts = tree.body[0].nodes
    return parts[0] if len(parts) == 1 and not isinstance(parts[0], nodes.TemplateData) else None


def _quote(text: str) -> str:
    return repr(text if len(text) <= 120 else text[:119] + "…")
