"""Matching of calls with conditions of approval rules; in case of doubt, a call matches.

A value that cannot be compared breaks a limit. An approval rule asks for more people, so it must
apply to a value that cannot be compared: otherwise, "two people from 1,000" would not apply to
"5000", [5000] or {"value": 5000}.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import unquote, unquote_plus

import re2

from tools.contract import find_named_hosts
from tools.contract.embedded_json import TOO_DEEP, parse_embedded_json
from tools.contract.spelled_addresses import list_readings
from tools.schemas.param_paths import find_open_objects, find_unset_params
from tools.toolbox import first_reading
from tools.toolbox.conditions import LONGEST_SEARCHED, Condition, Rule, format_value
from tools.toolbox.param_values import is_number
from tools.toolbox.value_readings import (
    LONGEST_READ,
    Reading,
    ends_with_name,
    find_key,
    goes_upwards,
    is_same_name,
    list_equal_spellings,
    list_spellings,
    names_param,
    read_host,
    read_numbers,
    stands_in,
    starts_a_part,
)

_UNREADABLE = object()
"""Stands for a value whose shape does not fit the path."""
_PAIR = 2
_MOST_VALUES = 100_000
"""The maximum number of values of one call that are searched; beyond that, any condition may be
met."""
_NAMING_KEYS = re.compile(
    "name|key|field|param|property|path|column|attribute|header|option|variable", re.IGNORECASE
)
"""A word in keys whose values can name a param, as in {"name": "amount", "value": 5}."""
_FORM_PAIR = re.compile(r"(?:^|[?&])([^\s=&?#]+)=([^\s&#]*)")
_BRACKET = re.compile(r"[{[]|%(?:25)*[57]b", re.IGNORECASE)


@dataclass(frozen=True)
class SchemaFacts:
    """The facts about a call's params that are only in the tool's schema.

    Attributes:
        open_objects: the paths of objects that may have params which the schema does not list; an
            empty path for the call itself.
        unset: the paths of params that are null only because the schema fills them in.
    """

    open_objects: frozenset[str] = frozenset()
    unset: frozenset[str] = frozenset()

    @classmethod
    def of(cls, schema: Mapping[str, Any] | None, params: Mapping[str, Any]) -> SchemaFacts:
        """Find the facts about a call; without a schema, any param could have any name."""
        if schema is None:
            return cls(frozenset({""}))
        return cls(find_open_objects(schema, params), find_unset_params(schema, params))

    def as_json(self) -> dict[str, Any]:
        """Return the facts for storage; empty parts are left out."""
        kept = {"open": sorted(self.open_objects), "unset": sorted(self.unset)}
        return {name: paths for name, paths in kept.items() if paths}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> SchemaFacts:
        """Read stored facts."""
        return cls(frozenset(stored.get("open", ())), frozenset(stored.get("unset", ())))


NO_FACTS = SchemaFacts()
"""The facts about a call whose schema lists all its params."""


@dataclass(frozen=True)
class Match:
    """The reason why a call meets a condition, or why that cannot be ruled out.

    Attributes:
        is_sure: True if a value surely meets it.
        why: the reason for people: `amount is 5000`, `amount may be at least 1000: it is "5000"`.
    """

    is_sure: bool
    why: str


def can_meet(
    condition: Condition, params: Mapping[str, Any], facts: SchemaFacts = NO_FACTS
) -> bool:
    """Return True unless the call surely does not meet the condition."""
    return find_match(condition, params, facts) is not None


def find_match(
    condition: Condition, params: Mapping[str, Any], facts: SchemaFacts = NO_FACTS
) -> Match | None:
    """Find the reason why the call meets the condition or may meet it; None if it surely does not.

    Each entry of a list is judged by itself, so that no other entry hides it. So is each param of
    the same name elsewhere in the call. A missing param does not meet a condition, unless the call
    has, or its schema allows, names that the schema does not list.
    """
    if condition.reading is Reading.FIRST:
        is_met = first_reading.can_meet(condition, params)
        return Match(is_sure=True, why=condition.describe_match()) if is_met else None
    if condition.rule not in _MAY_HOLD:
        return Match(is_sure=False, why="it depends on more than the call’s parameters")
    try:
        return _find_in_values(condition, params, facts)
    except (RecursionError, ValueError, ArithmeticError, re2.error):
        return _doubt(condition, "it cannot be compared")


def _find_in_values(
    condition: Condition, params: Mapping[str, Any], facts: SchemaFacts
) -> Match | None:
    path, doubt = condition.param.split("."), None
    for place, value in _list_values(params, path, facts.unset):
        is_meant = place == condition.param and value is not _UNREADABLE
        if is_meant and _holds_surely(condition, value):
            return Match(is_sure=True, why=f"{place} is {format_value(value)}")
        if doubt is None and (value is _UNREADABLE or _may_hold(condition, value)):
            it = "it" if place == condition.param else place
            is_what = "cannot be read" if value is _UNREADABLE else f"is {format_value(value)}"
            doubt = _doubt(condition, f"{it} {is_what}")
    if doubt is None and any(
        ".".join(path[:at]) in facts.open_objects and _has_other_names(params, path, at)
        for at in range(len(path))
    ):
        return _doubt(condition, "the call may have parameters that its tool does not list")
    return doubt


def _has_other_names(params: Mapping[str, Any], path: list[str], at: int) -> bool:
    """Return True for the call itself, and for an object in it that has a name other than the next
    name of the path."""
    return at == 0 or any(
        not isinstance(node, Mapping) or any(not is_same_name(str(key), path[at]) for key in node)
        for _, node in _follow(params, path[:at], "")
    )


def _doubt(condition: Condition, reason: str) -> Match:
    return Match(
        is_sure=False, why=f"{condition.param} may be {condition.describe_rule()}: {reason}"
    )


# Values


def _list_values(
    params: Mapping[str, Any], path: list[str], unset: frozenset[str]
) -> Iterator[tuple[str, Any]]:
    """Yield the place and value of each param that the path can mean: those at the path, then all
    others of this name."""
    seen = set[int]()
    for place, value in _follow(params, path, "", unset):
        seen.add(id(value))
        if not (value is None and place in unset):
            yield place, value
    names = [".".join(path[at:]) for at in range(len(path))]
    for place, value in _Elsewhere(names).search(params):
        is_new = value is None or isinstance(value, bool) or id(value) not in seen
        if is_new and not (value is None and place in unset):
            yield place, value


def _follow(
    node: Any, path: list[str], place: str, unset: frozenset[str] = frozenset()
) -> Iterator[tuple[str, Any]]:
    """Yield every value at the path; a name in it may contain dots. An object that is null only by
    default has no values."""
    if not path:
        yield place, node
    elif isinstance(node, Mapping):
        for length in range(1, len(path) + 1):
            for key in find_key(node, ".".join(path[:length])):
                inner = f"{place}.{key}" if place else key
                yield from _follow(node[key], path[length:], inner, unset)
    elif isinstance(node, list):
        for entry in node:
            yield from _follow(entry, path, place, unset)
    elif not (node is None and place in unset):
        yield place, _UNREADABLE


@dataclass
class _Elsewhere:
    """A search through a whole call for params with a certain name, without recursion.

    Attributes:
        names: the names that are looked for: a path and its endings.
    """

    names: list[str]
    left: int = field(default=_MOST_VALUES)

    def search(self, params: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield the place and value of each param with the name, even in JSON inside texts."""
        waiting: list[tuple[str, Any]] = [("", params)]
        while waiting:
            place, node = waiting.pop()
            self.left -= 1
            if self.left < 0 or node is TOO_DEEP:
                yield place, _UNREADABLE
                return
            if isinstance(node, Mapping):
                inner = [(f"{place}.{key}" if place else str(key), key) for key in node]
                yield from ((at, node[key]) for at, key in inner if self._is_meant(str(key)))
                yield from self._read_pair(node, place)
                waiting += [(at, node[key]) for at, key in inner]
            elif isinstance(node, list):
                yield from self._read_lists(node, place)
                waiting += [(place, entry) for entry in node]
            elif isinstance(node, str):
                yield from self._read_text(node, place)
                waiting += [(place, each) for each in parse_embedded_json(node)]

    def _is_meant(self, name: str) -> bool:
        return any(is_same_name(name, each) for each in self.names) or ends_with_name(
            name, self.names[-1]
        )

    def _read_lists(self, node: list[Any], place: str) -> Iterator[tuple[str, Any]]:
        """Yield the values in pairs of a name and a value: [["amount", 5]]."""
        for entry in node:
            name = entry[0] if isinstance(entry, list) and len(entry) == _PAIR else None
            if isinstance(name, str) and self._is_meant(name):
                yield (f"{place}.{name}" if place else name), entry[1]

    def _read_text(self, text: str, place: str) -> Iterator[tuple[str, Any]]:
        """Yield the values of a form or an address: `?amount=5`; a text that resembles JSON and
        names the param, but is not valid JSON, is unreadable."""
        if "=" in text:
            pairs = _FORM_PAIR.findall(text)
            yield from (
                (place, unquote_plus(value))
                for name, value in pairs
                if self._is_meant(unquote(name))
            )
        if (
            _BRACKET.search(text)
            and not parse_embedded_json(text)
            and names_param(text, self.names[-1])
        ):
            yield place, _UNREADABLE

    def _read_pair(self, node: Mapping[str, Any], place: str) -> Iterator[tuple[str, Any]]:
        """Yield the values of an object that contains the param's name as a value, as patches
        do."""
        for key, name in node.items():
            if _NAMING_KEYS.search(str(key)) and isinstance(name, str) and self._is_meant(name):
                at = f"{place}.{name}" if place else name
                yield from ((at, value) for other, value in node.items() if other != key)


