"""Find the values of a call that mean more than they seem to: a word for “all”, an emptied field, a
credential, or two different values with the same name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agents.approvals.warnings.call_leaves import CallLeaf, CallLeaves
from agents.approvals.warnings.card_values import (
    CHANGED,
    EMPTY,
    find_row_state,
    list_target_values,
)
from agents.approvals.warnings.marks import CREDENTIAL, EMPTIED, TWICE, UNLIMITED
from agents.approvals.warnings.repeated_names import find_repeated, tell_value
from tools.contract import Tool
from tools.contract.credential_values import has_token, is_credential, is_filled
from tools.contract.outside_text import name_place, quote_excerpt
from tools.contract.param_words import (
    names_amount,
    names_end,
    names_kind,
    names_limit,
    names_password,
    names_pattern,
    names_sign,
    split_name,
)
from tools.contract.wide_values import (
    contains_all_addresses,
    is_endless,
    matches_all,
    stands_for_all,
)
from tools.schemas.param_paths import find_unset_params, list_value_forms

MAX_VALUES = 40_000
"""The maximum number of different values of one call that are checked."""
_ALL = frozenset({"all", "any", "anyone", "anything", "everybody", "everyone", "everything"})
"""Values that stand for all others in a schema's list of values."""
_NULLS = frozenset({"null", "NULL", "Null", "None", "nil", "undefined"})
"""Texts that programs write for a missing value."""
_PERCENT = "%"
_NETWORK = frozenset({"cidr", "cidrs", "network", "networks", "subnet", "subnets", "ip", "ips"})
_LAST_WORD = re.compile(r"(?:[A-Z]?[^\W\d_A-Z]+|[A-Z]+)[\W\d_]*$")
_LONGEST_END = 60
"""The maximum number of characters in which the last word of a name is looked for."""
_NUMBERS = frozenset({"number", "integer"})


@dataclass(frozen=True)
class FixedParams:
    """The params that a standing grant fixes.

    Attributes:
        exact: the params for which the grant lists the values, or the entries of lists.
        whole: the params for which it lists whole values.
        limited: the params with a condition on the whole value.
        listed: the params that a call may have.
    """

    exact: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    limited: frozenset[str] = frozenset()
    listed: frozenset[str] = frozenset()

    def lists_name(self, path: str) -> bool:
        """Return True if the grant lists the path's last name. If it also lists an outer param,
        that may be a text with JSON, in which any name may be."""
        names = path.split(".")
        outer = {".".join(names[:end]) for end in range(1, len(names))}
        return outer.isdisjoint(self.listed) and any(_is_in(each, {path}) for each in self.listed)


@dataclass(frozen=True)
class Meaning:
    """A value with a meaning that the approver must see.

    Attributes:
        kind: one of `marks.MEANINGS`.
        detail: the place of the value, and the value itself unless it is a credential.
        paths: the paths of the params, or of a target's fields, that have the value.
        is_in_params: True if conditions on these params can fix the value.
        is_whole: True if only conditions on the outermost params can fix it.
        is_name: True if it is the meaning of a name.
    """

    kind: str
    detail: str
    paths: tuple[str, ...]
    is_in_params: bool = True
    is_whole: bool = False
    is_name: bool = False

    @property
    def names(self) -> set[str]:
        """The last names of the paths."""
        return {path.rpartition(".")[2] for path in self.paths}

    def is_fixed(self, fixed: FixedParams) -> bool:
        """Return True if the standing grant that fixes these params chooses this meaning.

        Two different values with the same name need a condition each.
        """
        if not self.is_in_params:
            return False
        if {path.partition(".")[0] for path in self.paths} <= fixed.whole:
            return True
        if self.is_whole:
            return False
        if self.kind == TWICE:
            return all(path in fixed.limited or _is_in(path, fixed.whole) for path in self.paths)
        return all(
            _is_in(path, fixed.exact) or (self.is_name and fixed.lists_name(path))
            for path in self.paths
        )


def _is_in(path: str, params: Collection[str]) -> bool:
    """Return True if the path is one of these params, or leads inside one of them."""
    return any(path == param or path.startswith(f"{param}.") for param in params)


