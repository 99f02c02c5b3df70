"""Conditions on params that limit a grant: a call that breaks one waits for a person, or never runs."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

import re2

from tools.contract import canonical_json, storable_json
from tools.toolbox.provenance import Provenance

LONGEST_SEARCHED = 2_000
_MAX_SHOWN = 80


class Rule(StrEnum):
    """The comparison of a condition."""

    EQUALS = "equals"
    ONE_OF = "one_of"
    PATTERN = "pattern"
    """The pattern matches the whole text."""
    MINIMUM = "minimum"
    MAXIMUM = "maximum"
    MAX_LENGTH = "max_length"
    """Characters of a text, or entries of a list."""
    NOT_FROM_OUTSIDE = "not_from_outside"
    """No value in the param was first seen in a result from outside; the value of the condition is True."""


class Otherwise(StrEnum):
    """The consequence of breaking a condition."""

    ASK = "ask"
    FORBID = "forbid"


@dataclass(frozen=True)
class Condition:
    """One rule for one param.

    Attributes:
        param: the param's name; a dot leads into an object, and into each entry of a list: `changes.status`.
        value: the value to compare with; a list for ONE_OF.
    """

    param: str
    rule: Rule
    value: Any
    otherwise: Otherwise = Otherwise.ASK

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Condition":
        """Load and check a condition.

        Raises:
            ValueError: the condition is invalid; the text is for the person who wrote it.
        """
        try:
            condition = cls(
                str(stored["param"]).strip(), Rule(stored["rule"]), stored["value"], Otherwise(stored["otherwise"])
            )
        except KeyError as error:
            raise ValueError(f"a condition needs {error.args[0]!r}") from None
        if not condition.param or condition.param.startswith(".") or condition.param.endswith("."):
            raise ValueError(f"{condition.param!r} is not the name of a param")
        condition._check_value()
        return condition

    def as_json(self) -> dict[str, Any]:
        """Return {param, rule, value, otherwise}."""
        return {
            "param": self.param,
            "rule": self.rule.value,
            "value": self.value,
            "otherwise": self.otherwise.value,
        }

    def explain_violation(self, params: Mapping[str, Any], provenance: Provenance | None = None) -> str:
        """Explain how the params break the condition; empty if they do not.

        A missing param breaks it, except for NOT_FROM_OUTSIDE, which is broken where the provenance is not known.
        """
        if self.rule is Rule.NOT_FROM_OUTSIDE:
            return _explain_origin(self.param, provenance)
        for value in _find_values(params, self.param.split(".")):
            if not _HOLDS[self.rule](value, self.value):
                return f"{self.param} is {_format_value(value)}, but must be {self._describe_rule()}"
        return ""

    def describe(self) -> str:
        """Describe the condition, e.g. `limit: at most 100; otherwise a person decides`."""
        otherwise = "a person decides" if self.otherwise is Otherwise.ASK else "it is refused"
        return f"{self.param}: {self._describe_rule()}; otherwise {otherwise}"

    def _describe_rule(self) -> str:
        words = {
            Rule.EQUALS: "{}",
            Rule.ONE_OF: "one of {}",
            Rule.PATTERN: "like {}",
            Rule.MINIMUM: "at least {}",
            Rule.MAXIMUM: "at most {}",
            Rule.MAX_LENGTH: "at most {} characters or entries",
            Rule.NOT_FROM_OUTSIDE: "not from outside",
        }
        return words[self.rule].format(_format_value(self.value))

    def _check_value(self) -> None:
        value = self.value
        storable_json(value)
        if self.rule is Rule.ONE_OF and not (isinstance(value, list) and value):
            raise ValueError(f"{self.param} one of: give a list with at least one value")
        if self.rule in (Rule.MINIMUM, Rule.MAXIMUM) and not _is_number(value):
            raise ValueError(f"{self.param} {self.rule.value}: {value!r} is not a number")
        if self.rule is Rule.MAX_LENGTH and not (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
            raise ValueError(f"{self.param} max_length: {value!r} is not a whole number of 0 or more")
        if self.rule is Rule.NOT_FROM_OUTSIDE and value is not True:
            raise ValueError(f"{self.param} not_from_outside takes no value")
        if self.rule is Rule.PATTERN:
            try:
                _compile(str(value))
            except re2.error as error:
                raise ValueError(
                    f"{self.param} pattern: {value!r} is not a valid RE2 regular expression: {error}"
                ) from None


@dataclass(frozen=True)
class BrokenCondition:
    """A condition that a call breaks: the consequence and the reason."""

    otherwise: Otherwise
    reason: str


def find_broken_condition(
    conditions: Iterable[Condition], params: Mapping[str, Any], provenance: Provenance | None = None
) -> BrokenCondition | None:
    """Return the first broken condition that forbids, else the first that asks; None if all hold."""
    asks: BrokenCondition | None = None
    for condition in conditions:
        reason = condition.explain_violation(params, provenance)
        if reason and condition.otherwise is Otherwise.FORBID:
            return BrokenCondition(Otherwise.FORBID, reason)
        if reason and asks is None:
            asks = BrokenCondition(Otherwise.ASK, reason)
    return asks


def _explain_origin(param: str, provenance: Provenance | None) -> str:
    if provenance is None:
        return f"{param} is of unknown origin, but must not come from outside"
    found = provenance.find_outside(param)
    if found is not None:
        seen = f" was first seen in {found.title}" if found.title else ""
        return f"{param} comes from outside: {_format_value(found.value)}{seen}"
    is_unknown = provenance.unsearched or provenance.is_partial
    return f"{param} is of unknown origin: there are too many values or results to search" if is_unknown else ""


_ABSENT = object()


def _find_values(node: Any, path: list[str]) -> Iterator[Any]:
    """Yield every value at the path, and `_ABSENT` where there is none."""
    if isinstance(node, list) and path:
        for entry in node or [_ABSENT]:
            yield from _find_values(entry, path)
    elif not path:
        yield _ABSENT if node is None else node
    elif isinstance(node, Mapping) and path[0] in node:
        yield from _find_values(node[path[0]], path[1:])
    else:
        yield _ABSENT


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@lru_cache(maxsize=256)
def _compile(pattern: str) -> Any:
    """Compile for RE2, which takes linear time, so that no text can block a worker."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def _is_same(value: Any, expected: Any) -> bool:
    """Return True if both are equal as JSON, where true is not 1."""
    return value is not _ABSENT and canonical_json(value) == canonical_json(expected)


def _matches(value: Any, pattern: Any) -> bool:
    return (
        isinstance(value, str)
        and len(value) <= LONGEST_SEARCHED
        and _compile(str(pattern)).fullmatch(value) is not None
    )  # fmt: skip


_HOLDS: dict[Rule, Callable[[Any, Any], bool]] = {
    Rule.EQUALS: _is_same,
    Rule.ONE_OF: lambda value, expected: any(_is_same(value, each) for each in expected),
    Rule.PATTERN: _matches,
    Rule.MINIMUM: lambda value, least: _is_number(value) and value >= least,
    Rule.MAXIMUM: lambda value, most: _is_number(value) and value <= most,
    Rule.MAX_LENGTH: lambda value, most: isinstance(value, str | list) and len(value) <= most,
}


def _format_value(value: Any) -> str:
    if value is _ABSENT:
        return "missing"
    text = canonical_json(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
