"""Different values with the same name, of which a program may read another one than the approver:
in one object under two spellings, or in an object and in another object inside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from agents.approvals.warnings.call_leaves import CallLeaf
from agents.approvals.warnings.card_values import EMPTY
from agents.platform.value_text import format_json_value
from tools.caches import cache_by_text
from tools.contract.param_words import (
    RECIPIENT_WORDS,
    NamedThing,
    find_named,
    fold_name,
    names_part,
    split_name,
)

_ONCE = frozenset({NamedThing.AMOUNT, NamedThing.ACCOUNT, NamedThing.RIGHT, NamedThing.COMMAND})
"""The kinds of values, besides recipients, of which a call has only one, so that a second one is
odd."""
_NUMBERS = frozenset({NamedThing.AMOUNT, NamedThing.ACCOUNT})
_OTHERS = frozenset({"previous", "old", "original", "page", "compare", "owner", "parent"})
"""Words in the name of an object that is something else than the object around it."""
_STEPS = re.compile(r"(?<=[^\W\d])\]?[./\[]+(?=\w)|(?<=\d)\]?[./\[]+(?=[^\W\d])")
"""The separators in a name that is a path: `data.amount`, `data[amount]`, `data/amount`. Signs
between digits are not separators."""


class _NamedValue(NamedTuple):
    """A value with one reading of its path."""

    leaf: CallLeaf
    scope: int
    names: tuple[str, ...]
    is_called: bool = False


@dataclass
class _Scope:
    """The paths of values that one object contains, as a tree of numbered names."""

    nodes: dict[tuple[int, str], int] = field(default_factory=dict)
    first: dict[int, _NamedValue] = field(default_factory=dict)

    def enter(self, names: tuple[str, ...]) -> list[int]:
        """Return the numbers of the path's names, after 0 for the object itself."""
        numbers = [0]
        for name in names:
            key = (numbers[-1], fold_name(name))
            numbers.append(self.nodes.setdefault(key, len(self.nodes) + 1))
        return numbers


def find_repeated(
    leaves: Iterable[CallLeaf], may_differ: Callable[[str, str], bool]
) -> Iterator[tuple[CallLeaf, CallLeaf]]:
    """Find pairs of different values with the same name.

    Args:
        may_differ: returns True if a value and another one in an inner object, given by their
            paths, mean different things.
    """
    scopes: dict[int, list[_NamedValue]] = {}
    for leaf in leaves:
        if leaf.value not in EMPTY:
            for place in _list_places(leaf):
                scopes.setdefault(place.scope, []).append(place)
    for places in scopes.values():
        scope = _Scope()
        yield from _find_spellings(places, scope)
        yield from _find_inner(places, scope, may_differ)


def tell_value(value: object) -> str:
    """Write a value for people; of a list of objects, only its length."""
    if isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        return "1 entry" if len(value) == 1 else f"{len(value):,} entries"
    return format_json_value(value)


def _list_places(leaf: CallLeaf) -> Iterator[_NamedValue]:
    """Yield the readings of the value's path: as written, with the names in its names, and with the
    amount or account after which the value is called."""
    yield _NamedValue(leaf, leaf.scope, leaf.names)
    split = tuple(part for name in leaf.names for part in _split(name))
    if split != leaf.names:
        yield _NamedValue(leaf, leaf.scope, split)
    called = leaf.called[0] if leaf.outer is not None else ""
    if leaf.outer is not None and called.isidentifier() and find_named(called) in _NUMBERS:
        yield _NamedValue(leaf, leaf.outer, (*leaf.names[:-1], called), is_called=True)


@cache_by_text
def _split(name: str) -> tuple[str, ...]:
    """Split a name that is a path into its names."""
    plain = name.removesuffix("[]")
    parts = [each for each in _STEPS.split(plain) if each]
    if len(parts) > 1 and "[" in plain:
        parts[-1] = parts[-1].removesuffix("]")
    return tuple(parts) or (name,)


def _find_spellings(
    places: Iterable[_NamedValue], scope: _Scope
) -> Iterator[tuple[CallLeaf, CallLeaf]]:
    """Find pairs whose paths differ at most in spelling. Names with a single letter are ignored."""
    told = set[int]()
    for place in places:
        number = scope.enter(place.names)[-1]
        one = scope.first.setdefault(number, place)
        if (
            number not in told
            and len(place.names[-1]) > 1
            and _may_clash(one, place)
            and not _are_equal(one.leaf.value, place.leaf.value)
        ):
            told.add(number)
            yield one.leaf, place.leaf


def _may_clash(one: _NamedValue, other: _NamedValue) -> bool:
    """Return False for two entries of lists, and for two spellings in JSON in a text that name
    nothing known: such names may be data."""
    if one.is_called and other.is_called:
        return False
    if not one.leaf.is_in_text or one.names == other.names:
        return True
    return find_named(one.names[-1]) is not NamedThing.NOTHING


def _find_inner(
    places: Iterable[_NamedValue], scope: _Scope, may_differ: Callable[[str, str], bool]
) -> Iterator[tuple[CallLeaf, CallLeaf]]:
    """Find pairs in which one value is inside an object that is next to the other value, and a call
    has only one value of this kind.

    If the inner object itself names an amount or a part of one, as in `fee.amount`, its value means
    something else.
    """
    for place in places:
        leaf, names = place.leaf, place.names
        last = names[-1]
        if find_named(last) not in _ONCE and split_name(last).isdisjoint(RECIPIENT_WORDS):
            continue
        numbers, folded = scope.enter(names), fold_name(last)
        for index in range(len(names) - 2, -1, -1):
            between = names[index]
            if _is_other_thing(between):
                break
            other = scope.first.get(scope.nodes.get((numbers[index], folded), -1))
            if (
                other is not None
                and not (other.is_called and place.is_called)
                and not _are_equal(other.leaf.value, leaf.value)
                and not may_differ(other.leaf.path, leaf.path)
            ):
                yield other.leaf, leaf
                break


def _is_other_thing(name: str) -> bool:
    """Return True if values in an object with this name mean something else than those around
    it."""
    is_known = find_named(name) is not NamedThing.NOTHING or names_part(name)
    return is_known or not split_name(name).isdisjoint(_OTHERS)


def _are_equal(one: object, other: object) -> bool:
    """Return True for equal values, whatever their type: 10, 10.0 and “10”."""
    try:
        if one == other and isinstance(one, bool) == isinstance(other, bool):
            return True
        texts = [format_json_value(each).strip().casefold() for each in (one, other)]
    except RecursionError:
        return False
    return texts[0] == texts[1] or texts[0] == texts[1].removesuffix(".0")