@dataclass
class _Schema:
    """The parts of a tool's schema that show what values mean.

    Attributes:
        is_ours: True if the defaults in the schema can be trusted.
        unset: the params for which null is the tool's default.
    """

    root: Mapping[str, Any] = field(default_factory=dict)
    is_ours: bool = False
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

    def is_default(self, path: str, value: Any) -> bool:
        """Return True if this empty value is the tool's own default."""
        if value is None or not self.is_ours:
            return path in self.unset
        return any(form.get("default") == value for form in self.list_forms(path))

    def says_number(self, path: str) -> bool:
        types = [form.get("type") for form in self.list_forms(path)]
        return any(
            not _NUMBERS.isdisjoint(map(str, each if isinstance(each, list) else [each]))
            for each in types
        )

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
    schema = _Schema() if tool is None else _Schema(tool.schema, not tool.is_from_outside)
    if schema.is_ours:
        schema.unset = find_unset_params(schema.root, params)
    call = CallLeaves.of([params])
    shown = CallLeaves.of(each.get("after") or {} for each in targets)
    written = {_get_key(leaf, value) for leaf in call.leaves for value in leaf.entries}
    more = _read_all(shown, _Schema(), written)
    nulls = _find_emptied(targets, call.leaves) if targets else _find_nulls(call.leaves, schema)
    return [
        *_read_all(call, schema, frozenset()),
        *(replace(each, is_in_params=False) for each in more),
        *nulls,
        *_find_repeated(call.leaves, schema),
    ]


def _get_key(leaf: CallLeaf, value: Any) -> tuple[str, str]:
    return leaf.names[-1], repr(value)


def _read_all(
    call: CallLeaves, schema: _Schema, known: Collection[tuple[str, str]]
) -> Iterator[Meaning]:
    """Find the meanings of single values and names. Values outside of lists, and short lists, come
    first; if there are too many different values, one meaning says that others are not checked.

    Args:
        known: the values that are checked elsewhere.
    """
    yield from _read_names(call)
    yield from _read_texts(call, schema)
    seen, unread, params = set[tuple[tuple[str, ...], Any]](), call.unread, {*call.unread_params}
    for leaf in sorted(call.leaves, key=lambda each: (each.scope > 0, len(each.entries))):
        for value in leaf.entries:
            key = (leaf.names, value)
            if key in seen or (known and _get_key(leaf, value) in known):
                continue
            if len(seen) == MAX_VALUES:
                unread = leaf.path
                params.add(leaf.names[0])
                break
            seen.add(key)
            if meaning := _read(leaf, value, schema):
                yield meaning
    if unread:
        where = f"{name_place(unread)}further values are not checked"
        yield Meaning(UNLIMITED, where, tuple(sorted(params)), is_whole=True)


def _read_names(call: CallLeaves) -> Iterator[Meaning]:
    """Find the meanings of the names in objects, because names may be data."""
    secret = set(filter(has_token, call.names))
    wide = set(filter(_is_wide_name, call.names))
    for names in call.keys if secret or wide else ():
        path, place = ".".join(names), ".".join(names[:-1])
        if names[-1] in secret:
            where = quote_excerpt(place or "name of a param")
            yield Meaning(CREDENTIAL, where, (path,), is_name=True)
        elif names[-1] in wide:
            where = f"{name_place(place)}{quote_excerpt(names[-1])}"
            yield Meaning(UNLIMITED, where, (path,), is_name=True)


def _is_wide_name(name: str) -> bool:
    """Return True for a name that stands for all others. A place before a wildcard, as in `@/*`,
    is ordinary in a table of places."""
    is_place = "*" in name and any(char.isalpha() or char in "/\\" for char in name)
    return not is_place and name.strip() != _PERCENT and stands_for_all(name)


def _read_texts(call: CallLeaves, schema: _Schema) -> Iterator[Meaning]:
    """Find the credentials that are texts with JSON."""
    for names, text in call.texts:
        path = ".".join(names)
        if is_filled(text) and (names_password(names[-1]) or schema.says_credential(path)):
            yield Meaning(CREDENTIAL, quote_excerpt(path), (path,))


