"""Find the values of a call that mean more than they seem to: a word for “all”, an emptied field, a
credential, or two different values with the same name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, islice
from typing import Any, NamedTuple

from agents.approvals.warnings.card_values import (
    CHANGED,
    EMPTY,
    find_row_state,
    list_target_values,
)
from agents.approvals.warnings.marks import CREDENTIAL, EMPTIED, TWICE, UNLIMITED
from agents.platform.value_text import format_json_value
from tools.contract import Tool
from tools.contract.credential_values import is_credential, is_filled
from tools.contract.outside_text import name_place, quote_excerpt
from tools.contract.param_words import (
    RECIPIENT_WORDS,
    NamedThing,
    find_named,
    fold_name,
    names_amount,
    names_end,
    names_sign,
    split_name,
)
from tools.contract.wide_values import stands_for_all
from tools.schemas.param_paths import find_unset_params, list_value_forms

MAX_VALUES = 2_000
"""The maximum number of values of one call that are checked."""
MAX_ALIKE = 9
"""The maximum number of values with one name that are compared."""
_ALL = frozenset({"all", "any", "anyone", "anything", "everybody", "everyone", "everything"})
"""Values that stand for all others in a schema's list of values."""
_ONCE = frozenset({NamedThing.AMOUNT, NamedThing.ACCOUNT, NamedThing.RIGHT, NamedThing.COMMAND})
"""The kinds of values, besides recipients, of which a call has only one, so that a second one is
odd."""


@dataclass(frozen=True)
class Meaning:
    """A value with a meaning that the approver must see.

    Attributes:
        kind: one of `marks.MEANINGS`.
        detail: the place of the value, and the value itself unless it is a credential.
        paths: the paths of the params, or of a target's fields, that have the value.
        is_in_params: True if conditions on these params can fix the value.
    """

    kind: str
    detail: str
    paths: tuple[str, ...]
    is_in_params: bool = True

    @property
    def names(self) -> set[str]:
        """The last names of the paths."""
        return {path.rpartition(".")[2] for path in self.paths}

    def is_fixed(self, params: Collection[str]) -> bool:
        """Return True if each of the paths is one of these params, or leads inside one of them."""
        return self.is_in_params and all(
            any(path == param or path.startswith(f"{param}.") for param in params)
            for path in self.paths
        )


class _Leaf(NamedTuple):
    """A single value; `names` are the names that lead to it, which are the same for all entries of
    a list."""

    names: tuple[str, ...]
    value: Any

    @property
    def path(self) -> str:
        return ".".join(self.names)


@dataclass
class _Schema:
    """The parts of a tool's schema that show what values mean.

    Attributes:
        unset: the params for which null is the tool's default.
    """

    root: Mapping[str, Any] = field(default_factory=dict)
    unset: frozenset[str] = frozenset()
    _forms: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)

    def list_forms(self, path: str) -> list[Mapping[str, Any]]:
        if path not in self._forms:
            self._forms[path] = list_value_forms(self.root, path) if self.root else []
        return self._forms[path]

    def says_all(self, path: str, value: str) -> bool:
        """Return True if this value stands for all others that the schema lists."""
        if value.casefold() not in _ALL:
            return False
        lists = [form.get("enum") for form in self.list_forms(path)]
        return any(isinstance(each, list) and value in each and len(each) > 1 for each in lists)

    def lists(self, *paths: str) -> bool:
        """Return True if the schema has each of these params, so that their values may differ."""
        return all(map(self.list_forms, paths))

    def says_credential(self, path: str) -> bool:
        return any(
            form.get("format") == "password" or form.get("writeOnly") is True
            for form in self.list_forms(path)
        )


