"""Conditions on a grant's params: a call that breaks a condition waits for a person, or
never runs."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import re2

from tools.contract import canonical_json, find_named_hosts, storable_json
from tools.toolbox.history import After, Period, StoredHistory, ToolHistory
from tools.toolbox.objections import Objection
from tools.toolbox.param_values import (
    ABSENT,
    UNCOUNTABLE,
    add_amounts,
    find_values,
    format_number,
    is_amount,
    is_number,
)
from tools.toolbox.provenance import Provenance
from tools.toolbox.value_readings import TODAY, Reading, starts_surely

LONGEST_SEARCHED = 2_000
MOST_CALLS = 1_000_000
_MAX_SHOWN = 80
_UNKNOWN_HISTORY = "the earlier calls are not known here"


class Rule(StrEnum):
    """The comparison that a condition makes."""

    EQUALS = "equals"
    ONE_OF = "one_of"
    PATTERN = "pattern"
    """The pattern matches the whole text."""
    MINIMUM = "minimum"
    MAXIMUM = "maximum"
    MAX_LENGTH = "max_length"
    """A text has at most this many characters, or a list this many entries."""
    PREFIX = "prefix"
    """The text starts with the value and contains no `..` path segment, even in encoded form."""
    HOST = "host"
    """The text is an address, an email address or a host, and names this one host only."""
    NOT_FROM_OUTSIDE = "not_from_outside"
    """No value in the param was first seen in an outside result; the condition's value is True."""
    CALL_COUNT = "call_count"
    """{most, period}: the employee calls the tool at most this often; `param` is empty."""
    SUM = "sum"
    """{most, period}: the param's numbers add up to at most this much, including this call."""
    ONLY_AFTER = "only_after"
    """{tool, param}: a call of this tool with the same value in this param has succeeded in this
    run."""
    COMES_FROM = "comes_from"
    """{sources, also}: see `tools.toolbox.grant_sources`, also for the next two."""
    TYPED = "typed"
    EACH = "each"


COUNTED = frozenset({Rule.CALL_COUNT, Rule.SUM})
"""Rules that count calls; two calls at the same time could both pass although only one may."""
OF_GRANTS = frozenset({Rule.COMES_FROM, Rule.TYPED, Rule.EACH})
"""Rules that only standing grants may have."""
OVER_HISTORY = COUNTED | {Rule.ONLY_AFTER}
"""Rules that depend on the earlier calls."""


class Otherwise(StrEnum):
    """The consequence of breaking a condition."""

    ASK = "ask"
    FORBID = "forbid"