# Comparisons


def _holds_surely(condition: Condition, value: Any) -> bool:
    """Return True if the value, or an entry of a list, meets the condition."""
    alone = Condition("value", condition.rule, condition.value)
    if value is not None and not alone.find_violation({"value": value}):
        return True
    return isinstance(value, list) and any(_holds_surely(condition, entry) for entry in value)


def _may_hold(condition: Condition, value: Any) -> bool:
    """Return True unless the value can be compared and does not meet the condition."""
    if value is None or _holds_surely(condition, value):
        return True
    is_whole = condition.rule in (Rule.MAX_LENGTH, Rule.EQUALS, Rule.ONE_OF)
    if isinstance(value, list) and value and not is_whole:
        return any(_may_hold(condition, entry) for entry in value)
    return _MAY_HOLD[condition.rule](value, condition.value)


def _may_equal(value: Any, expected: Any) -> bool:
    """Return True if both values could mean the same. Values of different kinds always could,
    because they cannot be compared."""
    if isinstance(value, Mapping) and isinstance(expected, Mapping):
        return _may_have_values(value, expected) and _may_have_values(expected, value)
    if isinstance(value, list):
        return _may_be_list(value, expected)
    if isinstance(value, str) and isinstance(expected, str):
        return _may_be_text(value, expected)
    if isinstance(value, bool) or isinstance(expected, bool):
        return value is expected or type(value) is not type(expected)
    if is_number(value) and is_number(expected):
        return bool(abs(value) == abs(expected)) or (isinstance(value, float) and math.isnan(value))
    return True


