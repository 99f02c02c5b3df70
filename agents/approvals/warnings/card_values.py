"""The values that a card shows, each with its name: the values of its targets or of its request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tools.contract.credential_values import may_be_secret
from tools.contract.param_words import NamedThing, find_named
from tools.contract.wide_values import stands_for_all

CHANGED, CREATED, DELETED, REQUESTED = "", "created", "deleted", "requested"
"""The kinds of values: changed values have a value before and after, created and deleted values
have only one of them, and requested values are those of a request."""
PATH_SEPARATOR = " · "
EMPTY: tuple[Any, ...] = (None, "", [], {})
MAX_DEPTH = 6
MAX_LEAVES = 400
"""The maximum number of values of one param that are listed one by one; further values are shown as
JSON."""
FAR_LARGER = 10


class NamedValue(NamedTuple):
    """One value with its name; `before` or `after` is None if there is no value before or after the
    change."""

    name: str
    before: Any
    after: Any

    @property
    def current(self) -> Any:
        """The new value, or the old value if there is no new one."""
        return self.before if self.after in EMPTY else self.after

    @property
    def is_emptied(self) -> bool:
        """True if there is an old value and no new one."""
        return self.after in EMPTY and self.before not in EMPTY


def list_target_values(target: Mapping[str, Any]) -> list[NamedValue]:
    """List the values of a stored target, in the order of its preview."""
    before, after = target.get("before") or {}, target.get("after") or {}
    return [
        NamedValue(name, before.get(name), after.get(name))
        for name in dict.fromkeys([*before, *after])
    ]


def list_request_values(params: Mapping[str, Any]) -> list[NamedValue]:
    """List the values of a request. Values inside objects, and inside lists of objects, are listed
    one by one, with their whole path as name."""
    return [
        NamedValue(name, None, value)
        for param, whole in params.items()
        for name, value in _list_param(str(param), whole)
    ]


def _list_param(name: str, whole: Any) -> list[tuple[str, Any]]:
    leaves: list[tuple[str, Any]] = []
    for leaf in _walk_leaves(name, whole, MAX_DEPTH):
        leaves.append(leaf)
        if len(leaves) > MAX_LEAVES:
            return [(name, whole)]
    return leaves


def _walk_leaves(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    children: Sequence[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        children = list(value.items())
    elif isinstance(value, list) and any(isinstance(one, (Mapping, list)) for one in value):
        children = list(enumerate(value, start=1))
    if not children or not depth:
        yield name, value
    for key, child in children if depth else ():
        yield from _walk_leaves(f"{name}{PATH_SEPARATOR}{key}", child, depth - 1)


def find_row_state(targets: Sequence[Mapping[str, Any]]) -> str:
    """Return DELETED or CREATED if every target is deleted or created; otherwise CHANGED."""
    if all(target.get("before") and not target.get("after") for target in targets):
        return DELETED
    is_created = all(target.get("after") and not target.get("before") for target in targets)
    return CREATED if is_created else CHANGED


def find_shared_values(targets: Sequence[Mapping[str, Any]]) -> list[NamedValue]:
    """Find the values that all targets share; none for a single target."""
    if len(targets) < 2:
        return []
    first, *others = targets
    return [
        value
        for value in list_target_values(first)
        if all(_has_value(target, value) for target in others)
    ]


def find_names_shown_once(targets: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Find the names of the values that are not repeated for each target: values that all targets
    share, and the value that is each target's label."""
    names = {value.name for value in find_shared_values(targets)}
    state = find_row_state(targets)
    if state != CHANGED and len(targets) > 1:
        side = "after" if state == CREATED else "before"
        names |= {
            name
            for name in targets[0][side]
            if all(name in each[side] and each[side][name] == each.get("label") for each in targets)
        }
    return frozenset(names)


def _has_value(target: Mapping[str, Any], value: NamedValue) -> bool:
    before, after = target.get("before") or {}, target.get("after") or {}
    name = value.name
    is_included = name in before or name in after
    return is_included and before.get(name) == value.before and after.get(name) == value.after


def must_be_read(value: NamedValue, kind: str) -> bool:
    """Return True if the value alone shows that it must be read before approval: it is named like a
    destination, an amount or the like, it may be a credential, or it empties or widens something.

    Args:
        kind: CHANGED, CREATED, DELETED or REQUESTED.
    """
    return (
        any(find_named(name) != NamedThing.NOTHING for name in value.name.split(PATH_SEPARATOR))
        or may_be_secret(value.current)
        or _is_any(value.after)
        or (kind == REQUESTED and value.after in EMPTY)
        or (kind == CHANGED and (value.is_emptied or _is_wider(value.before, value.after)))
    )


def _is_any(value: Any) -> bool:
    """Return True for a wildcard, alone or as the entry of a list."""
    entries = value if isinstance(value, list) else [value]
    return any(isinstance(one, str) and stands_for_all(one) for one in entries)


def _is_wider(before: Any, after: Any) -> bool:
    """Return True if a list or an object keeps its entries and gets additional ones, a boolean
    becomes true, or a number becomes at least ten times as large."""
    if isinstance(after, bool) or isinstance(before, bool):
        return after is True and before is not True
    if isinstance(after, (int, float)) and isinstance(before, (int, float)):
        return abs(after) >= FAR_LARGER * abs(before) and after != before
    if isinstance(after, list) and isinstance(before, list):
        return len(after) > len(before) and all(one in after for one in before)
    if isinstance(after, dict) and isinstance(before, dict):
        return len(after) > len(before) and before.keys() <= after.keys()
    return False
