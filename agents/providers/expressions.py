"""Reads and renders the `{{ }}` of scripted employees, in the syntax of Jinja."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import ChainableUndefined, Environment, StrictUndefined, TemplateError, Undefined, nodes

from agents.providers.allowance import Allowance, ExpressionError
from agents.providers.evaluator import Evaluator, check_nodes
from agents.providers.values import Values

_PARSER = Environment()  # noqa: S701  (it only parses; nothing is rendered as HTML)
_FAULTS = (TemplateError, TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError)


@dataclass(frozen=True)
class Scope:
    """The names and the allowance of expressions; unless strict, missing values become empty texts."""

    names: Mapping[str, Any]
    allowance: Allowance
    strict: bool = True

    def with_names(self, **names: Any) -> "Scope":
        return Scope({**self.names, **names}, self.allowance, self.strict)


@dataclass(frozen=True)
class _Parsed:
    """A parsed text: its `body`, and its `expression` if it is one whole expression, else None."""

    expression: nodes.Node | None
    body: list[nodes.Node]


def render(value: Any, scope: Scope) -> Any:
    """Evaluate every expression in the value; one whole `{{ expression }}` gives its native value.

    Lists and dicts are traversed; keys stay.

    Raises:
        ExpressionError: something is wrong or missing, or the allowance is used up.
    """
    if isinstance(value, str):
        rendered = evaluate(value, scope)
        scope.allowance.pay(rendered)
        return rendered
    if isinstance(value, list | tuple):
        return [render(item, scope) for item in value]
    if isinstance(value, dict):
        return {key: render(item, scope) for key, item in value.items()}
    return value


def evaluate(text: str, scope: Scope) -> Any:
    """Evaluate one text; unlike `render` it pays for no copy, so the value must not be shown directly."""
    if "{{" not in text and "{%" not in text and "{#" not in text:
        return text
    parsed = _parse(text)
    evaluator = Evaluator(scope.names, Values(scope.allowance, StrictUndefined if scope.strict else ChainableUndefined))
    try:
        if parsed.expression is None:
            return evaluator.text(parsed.body)
        return _defined(evaluator.value(parsed.expression), scope.strict)
    except _FAULTS as error:
        raise ExpressionError(f"{error} in {_brief(text)}") from error


def is_true(condition: bool | str | None, scope: Scope) -> bool:
    """Return True if a `when` holds or is not given."""
    if condition is None or isinstance(condition, bool):
        return condition is not False
    return bool(evaluate(_as_expression(condition), scope))


def check_values(value: Any) -> None:
    """Raise ExpressionError for a syntax error anywhere in the value."""
    if isinstance(value, str):
        _parse(value)
    elif isinstance(value, list | tuple):
        for item in value:
            check_values(item)
    elif isinstance(value, dict):
        for item in value.values():
            check_values(item)


def check_expression(condition: str) -> None:
    """Raise ExpressionError unless the condition is one expression, with or without its braces."""
    if _parse(_as_expression(condition)).expression is None:
        raise ExpressionError(f"a condition must be one expression, not {_brief(condition)}")


def _as_expression(condition: str) -> str:
    return condition if "{{" in condition or "{%" in condition else "{{ " + condition + " }}"


def _defined(value: Any, strict: bool) -> Any:
    if isinstance(value, Undefined):
        if strict:
            raise ExpressionError("something is not there")
        return ""
    return value


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> _Parsed:
    try:
        tree = _PARSER.parse(text)
        check_nodes(tree)
        return _Parsed(_whole_expression(_PARSER.parse(text.strip())), tree.body)
    except (TemplateError, ValueError, RecursionError) as error:
        raise ExpressionError(f"{error} in {_brief(text)}") from error


def _whole_expression(tree: nodes.Template) -> nodes.Node | None:
    if len(tree.body) != 1 or not isinstance(tree.body[0], nodes.Output):
        return None
    parts = tree.body[0].nodes
    return parts[0] if len(parts) == 1 and not isinstance(parts[0], nodes.TemplateData) else None


def _brief(text: str) -> str:
    return repr(text if len(text) <= 120 else text[:119] + "…")
