"""The differences between two cards of the same call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.approvals.warnings.card_reading import get_preview
from agents.approvals.warnings.card_values import EMPTY, PATH_SEPARATOR
from agents.platform.value_text import MAX_LENGTH, format_json_value
from agents.runs.models import Approval
from agents.web.text.safe_text import render_value
from agents.web.text.text_diff import DiffLine, FoldedDiff, build_diff, fold_diff, mark_characters
from tools.contract import REFUSED
from tools.contract.sentences import quote_names

MAX_CHANGES = 20
MAX_LABELS = 5
BEFORE_SUFFIX = " (current value)"
AFTER_SUFFIX = " (new value)"

VALUE = '<bdi class="value">{}</bdi>'

WORDS = '<span class="small">{}</span>'

Path = tuple[str, ...]


class Words(str):
    """Gadget's own words in place of a value, shown without the frame of a value."""

    __slots__ = ()


NOT_CHANGED = Words("not changed")
"""The words that replace the new value of a field that the call leaves unchanged."""


@dataclass(frozen=True)
class Change:
    """One field with its JSON values before and after; None for a missing value."""

    name: str
    before: Any
    after: Any

    @property
    def differs(self) -> bool:
        return bool(self.before != self.after)

    @property
    def is_emptied(self) -> bool:
        """True if the change removes the value without a replacement."""
        return self.after in EMPTY and self.before not in EMPTY

    @property
    def short_value(self) -> str:
        """The new value as text or, if there is none, the old value."""
        return format_json_value(self.before if self.after in EMPTY else self.after)

    @cached_property
    def diff(self) -> list[DiffLine]:
        """A unified diff of two texts that are too long to be compared side by side; otherwise
        empty."""
        before, after = self.before, self.after
        if (
            not (
                isinstance(before, str)
                and isinstance(after, str)
                and before
                and after
                and self.differs
            )
            or isinstance(before, Words)
            or isinstance(after, Words)
        ):
            return []
        is_long = (
            max(len(before), len(after)) > MAX_LENGTH
            or "\n" in before.strip()
            or "\n" in after.strip()
        )
        return build_diff(before, after) if is_long else []

    @cached_property
    def folded_diff(self) -> FoldedDiff | None:
        """The start and the end of a diff that is too long to be shown whole."""
        return fold_diff(self.diff)

    @cached_property
    def diff_values(self) -> tuple[SafeString, SafeString]:
        """Both values as HTML; in short texts the removed and added characters are marked."""
        before, after = self.before, self.after
        if isinstance(before, Words) or isinstance(after, Words):
            return _render_side(before), _render_side(after)
        is_short = (
            isinstance(before, str)
            and isinstance(after, str)
            and max(len(before), len(after)) <= MAX_LENGTH
        )
        if not (is_short and before and after and self.differs) or "\n" in before + after:
            return render_value(before), render_value(after)
        if before.strip() != before or after.strip() != after:
            return render_value(before), render_value(after)
        removed, added = mark_characters(before, after)
        return format_html(VALUE, removed), format_html(VALUE, added)


def _render_side(value: Any) -> SafeString:
    return format_html(WORDS, value) if isinstance(value, Words) else render_value(value)


def find_differences(old: Approval, new: Approval) -> list[Change]:
    """List at most 20 differences: first in the params, then in the effect where the params do not
    explain them. If there are more, the last entry says how many.

    If the two cards look the same, but something else about a target differs, one entry says so.
    """
    params = list(_compare_params(old, new))
    param_changes = {
        (change.name.rpartition(PATH_SEPARATOR)[2], change.after)
        for change in params
        if _is_simple(change.after)
    }
    effect = (
        change for change in _compare_effects(old, new) if not _repeats_param(change, param_changes)
    )
    found = [*params, *effect]
    if not found and old.sentence != new.sentence:
        return [Change("sentence", quote_names(old.sentence), quote_names(new.sentence))]
    if len(found) <= MAX_CHANGES:
        return found
    left_out = len(found) - MAX_CHANGES + 1
    return [
        *found[: MAX_CHANGES - 1],
        Change("more", None, Words(f"{left_out:,} more differences")),
    ]


def _compare_params(old: Approval, new: Approval) -> Iterator[Change]:
    before, after = dict(_list_leaves(old.params)), dict(_list_leaves(new.params))
    for path in dict.fromkeys([*before, *after]):
        if before.get(path) != after.get(path):
            yield Change(PATH_SEPARATOR.join(path), before.get(path), after.get(path))