def find_meanings(
    params: Mapping[str, Any], targets: Sequence[Mapping[str, Any]], tool: Tool | None
) -> list[Meaning]:
    """Find the meanings of a call's values.

    Args:
        targets: the targets that the card shows; if there are none, it shows the params.
        tool: the called tool; None if it is not installed.
    """
    schema = _Schema() if tool is None else _Schema(tool.schema)
    if tool is not None and not tool.is_from_outside:
        schema.unset = find_unset_params(tool.schema, params)
    leaves = list(islice(_walk(params, ()), MAX_VALUES))
    written = set(map(_get_key, leaves))
    after = (leaf for each in targets for leaf in _walk(each.get("after") or {}, ()))
    shown = [leaf for leaf in islice(after, MAX_VALUES) if _get_key(leaf) not in written]
    read = [each for each in map(partial(_read, schema=schema), leaves) if each]
    more = [each for each in map(partial(_read, schema=_Schema()), shown) if each]
    nulls = _find_emptied(targets, leaves) if targets else _find_nulls(params, leaves, schema)
    return [
        *read,
        *(replace(each, is_in_params=False) for each in more),
        *nulls,
        *_find_repeated(params, schema),
    ]


def _get_key(leaf: _Leaf) -> tuple[str, str]:
    return leaf.names[-1], repr(leaf.value)


def _walk(node: Any, names: tuple[str, ...]) -> Iterator[_Leaf]:
    waiting = [(node, names)]
    while waiting:  # no recursion, because params may be nested as deeply as JSON allows
        value, here = waiting.pop()
        if isinstance(value, Mapping):
            waiting += [(inner, (*here, str(name))) for name, inner in [*value.items()][::-1]]
        elif isinstance(value, list):
            waiting += [(entry, here) for entry in reversed(value)]
        elif here:
            yield _Leaf(here, value)


def _read(leaf: _Leaf, schema: _Schema) -> Meaning | None:
    """Return the meaning of a text or number by itself; None for ordinary values."""
    name, path, value = leaf.names[-1], leaf.path, leaf.value
    if value is None or isinstance(value, bool):
        return None
    is_text = isinstance(value, str)
    if is_credential(name, value) or (
        is_text and is_filled(value) and schema.says_credential(path)
    ):
        return Meaning(CREDENTIAL, quote_excerpt(path), (path,))
    if not is_text or names_sign(name):
        return None
    if stands_for_all(value) or schema.says_all(path, value):
        return Meaning(UNLIMITED, f"{name_place(path)}{quote_excerpt(value)}", (path,))
    return None


def _find_emptied(
    targets: Sequence[Mapping[str, Any]], leaves: Iterable[_Leaf]
) -> Iterator[Meaning]:
    """Find the fields that a change of targets empties. A field that `after` leaves out does not
    count, because it may remain unchanged."""
    if find_row_state(targets) != CHANGED:
        return
    counts = Counter(
        value.name
        for target in targets
        for value in list_target_values(target)
        if value.name in (target.get("after") or {})
        and _is_empty(value.after)
        and not _is_empty(value.before)
    )
    for name, count in counts.items():
        paths = [leaf.path for leaf in leaves if leaf.names[-1] == name and _is_empty(leaf.value)]
        where = quote_excerpt(name)
        if len(targets) > 1:
            where += f" of {count:,}"
        yield Meaning(EMPTIED, where, tuple(paths) or (name,), is_in_params=bool(paths))


def _find_nulls(
    params: Mapping[str, Any], leaves: Iterable[_Leaf], schema: _Schema
) -> Iterator[Meaning]:
    """Find the nulls of a request in amounts, in end times, and in lists of texts."""
    for leaf in leaves:
        name, path = leaf.names[-1], leaf.path
        if leaf.value is not None or path in schema.unset:
            continue
        if names_end(name):
            yield Meaning(UNLIMITED, f"{name_place(path)}no end", (path,))
        elif names_amount(name):
            yield Meaning(EMPTIED, f"{name_place(path)}null", (path,))
    for path, entries in _walk_lists(params):
        empty = sum(entry is None for entry in entries)
        if empty and all(entry is None or isinstance(entry, str) for entry in entries):
            yield Meaning(EMPTIED, f"{name_place(path)}{empty:,} of {len(entries):,}", (path,))


