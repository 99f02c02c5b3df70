"""Parse and render the expressions of scripted employees, in Jinja's syntax."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import ChainableUndefined, Environment, StrictUndefined, TemplateError, Undefined, nodes

from agents.providers.expression_allowance import Allowance, ExpressionError
from agents.providers.expression_evaluator import Evaluator, check_nodes
from agents.providers.expression_values import ValueOperations

_PARSER = Environment()  # noqa: S701  (it only parses; nothing is rendered as HTML)
_FAULTS = (TemplateError, TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError)


@dataclass(frozen=True)
class ExpressionScope:
    """The names and the allowance of expressions; unless strict, missing values become empty texts."""

    names: Mapping[str, Any]
    allowance: Allowance
    strict: bool = True

    def with_names(self, **names: Any) -> "ExpressionScope":
        """Return a scope with additional names."""
        return ExpressionScope({**self.names, **names}, self.allowance, self.strict)


@dataclass(frozen=True)
class _ParsedText:
    """A parsed text: its `body`, and its `expression` if it is a single expression, else None."""

    expression: nodes.Node | None
    body: list[nodes.Node]


def render(value: Any, scope: ExpressionScope) -> Any:
    """Evaluate every expression in the value; a text that is a single expression becomes its native value.

    Lists and dicts are traversed; keys are not evaluated.

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


def evaluate(text: str, scope: ExpressionScope) -> Any:
    """Evaluate a text without paying for a copy, so its value must not be shown directly."""
    if "{{" not in text and "{%" not in text and "{#" not in text:
        return text
    parsed = _parse(text)
    evaluator = Evaluator(
        scope.names, ValueOperations(scope.allowance, StrictUndefined if scope.strict else ChainableUndefined)
    )
    try:
        if parsed.expression is None:
            return evaluator.text(parsed.body)
        return _require_defined(evaluator.value(parsed.expression), scope.strict)
    except _FAULTS as error:
        raise ExpressionError(f"{error} in {_quote(text)}") from error


def is_true(condition: bool | str | None, scope: ExpressionScope) -> bool:
    """Return True if a `when` holds or is not given."""
    if condition is None or isinstance(condition, bool):
        return condition is not False
    return bool(evaluate(_wrap_condition(condition), scope))


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
    if _parse(_wrap_condition(condition)).expression is None:
        raise ExpressionError(f"a condition must be one expression, not {_quote(condition)}")


def _wrap_condition(condition: str) -> str:
    return condition if "{{" in condition or "{%" in condition else "{{ " + condition + " }}"


def _require_defined(value: Any, strict: bool) -> Any:
    if isinstance(value, Undefined):
        if strict:
            raise ExpressionError("a value is missing")
        return ""
    return value


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> _ParsedText:
    try:
        tree = _PARSER.parse(text)
        check_nodes(tree)
        return _ParsedText(_find_single_expression(_PARSER.parse(text.strip())), tree.body)
    except (TemplateError, ValueError, RecursionError) as error:
        raise ExpressionError(f"{error} in {_quote(text)}") from error


def _find_single_expression(tree: nodes.Template) -> nodes.Node | None:
    if len(tree.body) != 1 or not isinstance(tree.body[0], nodes.Output):
        return None
    parts = tree.body[0].nodes
    return parts[0] if len(parts) == 1 and not isinstance(parts[0], nodes.TemplateData) else None


def _quote(text: str) -> str:
    return repr(text if len(text) <= 120 else text[:119] + "…")
