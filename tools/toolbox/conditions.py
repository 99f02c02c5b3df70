"""Conditions on params: a finer grant than a tool's name. A call that breaks one waits for a person, or never runs."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

import re2

from tools.contract import canonical_json, storable_json

LONGEST_SEARCHED = 2_000
_SHOWN = 80


class Rule(StrEnum):
    """What a value is held to."""

    EQUALS = "equals"
    ONE_OF = "one_of"
    PATTERN = "pattern"
    """The whole text matches."""
    MINIMUM = "minimum"
    MAXIMUM = "maximum"
    MAX_LENGTH = "max_length"
    """Of a text in characters, of a list in entries."""


class Otherwise(StrEnum):
    """What becomes of a call that breaks a condition."""

    ASK = "ask"
    FORBID = "forbid"


@dataclass(frozen=True)
class Condition:
    """One rule for one param.

    Attributes:
        param: its name; a dot leads into an object, and into each entry of a list: `changes.status`.
        value: what the rule compares with; a list for ONE_OF.
    """

    param: str
    rule: Rule
    value: Any
    otherwise: Otherwise = Otherwise.ASK

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> "Condition":
        """Raises ValueError, for the person who wrote it, unless it can be judged."""
        try:
            made = cls(str(kept["param"]).strip(), Rule(kept["rule"]), kept["value"], Otherwise(kept["otherwise"]))
        except KeyError as error:
            raise ValueError(f"a condition needs {error.args[0]!r}") from None
        if not made.param or made.param.startswith(".") or made.param.endswith("."):
            raise ValueError(f"{made.param!r} names no param")
        made._check_value()
        return made

    def as_json(self) -> dict[str, Any]:
        """{param, rule, value, otherwise}."""
        return {
            "param": self.param,
            "rule": self.rule.value,
            "value": self.value,
            "otherwise": self.otherwise.value,
        }

    def broken_by(self, params: Mapping[str, Any]) -> str:
        """Why the params break it, as part of a sentence; empty if they do not. What is not given breaks it."""
        for value in _values_at(params, self.param.split(".")):
            if not _HOLDS[self.rule](value, self.value):
                return f"{self.param} is {_shown(value)}, not {self._wanted()}"
        return ""

    def as_words(self) -> str:
        """E.g. `limit: at most 100; otherwise a person decides`."""
        otherwise = "a person decides" if self.otherwise is Otherwise.ASK else "it is refused"
        return f"{self.param}: {self._wanted()}; otherwise {otherwise}"

    def _wanted(self) -> str:
        words = {
            Rule.EQUALS: "{}",
            Rule.ONE_OF: "one of {}",
            Rule.PATTERN: "like {}",
            Rule.MINIMUM: "at least {}",
            Rule.MAXIMUM: "at most {}",
            Rule.MAX_LENGTH: "at most {} long",
        }
        return words[self.rule].format(_shown(self.value))

    def _check_value(self) -> None:
        value = self.value
        storable_json(value)
        if self.rule is Rule.ONE_OF and not (isinstance(value, list) and value):
            raise ValueError(f"{self.param} one of: give a list with at least one value")
        if self.rule in (Rule.MINIMUM, Rule.MAXIMUM) and not _is_number(value):
            raise ValueError(f"{self.param} {self.rule.value}: {value!r} is not a number")
        if self.rule is Rule.MAX_LENGTH and not (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
            raise ValueError(f"{self.param} max_length: {value!r} is not a whole number from 0 on")
        if self.rule is Rule.PATTERN:
            try:
                _compiled(str(value))
            except re2.error as error:
                raise ValueError(f"{self.param} pattern: {value!r} is no regular expression of RE2: {error}") from None


@dataclass(frozen=True)
class Broken:
    """The reasons of one kind for which a call may not run by itself."""

    otherwise: Otherwise
    reason: str


def first_broken(conditions: Iterable[Condition], params: Mapping[str, Any]) -> Broken | None:
    """What forbids comes before what asks; None if all hold."""
    asks: Broken | None = None
    for condition in conditions:
        reason = condition.broken_by(params)
        if reason and condition.otherwise is Otherwise.FORBID:
            return Broken(Otherwise.FORBID, reason)
        if reason and asks is None:
            asks = Broken(Otherwise.ASK, reason)
    return asks


_ABSENT = object()


def _values_at(node: Any, path: list[str]) -> Iterator[Any]:
    """Every value that the path leads to; `_ABSENT` where it leads nowhere."""
    if isinstance(node, list) and path:
        for entry in node or [_ABSENT]:
            yield from _values_at(entry, path)
    elif not path:
        yield _ABSENT if node is None else node
    elif isinstance(node, Mapping) and path[0] in node:
        yield from _values_at(node[path[0]], path[1:])
    else:
        yield _ABSENT


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    """RE2's time grows with the text alone, so that no text can hold a worker up."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def _same(value: Any, wanted: Any) -> bool:
    """Equal as JSON: true is not 1."""
    return value is not _ABSENT and canonical_json(value) == canonical_json(wanted)


def _matches(value: Any, pattern: Any) -> bool:
    return (
        isinstance(value, str)
        and len(value) <= LONGEST_SEARCHED
        and _compiled(str(pattern)).fullmatch(value) is not None
    )  # fmt: skip


_HOLDS: dict[Rule, Callable[[Any, Any], bool]] = {
    Rule.EQUALS: _same,
    Rule.ONE_OF: lambda value, wanted: any(_same(value, each) for each in wanted),
    Rule.PATTERN: _matches,
    Rule.MINIMUM: lambda value, least: _is_number(value) and value >= least,
    Rule.MAXIMUM: lambda value, most: _is_number(value) and value <= most,
    Rule.MAX_LENGTH: lambda value, most: isinstance(value, str | list) and len(value) <= most,
}


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "not given"
    text = canonical_json(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
