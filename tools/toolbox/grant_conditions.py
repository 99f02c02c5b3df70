"""Judge calls by the conditions of standing grants; only this module does.

Explicit nulls are values: only `also`, and EQUALS or ONE_OF with null, allow them. `grant_sources`
describes the rules about where a value must come from.

Values that come from the same tool must be in one result, and in one entry of its list. A result
does not prove the origin of a value that the task itself had already written in a param of another
call: otherwise, an employee could write what a mail says, and read it back.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

from tools.toolbox.conditions import OF_GRANTS, Condition, Rule
from tools.toolbox.grant_sources import (
    ValueSource,
    allows_null,
    is_also,
    read_sources,
    unpack,
)
from tools.toolbox.objections import Objection
from tools.toolbox.param_values import format_number, is_number
from tools.toolbox.written_texts import WrittenTexts, read_written

ANY_NAME = "*"
MAX_STEPS = 300_000
"""The maximum number of steps in judging one call; beyond that, a person decides."""
_NO_VALUE = object()
_LONGEST_JOINT = 16
"""The maximum number of characters between two parts of an address or a code."""
_MOST_HITS = 200
"""The maximum number of occurrences of a typed value that are checked in one text."""
_SPACES, _SIGNS = " \u00a0\u2009\u202f", "'\u2019\u066c"
"""The characters between groups of digits, besides dot and comma."""
_NUMBER = re.compile(
    rf"(?<![\w.,{_SIGNS}-])(?<!\d[{_SPACES}:])"
    rf"-?\d+(?:[.,{_SIGNS}]\d+|[{_SPACES}]\d{{3}}(?!\d))*"
    rf"(?![\w{_SIGNS}-]|[.,:{_SPACES}]\d)"
)


@dataclass(frozen=True)
class RecordedResult:
    """A successful call with its result, as recorded.

    Attributes:
        pass_number: the pass that requested the call; a later pass has seen its result.
        ended_at: the time of the result.
        data: the whole data of the result, even if the employee was shown only a part.
    """

    call_id: int
    tool: str
    definition: str
    pass_number: int
    ended_at: datetime
    params: Mapping[str, Any]
    data: Any


class RecordedWrite(NamedTuple):
    """A call that has changed something, or may have."""

    call_id: int
    started_at: datetime
    params: Mapping[str, Any]


class EarlierFacts(Protocol):
    """The facts that a run had seen when a call was requested."""

    def list_results(self, tool: str) -> Sequence[RecordedResult]:
        """List the successful results of the tool in earlier passes, newest first."""

    def list_writes(self) -> Sequence[RecordedWrite]:
        """List the calls of the task, in all its runs, that have changed something, or may have."""

    def list_typed(self) -> Sequence[str]:
        """List the texts that people typed in the run."""


def find_broken(
    conditions: Iterable[Condition], params: Mapping[str, Any], facts: EarlierFacts | None
) -> Objection | None:
    """Find the first reason why the params do not meet the conditions; None if they do.

    Args:
        facts: what the run had seen; None if that is not known, which breaks the conditions that
            need it.
    """
    try:
        return _Reading(facts).find_broken(tuple(conditions), params)
    except (_TooManyStepsError, RecursionError):
        return Objection("there are too many results to find out where its values come from")


def list_values(node: Any, path: str) -> list[Any]:
    """List the values at the path of a result's data; the entries of a list share its path."""
    return [value for _, value in _walk(node, path.split(".") if path else [])]


class _TooManyStepsError(Exception):
    """The comparison of a call with the conditions would take too long."""


class _Place(NamedTuple):
    """A param's value with its place: the param and the numbers of the list entries around it."""

    where: tuple[tuple[str, int], ...]
    value: Any


class _Wanted(NamedTuple):
    """A condition on one value that must be in a result."""

    param: str
    place: _Place
    sources: tuple[ValueSource, ...]


_Entries = tuple[tuple[str, int], ...]
_Bound = Mapping[str, tuple[int, Mapping[str, int]]]
"""For each tool, the call whose result is used, and the number of the entry in each of its
lists."""