def _may_have_values(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return True if each non-empty param of one object may be in the other."""
    return all(
        any(_may_equal(other[key], value) for key in find_key(other, str(name)))
        for name, value in one.items()
        if not _is_empty(value)
    )


def _may_have_all(values: list[Any], expected: list[Any]) -> bool:
    """Return True if each non-empty expected entry may be among the values, in any order and
    number."""
    return all(
        any(_may_equal(value, each) for value in values) for each in expected if not _is_empty(each)
    )


def _may_be_list(values: list[Any], expected: Any) -> bool:
    """Return True if a list could be the expected list, if an entry could be the expected value, or
    if there is no entry to compare."""
    if isinstance(expected, list):
        return _may_have_all(values, expected) and _may_have_all(expected, values)
    return not values or any(each is None or _may_equal(each, expected) for each in values)


def _is_empty(value: Any) -> bool:
    """Return True for a value that systems ignore: null, an empty text, list or object."""
    return value is None or (isinstance(value, str | list | Mapping) and not value)


def _may_be_text(value: str, expected: str) -> bool:
    if len(value) > LONGEST_READ:
        return True
    if not list_equal_spellings(value).isdisjoint(list_equal_spellings(expected)):
        return True
    if not _read_amounts(value).isdisjoint(_read_amounts(expected)):
        return True
    return stands_in(expected, value) or any(
        each is TOO_DEEP or _may_equal(each, expected) for each in parse_embedded_json(value)
    )


def _read_amounts(text: str) -> frozenset[Decimal]:
    """Return the numbers that a text can mean, without their signs."""
    return frozenset(map(abs, read_numbers(text)))


def _may_be_at_least(value: Any, least: Any) -> bool:
    """Return True unless the value is a smaller number. Return True for a negative number, too, if
    `least` is not negative.

    Some systems book money with the opposite sign, and send -5000 for 5000.
    """
    if not is_number(value):
        return True
    return not value < least or (value < 0 <= least)


def _may_be_at_most(value: Any, most: Any) -> bool:
    """Return True unless the value is a larger number. If `most` is negative, a positive value is
    read as negative."""
    return not is_number(value) or not value > most or (most < 0 < value and -value <= most)


def _may_match(value: Any, pattern: Any) -> bool:
    if not isinstance(value, str) or len(value) > LONGEST_SEARCHED:
        return True
    like = Condition("value", Rule.PATTERN, f"(?i:{pattern})")
    return any(not like.find_violation({"value": each}) for each in list_spellings(value))


def _may_start_with(value: Any, prefix: Any) -> bool:
    """Return True if the text could start with the prefix; a path with a `..` segment always
    could."""
    if not isinstance(value, str) or len(value) > LONGEST_READ or goes_upwards(value):
        return True
    return starts_a_part(prefix, value) or any(
        each is TOO_DEEP or _may_hold(Condition("value", Rule.PREFIX, prefix), each)
        for each in parse_embedded_json(value)
        if each is TOO_DEEP or isinstance(each, list)
    )


def _may_be_at_host(value: Any, host: Any) -> bool:
    """Return True if the value names this host or one that programs read differently, or does not
    name any host."""
    if not isinstance(value, str) or len(value) > LONGEST_READ:
        return True
    wanted = _list_hosts(host)
    found = {
        each
        for reading in list_readings(value)
        for each in find_named_hosts({"": reading}, frozenset({""}))
    }
    return not found or any(
        each.startswith("'") or not _list_hosts(each).isdisjoint(wanted) for each in found
    )


def _list_hosts(host: str) -> frozenset[str]:
    """List the spellings of a host, including those without punycode and without the brackets of
    IPv6."""
    plain = read_host(f"[{host.strip().strip('[]')}]").strip("[]")
    return list_spellings(host) | list_spellings(read_host(host)) | list_spellings(plain)


_MAY_HOLD: dict[Rule, Callable[[Any, Any], bool]] = {
    Rule.EQUALS: _may_equal,
    Rule.ONE_OF: lambda value, expected: any(_may_equal(value, each) for each in expected),
    Rule.PATTERN: _may_match,
    Rule.MINIMUM: _may_be_at_least,
    Rule.MAXIMUM: _may_be_at_most,
    Rule.MAX_LENGTH: lambda value, _: not isinstance(value, str | list),
    Rule.PREFIX: _may_start_with,
    Rule.HOST: _may_be_at_host,
}
"""Functions by rule: each returns True if a value that does not surely meet the condition may be
meant to."""