def _list_leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and (value or not path):
        for key, inner in value.items():
            yield from _list_leaves(inner, (*path, str(key)))
    else:
        yield path, value


def _compare_effects(old: Approval, new: Approval) -> Iterator[Change]:
    if old.level != new.level:
        yield Change("level", old.level, new.level)
    if _lacks_preview(old) or _lacks_preview(new):
        yield from _compare_missing_previews(old, new)
        return
    before, after = _map_targets(old), _map_targets(new)
    removed = [target["label"] for key, target in before.items() if key not in after]
    added = [target["label"] for key, target in after.items() if key not in before]
    if removed:
        yield Change("no longer affected", _join_labels(removed), None)
    if added:
        yield Change("newly affected", None, _join_labels(added))
    yield from _compare_shared_targets(before, after)
    for name in ("effect", "reversible"):
        was, is_now = get_preview(old).get(name), get_preview(new).get(name)
        if was != is_now:
            yield Change(name, was, is_now)


def _compare_shared_targets(
    before: Mapping[str, dict[str, Any]], after: Mapping[str, dict[str, Any]]
) -> Iterator[Change]:
    """Compare the targets that both cards affect; a change that all of them share is listed
    once."""
    compared = [
        (target["label"], list(_compare_targets(before[key], target)))
        for key, target in after.items()
        if key in before
    ]
    if len(after) == 1 or (
        len(compared) == len(after) and _are_alike([each for _, each in compared])
    ):
        yield from compared[0][1] if compared else ()
        return
    for label, changes in compared:
        for change in changes:
            yield replace(change, name=f"{label}: {change.name}")


def _are_alike(lists: Sequence[Sequence[Change]]) -> bool:
    return all(each == lists[0] for each in lists)


def _compare_missing_previews(old: Approval, new: Approval) -> Iterator[Change]:
    """Compare two effects if at least one of them has no preview."""
    was, is_now = get_preview(old).get("problem"), get_preview(new).get("problem")
    if get_preview(new).get("effect") == REFUSED:
        yield Change(
            "effect",
            None if _lacks_preview(old) else Words("shown on the earlier card"),
            Words("no longer possible"),
        )
    elif not _lacks_preview(old):
        yield Change("effect", Words("shown on the earlier card"), Words("no preview"))
    elif not _lacks_preview(new):
        yield Change("effect", Words("no preview"), Words("shown on this card"))
    elif was != is_now:
        yield Change("problem", was, is_now)


def _compare_targets(old: dict[str, Any], new: dict[str, Any]) -> Iterator[Change]:
    """Yield the differences between the two states of a target; if only its version differs,
    yield an entry that says so."""
    found = list(_compare_values(old, new))
    was, is_now = old.get("label"), new.get("label")
    if was != is_now and (was, is_now) not in [(each.before, each.after) for each in found]:
        found.insert(0, Change("target", was, is_now))
    if not found and old != new:
        found.append(Change("other values", Words("not shown"), Words("changed meanwhile")))
    yield from found


def _compare_values(old: dict[str, Any], new: dict[str, Any]) -> Iterator[Change]:
    had, has = old.get("before") or {}, new.get("before") or {}
    was, is_now = old.get("after") or {}, new.get("after") or {}
    for name in dict.fromkeys([*had, *has]):
        in_both = name in had and name in has
        if had.get(name) != has.get(name) and (in_both or (name in was) == (name in is_now)):
            yield Change(f"{name}{BEFORE_SUFFIX}", had.get(name), has.get(name))
    for name in dict.fromkeys([*was, *is_now]):
        before, after = was.get(name, NOT_CHANGED), is_now.get(name, NOT_CHANGED)
        if before != after:
            yield Change(f"{name}{AFTER_SUFFIX}", before, after)


def _repeats_param(change: Change, param_changes: set[tuple[str, Any]]) -> bool:
    """Return True if the change only repeats a changed param."""
    name = change.name.removesuffix(AFTER_SUFFIX).rpartition(": ")[2]
    after = None if change.after is NOT_CHANGED else change.after
    return name != change.name and _is_simple(after) and (name, after) in param_changes


def _is_simple(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def _join_labels(labels: list[str]) -> str:
    more = len(labels) - MAX_LABELS
    return ", ".join(labels[:MAX_LABELS]) + (f" and {more} more" if more > 0 else "")


def _lacks_preview(approval: Approval) -> bool:
    return bool(get_preview(approval).get("problem"))


def _map_targets(approval: Approval) -> dict[str, dict[str, Any]]:
    return {
        target.get("id") or target.get("label", ""): target
        for target in get_preview(approval).get("targets", [])
    }