class _Reading:
    """One comparison of a call with conditions."""

    def __init__(self, facts: EarlierFacts | None, before: int | None = None) -> None:
        self._facts, self._before = facts, before
        self._steps = MAX_STEPS
        self._written: dict[int, WrittenTexts] = {}

    def find_broken(
        self, conditions: tuple[Condition, ...], params: Mapping[str, Any]
    ) -> Objection | None:
        origins: list[_Wanted] = []
        for condition in conditions:
            if condition.rule not in OF_GRANTS and not allows_null(condition):
                if (broken := condition.find_violation(params)) is not None:
                    return broken
                continue
            for place in _list_places(params, condition):
                if (broken := self._compare(condition, place.value)) is not None:
                    return broken
                inner = unpack(condition)
                if inner.rule is Rule.COMES_FROM and not is_also(condition, place.value):
                    sources = tuple(read_sources(inner))
                    origins.append(_Wanted(condition.param, place, sources))
        return self._find_unseen(origins)

    def _compare(self, condition: Condition, value: Any) -> Objection | None:
        """Check everything about one value except whether a result contains it."""
        if value is _NO_VALUE:
            return Objection(f"{condition.param} is missing, or an empty list")
        if is_also(condition, value):
            return None
        inner = unpack(condition)
        if value is None:
            allows = allows_null(inner)
            return None if allows else Objection(f"{condition.param} is null")
        if inner.rule is Rule.COMES_FROM:
            return None if _names(value) else Objection(f"{condition.param} names nothing")
        if inner.rule is Rule.TYPED:
            return self._find_untyped(condition.param, value)
        name = condition.param.rpartition(".")[2]  # it tells hosts from file names
        broken = replace(inner, param=name).find_violation({name: value})
        return broken and Objection(f"{condition.param}{broken.why.removeprefix(name)}")

    def _find_untyped(self, param: str, value: Any) -> Objection | None:
        if self._facts is None:
            return Objection(f"it is not known whether a person typed {param}")
        if _names(value) and any(_stands_in(value, text) for text in self._facts.list_typed()):
            return None
        return Objection(f"no person typed {param} in this run")

    def _find_unseen(self, origins: list[_Wanted]) -> Objection | None:
        """Find a value that no allowed result has; in one list entry, values from one tool must
        share a result."""
        if not origins:
            return None
        if self._facts is None:
            return Objection(f"it is not known where {origins[0].param} comes from")
        everywhere = {origin.place.where for origin in origins}
        innermost = [
            where
            for where in everywhere
            if not any(len(o) > len(where) and o[: len(where)] == where for o in everywhere)
        ]
        for where in sorted(innermost):
            together = [o for o in origins if where[: len(o.place.where)] == o.place.where]
            if not self._can_bind(together, {}):
                return Objection(_describe_unseen(together, self))
        return self._find_unjoined(origins)

    def _find_unjoined(self, origins: list[_Wanted]) -> Objection | None:
        """Find values from one tool that are in different lists of the call, but not together in
        any result.

        It is not known which entries of two lists belong together, so all must have one origin.
        """
        shapes = {tuple(name for name, _ in one.place.where) for one in origins}
        longest = max(shapes, key=len)
        if all(longest[: len(shape)] == shape for shape in shapes):
            return None
        self._count_step(len(origins) ** 2)
        beside = [one for one in origins if any(_is_beside(one, other) for other in origins)]
        around = [
            one
            for one in origins
            if any(each.place.where[: len(one.place.where)] == one.place.where for each in beside)
        ]
        is_joined = not beside or self._can_bind(around, {})
        return None if is_joined else Objection(_describe_unseen(around, self))

    def stands_somewhere(self, origin: _Wanted) -> bool:
        """Return True if a result has the value, regardless of the call's other values."""
        return self._can_bind([origin], {})

    def _can_bind(self, origins: Sequence[_Wanted], bound: _Bound) -> bool:
        if not origins:
            return True
        first, *others = origins
        for source in first.sources:
            for result, entries in self._find_results(source, first.place.value):
                kept = bound.get(source.tool, (result.call_id, {}))
                same = all(kept[1].get(name, number) == number for name, number in entries)
                if kept[0] == result.call_id and same:
                    more = {**bound, source.tool: (result.call_id, {**kept[1], **dict(entries)})}
                    if self._can_bind(others, more):
                        return True
        return False

    def _find_results(
        self, source: ValueSource, value: Any
    ) -> Iterator[tuple[RecordedResult, _Entries]]:
        """Yield the results that may be used and have the value at the source's path, each with the
        number of the entry in its lists."""
        assert self._facts is not None
        path = source.path.split(".") if source.path else []
        for result in self._facts.list_results(source.tool):
            if self._before is not None and result.pass_number >= self._before:
                continue
            if source.definition and source.definition != result.definition:
                continue
            found, others = [], False
            for entries, each in _walk(result.data, path, self._count_step):
                if _is_same(each, value):
                    found.append(entries)
                elif each is not None:
                    others = True
            if source.only and others:
                continue
            if not found or self._was_written(value, result):
                continue
            if self._meets_where(source, result):
                yield from ((result, entries) for entries in found)

    def _was_written(self, value: Any, result: RecordedResult) -> bool:
        """Return True if the task had written the value, or may have, when the result came."""
        assert self._facts is not None
        for write in self._facts.list_writes():
            if write.call_id == result.call_id or write.started_at > result.ended_at:
                continue
            if write.call_id not in self._written:
                self._written[write.call_id] = read_written(write.params)
                self._count_step(self._written[write.call_id].size)
            self._count_step()
            if self._written[write.call_id].may_have(value):
                return True
        return False

    def _meets_where(self, source: ValueSource, result: RecordedResult) -> bool:
        """Return True if conditions cover each param of the call, and the call meets them all; null
        is treated as absent, because a read ignores it."""
        covered = {condition.param for condition in source.where}
        paths = list_value_paths(drop_nulls(result.params))
        if paths is None or not paths <= covered:
            return False
        inner = _Reading(self._facts, result.pass_number)
        inner._steps, inner._written = self._steps, self._written
        given = drop_nulls(result.params)
        left_out = {each.param for each in source.where} - paths
        asked = tuple(
            each for each in source.where if not (each.param in left_out and allows_null(each))
        )
        is_met = inner.find_broken(asked, given) is None
        self._steps = inner._steps
        return is_met

    def _count_step(self, steps: int = 1) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise _TooManyStepsError