def _walk_lists(params: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield each list that is a direct value of an object, with its path."""
    waiting: list[tuple[Any, str]] = [(params, "")]
    while waiting:
        node, path = waiting.pop()
        if isinstance(node, Mapping):
            inner = [
                (value, f"{path}.{name}" if path else str(name)) for name, value in node.items()
            ]
            yield from ((where, value) for value, where in inner if isinstance(value, list))
            waiting += inner
        elif isinstance(node, list):
            waiting += [(entry, path) for entry in node if isinstance(entry, (Mapping, list))]


def _find_repeated(params: Mapping[str, Any], schema: _Schema) -> Iterator[Meaning]:
    """Find two different values with the same name: in one object under two spellings of the name,
    or in an object and in another object inside it. The latter counts only for kinds of values of
    which a call has only one."""
    for leaves in _walk_scopes(params):
        by_name: dict[str, list[_Leaf]] = {}
        for leaf in leaves:
            by_name.setdefault(fold_name(leaf.names[-1]), []).append(leaf)
        for same in by_name.values():
            for one, other in combinations(same[:MAX_ALIKE], 2):
                if not _are_equal(one.value, other.value) and (
                    _are_spellings(one.names, other.names)
                    or (_is_inside(one, other) and not schema.lists(one.path, other.path))
                ):
                    yield Meaning(TWICE, f"{_tell(one)}; {_tell(other)}", (one.path, other.path))


def _walk_scopes(params: Mapping[str, Any]) -> Iterator[list[_Leaf]]:
    """Yield the values that are not inside objects in a list, then the values of each object in a
    list. A list of single values counts as one value."""
    waiting: list[list[tuple[Mapping[str, Any], tuple[str, ...]]]] = [[(params, ())]]
    left = MAX_VALUES
    while waiting and left > 0:
        objects, leaves = waiting.pop(), list[_Leaf]()
        while objects and left > 0:
            node, names = objects.pop()
            for name, value in node.items():
                left, here = left - 1, (*names, str(name))
                entries = value if isinstance(value, list) else ()
                if isinstance(value, Mapping):
                    objects.append((value, here))
                elif any(isinstance(entry, Mapping) for entry in entries):
                    waiting += [[(each, here)] for each in entries if isinstance(each, Mapping)]
                elif value not in EMPTY:
                    leaves.append(_Leaf(here, value))
        yield leaves


def _are_spellings(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return True if the paths differ only in spelling. Names with a single letter are ignored."""
    return len(one[-1]) > 1 and list(map(fold_name, one)) == list(map(fold_name, other))


def _is_inside(one: _Leaf, other: _Leaf) -> bool:
    """Return True if one value is inside an object that is next to the other value, and a call has
    only one value of this kind.

    If the inner object itself names an amount or the like, as in `fee.amount`, its value means
    something else.
    """
    outer, inner = sorted((one.names, other.names), key=len)
    between = inner[len(outer) - 1 : -1]
    is_single = find_named(outer[-1]) in _ONCE or split_name(outer[-1]) & RECIPIENT_WORDS
    return (
        bool(between)
        and inner[: len(outer) - 1] == outer[:-1]
        and bool(is_single)
        and all(find_named(name) is NamedThing.NOTHING for name in between)
    )


def _are_equal(one: Any, other: Any) -> bool:
    """Return True for equal values, whatever their type: 10, 10.0 and “10”."""
    if one == other and isinstance(one, bool) == isinstance(other, bool):
        return True
    texts = [format_json_value(each).strip().casefold() for each in (one, other)]
    return texts[0] == texts[1] or texts[0] == texts[1].removesuffix(".0")


def _tell(leaf: _Leaf) -> str:
    """Name the place and the value; for a credential, only the place."""
    if is_credential(leaf.names[-1], leaf.value):
        return quote_excerpt(leaf.path)
    return f"{name_place(leaf.path)}{quote_excerpt(format_json_value(leaf.value))}"


def _is_empty(value: Any) -> bool:
    return value in EMPTY or (isinstance(value, str) and not value.strip())