@dataclass(frozen=True)
class Condition:
    """One rule for one param.

    Attributes:
        param: the param's name; a dot leads into an object, and into each entry of a list:
            `changes.status`.
        value: the value to compare with; a list for ONE_OF, and an object for the rules over
            history.
        reading: the version of the rules for reading values; stored with the recording, not with
            the condition.
    """

    param: str
    rule: Rule
    value: Any
    otherwise: Otherwise = Otherwise.ASK
    reading: Reading = TODAY

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], reading: Reading = TODAY) -> "Condition":
        """Load and check a condition.

        Raises:
            ValueError: the condition is invalid; the text is for the person who wrote it.
        """
        try:
            condition = cls(
                str(stored["param"]).strip(),
                Rule(stored["rule"]),
                stored["value"],
                Otherwise(stored["otherwise"]),
                reading,
            )
        except KeyError as error:
            raise ValueError(f"a condition needs {error.args[0]!r}") from None
        except TypeError:
            raise ValueError("a condition is an object with a param, a rule and a value") from None
        if condition.rule in OF_GRANTS:
            raise ValueError(f"only a standing grant can have the rule {condition.rule.value!r}")
        condition._check_param()
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

    def find_violation(
        self,
        params: Mapping[str, Any],
        provenance: Provenance | None = None,
        history: ToolHistory | None = None,
    ) -> Objection | None:
        """Describe how the call breaks the condition; None if it does not break it.

        A missing param breaks the condition, except for NOT_FROM_OUTSIDE. An unknown origin or
        history breaks it too, if the condition needs one.
        """
        if self.rule in OF_GRANTS:
            return Objection(f"only a standing grant can judge {self.param}")
        if self.rule in OVER_HISTORY:
            return self._find_excess(params, history)
        if self.rule is Rule.NOT_FROM_OUTSIDE:
            return _find_doubtful_origin(self.param, provenance, self.reading)
        for value in self._find_values(params):
            if not self._holds(value):
                return Objection(
                    f"{self.param} is {format_value(value)}, but must be {self.describe_rule()}"
                )
        return None

    def describe_state(self, params: Mapping[str, Any], history: ToolHistory) -> str:
        """Describe how much of a period's limit is used: `14 of 20 this hour with this call`."""
        period, most = Period(self.value["period"]), format_number(self.value["most"])
        if self.rule is Rule.CALL_COUNT:
            return f"{history.count(period) + 1:,} of {most} {period.words} with this call"
        total = self._add_up(params, history)
        if total == UNCOUNTABLE:
            return f"an earlier {self.param} {period.words} is not a number, so the sum is unknown"
        return f"sum of {self.param} {format_number(total)} of {most} {period.words} with this call"

    def describe(self) -> str:
        """Describe the condition: `limit must be at most 100; otherwise a person decides.`"""
        otherwise = "a person decides" if self.otherwise is Otherwise.ASK else "it is refused"
        return f"{self._describe_demand()}; otherwise {otherwise}."

    def describe_match(self) -> str:
        """Describe the met condition, e.g. `limit is at most 100`; not for rules over history."""
        return f"{self.param} is {self.describe_rule()}"

    def _describe_demand(self) -> str:
        if self.rule is Rule.CALL_COUNT:
            calls = "call" if self.value["most"] == 1 else "calls"
            return f"At most {format_number(self.value['most'])} {calls} per {self.value['period']}"
        if self.rule is Rule.SUM:
            most = format_number(self.value["most"])
            return f"The sum of {self.param} must be at most {most} per {self.value['period']}"
        if self.rule is Rule.ONLY_AFTER:
            tool, param = self.value["tool"], self.value["param"]
            same = f"the same {param}" if param == self.param else f"{param} equal to {self.param}"
            return f"Only after {tool} with {same} in this run"
        if self.rule is Rule.NOT_FROM_OUTSIDE:
            return f"{self.param} must not come from outside"
        return f"{self.param} must be {self.describe_rule()}"

    def _find_excess(
        self, params: Mapping[str, Any], history: ToolHistory | None
    ) -> Objection | None:
        if history is None:
            return Objection(_UNKNOWN_HISTORY)
        if self.rule is Rule.ONLY_AFTER:
            return self._find_missing_call(params, history)
        if self.rule is Rule.CALL_COUNT:
            is_over = history.count(Period(self.value["period"])) + 1 > self.value["most"]
        else:
            for value in self._find_values(params):
                if not is_amount(value):
                    return Objection(
                        f"{self.param} is {format_value(value)}, but must be a number of 0 or more"
                    )
            total = self._add_up(params, history)
            if total == UNCOUNTABLE:
                return Objection(self.describe_state(params, history))
            is_over = total > Decimal(repr(self.value["most"]))
        return (
            Objection(f"limit reached, {self.describe_state(params, history)}") if is_over else None
        )

    def _find_missing_call(
        self, params: Mapping[str, Any], history: ToolHistory
    ) -> Objection | None:
        values = self._find_values(params)
        if any(value is ABSENT for value in values):
            return Objection(f"{self.param} is missing")
        tool, param = self.value["tool"], self.value["param"]
        unseen = history.find_unseen(After(tool, param, self.param), values)
        if unseen is None:
            return None
        value = format_value(values[unseen])
        return Objection(
            f"{self.param} is {value}, but {tool} has not succeeded with {param} {value} in this run"
        )

    def _add_up(self, params: Mapping[str, Any], history: ToolHistory) -> Decimal:
        earlier = history.total(self.param, Period(self.value["period"]))
        return earlier + add_amounts(self._find_values(params))

    def _holds(self, value: Any) -> bool:
        if self.rule is Rule.PREFIX and self.reading is not Reading.FIRST:
            return starts_surely(value, self.value, self.param)
        return _HOLDS[self.rule](value, self.value)

    def _find_values(self, params: Mapping[str, Any]) -> list[Any]:
        is_folded = self.reading is not Reading.FIRST
        return list(find_values(params, self.param.split("."), is_folded=is_folded))

    def describe_rule(self) -> str:
        """Describe the comparison and its value: `at least 100`."""
        words = {
            Rule.EQUALS: "{}",
            Rule.ONE_OF: "one of {}",
            Rule.PATTERN: "like {}",
            Rule.MINIMUM: "at least {}",
            Rule.MAXIMUM: "at most {}",
            Rule.MAX_LENGTH: "at most {} characters or entries",
            Rule.PREFIX: "a text that starts with {}",
            Rule.HOST: "an address at {}",
        }
        return words[self.rule].format(format_value(self.value))

    def _check_param(self) -> None:
        if self.rule is Rule.CALL_COUNT and self.param:
            raise ValueError(
                f"{self.rule.value} counts calls and takes no parameter, but got {self.param!r}"
            )
        if self.rule is not Rule.CALL_COUNT and not _is_path(self.param):
            raise ValueError(f"{self.param!r} is not the name of a parameter")

    def _check_value(self) -> None:
        value = self.value
        storable_json(value)
        if self.rule in COUNTED:
            self._check_bound()
        if self.rule is Rule.ONLY_AFTER and not _names_call(value):
            raise ValueError(f"{self.param} only_after: name the tool and its param, not {value!r}")
        if self.rule is Rule.ONE_OF and not (isinstance(value, list) and value):
            raise ValueError(f"{self.param} one of: give a list with at least one value")
        if self.rule in (Rule.MINIMUM, Rule.MAXIMUM) and not is_number(value):
            raise ValueError(f"{self.param} {self.rule.value}: {value!r} is not a number")
        if self.rule is Rule.MAX_LENGTH and not (
            isinstance(value, int) and not isinstance(value, bool) and value >= 0
        ):
            raise ValueError(
                f"{self.param} max_length: {value!r} is not a whole number of 0 or more"
            )
        if self.rule in (Rule.PREFIX, Rule.HOST) and not (isinstance(value, str) and value.strip()):
            raise ValueError(f"{self.param} {self.rule.value}: give a text")
        if self.rule is Rule.NOT_FROM_OUTSIDE and value is not True:
            raise ValueError(f"{self.param} not_from_outside takes no value")
        if self.rule is Rule.PATTERN:
            try:
                _compile(str(value))
            except re2.error as error:
                why = (
                    error.args[0].decode(errors="replace")
                    if isinstance(error.args[0], bytes)
                    else error
                )
                raise ValueError(
                    f"{self.param} pattern: {value!r} is not a valid RE2 regular expression: {why}"
                ) from None

    def _check_bound(self) -> None:
        """Check the number and the period of a counting rule."""
        where, value = f"{self.param} {self.rule.value}".strip(), self.value
        if not isinstance(value, dict) or value.keys() != {"most", "period"}:
            raise ValueError(f"{where}: give a number and a period, not {value!r}")
        if value["period"] not in tuple(Period):
            raise ValueError(
                f"{where}: {value['period']!r} is not a period; use one of {', '.join(Period)}"
            )
        most = value["most"]
        if self.rule is Rule.SUM and not is_amount(most):
            raise ValueError(f"{where}: {most!r} is not a number of 0 or more")
        is_count = isinstance(most, int) and not isinstance(most, bool) and 1 <= most <= MOST_CALLS
        if self.rule is Rule.CALL_COUNT and not is_count:
            raise ValueError(f"{where}: {most!r} is not a whole number from 1 to {MOST_CALLS:,}")