def list_value_paths(
    params: Mapping[str, Any], empty: frozenset[str] | None = frozenset()
) -> frozenset[str] | None:
    """List the paths of all values, including null; the entries of a list share its path.

    Return None if a name is empty or contains a dot, because its path would be ambiguous.

    Args:
        empty: the paths at which null has no meaning; None for all paths.
    """
    found = frozenset(_list_paths(params, "", empty))
    return None if None in found else frozenset(path for path in found if path is not None)


def _list_paths(node: Any, path: str, empty: frozenset[str] | None) -> Iterator[str | None]:
    if isinstance(node, Mapping) and (node or not path):
        for name, value in node.items():
            if "." in name or not name:
                yield None
            else:
                yield from _list_paths(value, f"{path}.{name}" if path else name, empty)
    elif isinstance(node, list) and node:
        for entry in node:
            yield from _list_paths(entry, path, empty)
    elif path and (node is not None or (empty is not None and path not in empty)):
        yield path


def _list_places(params: Mapping[str, Any], condition: Condition) -> list[_Place]:
    """List the values of a condition's param, with `_NO_VALUE` where there is none."""
    return list(_find_places(params, condition.param.split("."), _Place((), ""), condition))


def _find_places(node: Any, path: list[str], trail: _Place, asked: Condition) -> Iterator[_Place]:
    """Yield the values at the path.

    Args:
        trail: the place so far, with the path so far as its value.
    """
    is_each = asked.rule is Rule.EACH and not path
    if isinstance(node, list) and (path or is_each) and not (not path and is_also(asked, node)):
        for number, entry in enumerate(node):
            here = _Place((*trail.where, (trail.value, number)), trail.value)
            if path:
                yield from _find_places(entry, path, here, asked)
            else:
                yield here._replace(value=_NO_VALUE if isinstance(entry, list) else entry)
        if not node:
            yield trail._replace(value=_NO_VALUE)
    elif not path:
        yield trail._replace(value=_NO_VALUE if is_each and not is_also(asked, node) else node)
    elif isinstance(node, Mapping) and path[0] in node:
        longer = f"{trail.value}.{path[0]}" if trail.value else path[0]
        yield from _find_places(node[path[0]], path[1:], trail._replace(value=longer), asked)
    else:
        yield trail._replace(value=_NO_VALUE)


