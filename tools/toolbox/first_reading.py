"""The first version of the code that compares values with the conditions of approval rules;
recordings from its time are judged by it.

It decodes escapes twice, compares names exactly, and treats null as a missing param. New cards are
judged by `rule_matching`.
"""

import math
import posixpath
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import re2

from tools.contract import find_named_hosts
from tools.toolbox.conditions import LONGEST_SEARCHED, Condition, Rule
from tools.toolbox.param_values import ABSENT, is_number
from tools.toolbox.value_readings import Reading

_UNREADABLE = object()
"""Stands for a value whose shape does not fit the path."""
_EQUALITY = frozenset({Rule.EQUALS, Rule.ONE_OF})


def can_meet(condition: Condition, params: Mapping[str, Any]) -> bool:
    """Return True if a value of the condition's param meets the condition, or cannot be compared.

    Each entry of a list is judged by itself, so that no other entry hides it. A missing param does
    not meet the condition.
    """
    if condition.rule not in _MAY_HOLD:
        return True  # it depends on more than the call's params, so it cannot be ruled out
    try:
        values = [
            value
            for value in _find_values(params, condition.param.split("."))
            if value is not ABSENT
        ]
        return any(value is _UNREADABLE or _may_hold(condition, value) for value in values)
    except (RecursionError, ValueError, ArithmeticError, re2.error):
        return True  # nested too deeply to be compared, not JSON, or not a pattern


def _find_values(node: Any, path: list[str]) -> Iterator[Any]:
    """Yield every value at the path; a name in it may contain dots."""
    if not path or node is None:
        yield ABSENT if node is None else node
    elif isinstance(node, Mapping):
        names = [".".join(path[:length]) for length in range(1, len(path) + 1)]
        for length, name in enumerate(names, 1):
            if name in node:
                yield from _find_values(node[name], path[length:])
    elif isinstance(node, list):
        for entry in node:
            yield from _find_values(entry, path)
    else:
        yield _UNREADABLE


def _may_hold(condition: Condition, value: Any) -> bool:
    """Return True unless the value can be compared and does not meet the condition."""
    if not _restate(condition.rule, condition.value).find_violation({"value": value}):
        return True
    is_whole = condition.rule is Rule.MAX_LENGTH or condition.rule in _EQUALITY
    if isinstance(value, list) and value and not is_whole:
        return any(entry is not None and _may_hold(condition, entry) for entry in value)
    return _MAY_HOLD[condition.rule](value, condition.value)


def _restate(rule: Rule, value: Any) -> Condition:
    return Condition("value", rule, value, reading=Reading.FIRST)


def _may_equal(value: Any, expected: Any) -> bool:
    """Return True if both could mean the same. Values of different kinds always could, because they
    cannot be compared."""
    if isinstance(value, Mapping) and isinstance(expected, Mapping):
        names = {name for node in (value, expected) for name in node if node[name] is not None}
        return all(
            name in value and name in expected and _may_equal(value[name], expected[name])
            for name in names
        )
    if isinstance(value, list):
        is_same = isinstance(expected, list) and len(value) == len(expected)
        pairs = zip(value, expected, strict=True) if is_same else ()
        return (is_same and all(_may_equal(*pair) for pair in pairs)) or _may_have_entry(
            value, expected
        )
    if isinstance(value, str) and isinstance(expected, str):
        return bool(_read_ways(value) & _read_ways(expected))
    if isinstance(value, bool) or isinstance(expected, bool):
        return value is expected or type(value) is not type(expected)
    if is_number(value) and is_number(expected):
        return bool(value == expected) or (isinstance(value, float) and math.isnan(value))
    return True


def _may_have_entry(values: list[Any], expected: Any) -> bool:
    """Return True if an entry could be the expected value, or there is no entry to compare."""
    if isinstance(expected, list):
        return False
    return not values or any(entry is not None and _may_equal(entry, expected) for entry in values)


def _is_number_outside(value: Any, bound: Any, *, is_least: bool) -> bool:
    """Return True for a number that can be compared and lies outside the bound."""
    return is_number(value) and bool(value < bound if is_least else value > bound)


def _may_match(value: Any, pattern: Any) -> bool:
    if not isinstance(value, str) or len(value) > LONGEST_SEARCHED:
        return True
    like = _restate(Rule.PATTERN, f"(?i:{pattern})")
    return any(not like.find_violation({"value": way}) for way in _read_ways(value))


def _may_start_with(value: Any, prefix: Any) -> bool:
    """Return True if the text could start with the prefix; a path with a `..` segment always
    could."""
    if not isinstance(value, str):
        return True
    ways, starts = _read_ways(value), tuple(_read_ways(prefix))
    return any(way.startswith(starts) or way.partition("/")[0] == ".." for way in ways)


def _may_be_at_host(value: Any, host: Any) -> bool:
    """Return True if the value names the host, or does not name any host and so cannot be
    compared."""
    hosts = (
        find_named_hosts({"": value}, frozenset({""})) if isinstance(value, str) else frozenset()
    )
    return not hosts or host.strip().lower() in hosts


def _read_ways(text: str) -> set[str]:
    """Return the text, and its readings without case, spaces, wide letters and path detours."""
    plain = "".join(
        char for char in unicodedata.normalize("NFKC", text) if unicodedata.category(char) != "Cf"
    )
    folded = plain.casefold().strip()
    slashed = unquote(unquote(folded)).replace("\\", "/")
    path = posixpath.normpath(slashed) if "/" in slashed else slashed
    path = f"/{path.lstrip('/')}" if path.startswith("/") else path
    return {
        text,
        folded,
        "".join(folded.split()),
        f"{path.rstrip('/')}/" if slashed.endswith("/") else path,
    }


_MAY_HOLD: dict[Rule, Callable[[Any, Any], bool]] = {
    Rule.EQUALS: _may_equal,
    Rule.ONE_OF: lambda value, expected: any(_may_equal(value, each) for each in expected),
    Rule.PATTERN: _may_match,
    Rule.MINIMUM: lambda value, least: not _is_number_outside(value, least, is_least=True),
    Rule.MAXIMUM: lambda value, most: not _is_number_outside(value, most, is_least=False),
    Rule.MAX_LENGTH: lambda value, _: not isinstance(value, str | list),
    Rule.PREFIX: _may_start_with,
    Rule.HOST: _may_be_at_host,
}
"""Functions by rule: each returns True if a value that does not meet the condition may be meant
to."""