def _read(leaf: CallLeaf, value: Any, schema: _Schema) -> Meaning | None:
    """Return the meaning of a text or number by itself; None for ordinary values."""
    if value is None or isinstance(value, bool):
        return None
    kind = _find_kind(leaf, leaf.all_names, value, schema)
    if kind is None:
        return None
    is_own = not leaf.called or _find_kind(leaf, leaf.names[-1:], value, schema) == kind
    where = quote_excerpt(leaf.path)
    if kind == UNLIMITED:
        where = f"{name_place(leaf.path)}{quote_excerpt(str(value))}"
    return Meaning(kind, where, (leaf.path, *(() if is_own else leaf.named_by)))


def _find_kind(
    leaf: CallLeaf, names: tuple[str, ...], value: str | float, schema: _Schema
) -> str | None:
    """Return the kind of the meaning of a value with these names."""
    path, is_text = leaf.path, isinstance(value, str)
    if any(is_credential(name, value) for name in names) or (
        isinstance(value, str) and is_filled(value) and schema.says_credential(path)
    ):
        return CREDENTIAL
    is_all = is_text and schema.says_all(path, str(value))
    return UNLIMITED if is_all or _is_wide(names, value) else None


def _is_wide(names: tuple[str, ...], value: str | float) -> bool:
    """Return True if a value with these names has no limit."""
    if is_endless(value) and any(names_amount(name) or names_limit(name) for name in names):
        return True
    if not isinstance(value, str) or any(map(names_sign, names)):
        return False
    if value.strip() == _PERCENT and any(map(names_kind, names)):
        return False
    is_network = any(not _NETWORK.isdisjoint(split_name(name)) for name in names)
    if is_network and contains_all_addresses(value.strip()):
        return True
    return stands_for_all(value) or (any(map(names_pattern, names)) and matches_all(value))


def _find_emptied(
    targets: Sequence[Mapping[str, Any]], leaves: Sequence[CallLeaf]
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


def _find_nulls(leaves: Iterable[CallLeaf], schema: _Schema) -> Iterator[Meaning]:
    """Find the empty values of a request in amounts and end times, and the nulls in lists of
    texts."""
    for leaf in leaves:
        path, value = leaf.path, leaf.value
        paths = (path, *leaf.named_by)
        if isinstance(value, list):
            empty = sum(entry is None for entry in value)
            if empty and all(entry is None or isinstance(entry, str) for entry in value):
                yield Meaning(EMPTIED, f"{name_place(path)}{empty:,} of {len(value):,}", (path,))
        elif not _is_missing(value) or schema.is_default(path, value):
            continue
        elif any(map(names_end, leaf.all_names)):
            yield Meaning(UNLIMITED, f"{name_place(path)}no end", paths)
        elif any(map(names_amount, leaf.all_names)) and (
            value is None or schema.says_number(path) or any(map(_ends_with_amount, leaf.all_names))
        ):
            yield Meaning(EMPTIED, f"{name_place(path)}{_tell_missing(value)}", paths)


def _ends_with_amount(name: str) -> bool:
    """Return True if the last word of the name means an amount: `list_price`, not `price_list`."""
    found = _LAST_WORD.search(name[-_LONGEST_END:])
    return found is not None and names_amount(found[0])


def _is_missing(value: Any) -> bool:
    return _is_empty(value) or (isinstance(value, str) and value.strip() in _NULLS)


def _tell_missing(value: str | None) -> str:
    if value is None:
        return "null"
    return quote_excerpt(value) if value.strip() else "empty"


def _find_repeated(leaves: Iterable[CallLeaf], schema: _Schema) -> Iterator[Meaning]:
    for one, other in find_repeated(leaves, schema.lists):
        paths = (one.path, other.path)
        is_whole = one.path == other.path or bool(one.called or other.called)
        yield Meaning(TWICE, f"{_tell(one)}; {_tell(other)}", paths, is_whole=is_whole)


def _tell(leaf: CallLeaf) -> str:
    """Name the place and the value; for a credential, only the place."""
    if any(is_credential(name, leaf.value) for name in leaf.all_names):
        return quote_excerpt(leaf.path)
    return f"{name_place(leaf.path)}{quote_excerpt(tell_value(leaf.value))}"


def _is_empty(value: Any) -> bool:
    return value in EMPTY or (isinstance(value, str) and not value.strip())