def _walk(
    node: Any, path: list[str], count: Callable[[], None] = lambda: None, so_far: str = ""
) -> Iterator[tuple[_Entries, Any]]:
    """Yield the values at the path, each with the numbers of the list entries on the way.

    Args:
        count: called for each node on the way.
    """
    count()
    if isinstance(node, list):
        for number, entry in enumerate(node):
            for entries, value in _walk(entry, path, count, f"{so_far}[]"):
                yield ((so_far, number), *entries), value
    elif not path:
        yield (), node
    elif isinstance(node, Mapping):
        names = list(node) if path[0] == ANY_NAME else [path[0]] if path[0] in node else []
        for number, name in enumerate(names):
            longer = f"{so_far}.{path[0]}"
            for entries, value in _walk(node[name], path[1:], count, longer):
                yield ((longer, number), *entries) if path[0] == ANY_NAME else entries, value


def _names(value: Any) -> bool:
    """Return True for a value that can name something: text or a number."""
    return bool(value.strip()) if isinstance(value, str) else is_number(value)


def _is_same(found: Any, value: Any) -> bool:
    """Return True if both are the same text, or the same number."""
    if is_number(found) and is_number(value):
        return bool(found == value)
    is_text = isinstance(found, str) and isinstance(value, str)
    return is_text and unicodedata.normalize("NFC", found) == unicodedata.normalize("NFC", value)


def _stands_in(value: Any, text: str) -> bool:
    """Return True if the text contains the value itself, not only as a part of a longer value."""
    if is_number(value):
        wanted = {format_number(value), format_number(value).replace(",", "")}
        found = (each[0] for each in _NUMBER.finditer(text))
        return any(each in wanted or _reads_as(each, value) for each in found)
    folded, wanted_text = (
        unicodedata.normalize("NFC", each).casefold() for each in (text, value.strip())
    )
    start = folded.find(wanted_text)
    for _ in range(_MOST_HITS):
        if start < 0:
            break
        end = start + len(wanted_text)
        before = folded[max(start - _LONGEST_JOINT, 0) : start][::-1]
        after = folded[end : end + _LONGEST_JOINT]
        is_part = _goes_on(wanted_text[0], before) or _goes_on(wanted_text[-1], after)
        if not is_part:
            return True
        start = folded.find(wanted_text, start + 1)
    return False


def _goes_on(end: str, rest: str) -> bool:
    """Return True if a value continues in the rest of a text: with a letter or digit that follows
    directly, or after characters that join the parts of an address or a code. Digits also continue
    after a separator.

    Args:
        end: the character of the value that is next to the rest.
    """
    joints = "-_.@/:+%&=#~"
    if rest.lstrip(joints)[:1].isalnum():
        return True
    is_group = end.isdigit() and rest[:1] in {*_SPACES, *_SIGNS, ","}
    return is_group and rest[1:2].isdigit()


def _reads_as(digits: str, number: Any) -> bool:
    """Return True if the digits are this number; their last dot or comma may be a decimal point."""
    head, point, tail = re.sub(f"[{_SIGNS}{_SPACES}]", "", digits).replace(",", ".").rpartition(".")
    whole = head.replace(".", "")
    return (
        bool(point) and len(tail) <= 2 and Decimal(f"{whole or 0}.{tail}") == Decimal(str(number))
    )


def drop_nulls(node: Any) -> Any:
    """Return the params without nulls, because a read ignores them."""
    if isinstance(node, Mapping):
        return {name: drop_nulls(each) for name, each in node.items() if each is not None}
    return [drop_nulls(each) for each in node] if isinstance(node, list) else node


def _is_beside(one: _Wanted, other: _Wanted) -> bool:
    """Return True if two values with a source tool in common are in different lists."""
    for mine, theirs in zip(one.place.where, other.place.where, strict=False):
        if mine[0] != theirs[0]:
            mine_tools, their_tools = (
                {source.tool for source in each.sources} for each in (one, other)
            )
            return not mine_tools.isdisjoint(their_tools)
        if mine != theirs:
            return False
    return False


def _describe_unseen(together: Sequence[_Wanted], reading: _Reading) -> str:
    for origin in together:
        if not reading.stands_somewhere(origin):
            tools = ", ".join(sorted({source.tool for source in origin.sources}))
            return f"{origin.param} does not come from a result of {tools} that the grant allows"
    names = ", ".join(sorted({origin.param for origin in together}))
    return f"{names} do not come from one result"