@dataclass(frozen=True)
class BrokenCondition:
    """A condition that a call breaks: the consequence, the reason, its param and its rule."""

    otherwise: Otherwise
    reason: str
    param: str
    rule: Rule


def find_broken_conditions(
    conditions: Iterable[Condition],
    params: Mapping[str, Any],
    provenance: Provenance | None = None,
    history: ToolHistory | None = None,
) -> list[BrokenCondition]:
    """Return the first broken condition that forbids the call. If none does, return the first
    broken condition and all other broken conditions over history.

    A person who approves a call over a limit has to see every limit that it exceeds.
    """
    asking: list[BrokenCondition] = []
    for condition in conditions:
        if (violation := condition.find_violation(params, provenance, history)) is None:
            continue
        broken = BrokenCondition(
            condition.otherwise, violation.why, condition.param, condition.rule
        )
        if condition.otherwise is Otherwise.FORBID:
            return [broken]
        if condition.rule in OVER_HISTORY or not asking:
            asking.append(broken)
    return asking


def describe_states(
    conditions: Iterable[Condition], params: Mapping[str, Any], history: ToolHistory | None
) -> list[str]:
    """Describe how much is used of each counting limit that the call does not exceed; empty without
    a history."""
    if history is None:
        return []
    kept = (
        each
        for each in conditions
        if each.rule in COUNTED and not each.find_violation(params, None, history)
    )
    return [each.describe_state(params, history) for each in kept]


def list_exceeded(
    conditions: Iterable[Condition], params: Mapping[str, Any], facts: Mapping[str, Any]
) -> list[Condition]:
    """List the counting conditions that a call broke, according to the facts that its verdict
    used."""
    history = StoredHistory(facts.get("history") or {})
    return [
        each for each in conditions if each.rule in COUNTED and _is_exceeded(each, params, history)
    ]


def _is_exceeded(condition: Condition, params: Mapping[str, Any], history: StoredHistory) -> bool:
    try:
        return condition.find_violation(params, history=history) is not None
    except LookupError:
        return False  # the verdict did not depend on this condition


def need_history(conditions: Iterable[Condition]) -> bool:
    """Return True if a condition depends on earlier calls."""
    return any(condition.rule in OVER_HISTORY for condition in conditions)


def has_counting_rule(conditions: Iterable[Condition]) -> bool:
    """Return True if a condition counts calls or amounts."""
    return any(condition.rule in COUNTED for condition in conditions)


def _is_path(param: str) -> bool:
    return bool(param) and not param.startswith(".") and not param.endswith(".")


def _names_call(value: Any) -> bool:
    """Return True for {tool, param} if both are names."""
    return (
        isinstance(value, dict)
        and value.keys() == {"tool", "param"}
        and all(isinstance(name, str) for name in value.values())
        and bool(value["tool"])
        and _is_path(value["param"])
    )


def _find_doubtful_origin(
    param: str, provenance: Provenance | None, reading: Reading
) -> Objection | None:
    if provenance is None:
        return Objection(f"{param} is of unknown origin, but must not come from outside")
    found = provenance.find_outside(param, is_folded=reading is not Reading.FIRST)
    if found is not None:
        seen = f" was first seen in {found.title}" if found.title else ""
        return Objection(f"{param} comes from outside: {format_value(found.value)}{seen}")
    if provenance.unsearched or provenance.is_partial:
        return Objection(
            f"{param} is of unknown origin: there are too many values or results to search"
        )
    return None


@lru_cache(maxsize=256)
def _compile(pattern: str) -> Any:
    """Compile for RE2, which takes linear time, so that no text can block a worker."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def _is_same(value: Any, expected: Any) -> bool:
    """Return True if both are equal as JSON, where true is not 1."""
    return value is not ABSENT and canonical_json(value) == canonical_json(expected)


def _matches(value: Any, pattern: Any) -> bool:
    is_text = isinstance(value, str) and len(value) <= LONGEST_SEARCHED
    return is_text and _compile(str(pattern)).fullmatch(value) is not None


_EMAIL = re.compile(r"[\w.+-]+@([\w.-]+)", re.ASCII)
_UPWARDS = re.compile(r"(^|[/\\])\.\.($|[/\\])")


def _starts_with(value: Any, prefix: Any) -> bool:
    return (
        isinstance(value, str)
        and value.startswith(prefix)
        and not _UPWARDS.search(unquote(unquote(value)))
    )


def find_single_host(value: Any) -> str | None:
    """Return the only host that an address, an email address or a host names, in quotes if it is
    ambiguous; None if it names none or several."""
    if not isinstance(value, str):
        return None
    if (email := _EMAIL.fullmatch(value)) is not None:
        return email[1].lower()
    found = find_named_hosts({"": value}, frozenset({""}))
    return min(found) if len(found) == 1 else None


def _is_at_host(value: Any, host: Any) -> bool:
    return find_single_host(value) == str(host).strip().lower()


_HOLDS: dict[Rule, Callable[[Any, Any], bool]] = {
    Rule.EQUALS: _is_same,
    Rule.ONE_OF: lambda value, expected: any(_is_same(value, each) for each in expected),
    Rule.PATTERN: _matches,
    Rule.MINIMUM: lambda value, least: is_number(value) and value >= least,
    Rule.MAXIMUM: lambda value, most: is_number(value) and value <= most,
    Rule.PREFIX: _starts_with,
    Rule.HOST: _is_at_host,
    Rule.MAX_LENGTH: lambda value, most: isinstance(value, str | list) and len(value) <= most,
}


def format_value(value: Any) -> str:
    """Write a value as JSON for people, shortened to 80 characters."""
    text = "missing" if value is ABSENT else canonical_json(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
