"""The differences between two cards of the same call, by the names of the changed fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from agents.approvals.models import Approval

MAX_CHANGES = 20
MAX_LABELS = 5
INSIDE = " · "
WOULD_BE = " as it would be"

Path = tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """One field of a target; `before` and `after` are JSON values, None where there is none."""

    name: str
    before: Any
    after: Any

    @property
    def differs(self) -> bool:
        return bool(self.before != self.after)


def find_differences(old: Approval, new: Approval) -> list[Change]:
    """Return at most 20 differences: first those of the params, then those of the effect beyond them."""
    params = list(_of_params(old, new))
    said = {(change.name.rpartition(INSIDE)[2], change.after) for change in params if _is_simple(change.after)}
    effect = (change for change in _of_effect(old, new) if not _is_said(change, said))
    found = list(islice((*params, *effect), MAX_CHANGES))
    if not found and old.sentence != new.sentence:
        return [Change("sentence", old.sentence.replace("**", ""), new.sentence.replace("**", ""))]
    return found


def _of_params(old: Approval, new: Approval) -> Iterator[Change]:
    before, after = dict(_leaves(old.params)), dict(_leaves(new.params))
    for path in dict.fromkeys([*before, *after]):
        if before.get(path) != after.get(path):
            yield Change(INSIDE.join(path), before.get(path), after.get(path))


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and (value or not path):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key)))
    else:
        yield path, value


def _of_effect(old: Approval, new: Approval) -> Iterator[Change]:
    if old.level != new.level:
        yield Change("level", old.level, new.level)
    if _is_blind(old) or _is_blind(new):
        yield from _of_blindness(old, new)
        return
    before, after = _targets(old), _targets(new)
    gone = [target["label"] for key, target in before.items() if key not in after]
    added = [target["label"] for key, target in after.items() if key not in before]
    if gone:
        yield Change("no longer affected", _join_labels(gone), None)
    if added:
        yield Change("newly affected", None, _join_labels(added))
    for key, target in after.items():
        earlier = before.get(key)
        if earlier is not None and earlier != target:
            yield from _of_target("" if len(after) == 1 else f"{target['label']}: ", earlier, target)
    was, is_now = _preview(old).get("reversible"), _preview(new).get("reversible")
    if was != is_now:
        yield Change("reversible", was, is_now)


def _of_blindness(old: Approval, new: Approval) -> Iterator[Change]:
    """Compare where one of the two effects has no preview."""
    was, is_now = _preview(old).get("problem"), _preview(new).get("problem")
    if not _is_blind(old):
        yield Change("effect", "as on the earlier card", "no longer previewed")
    elif not _is_blind(new):
        yield Change("effect", "not previewed", "as on this card")
    elif was != is_now:
        yield Change("problem", was, is_now)


def _of_target(label: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Change]:
    was, is_now = old.get("before") or {}, new.get("before") or {}
    for name in was:
        if name in is_now and was[name] != is_now[name]:
            yield Change(f"{label}{name} as it is now", was[name], is_now[name])
    was, is_now = old.get("after") or {}, new.get("after") or {}
    for name in dict.fromkeys([*was, *is_now]):
        if was.get(name) != is_now.get(name):
            yield Change(f"{label}{name}{WOULD_BE}", was.get(name), is_now.get(name))


def _is_said(change: Change, said: set[tuple[str, Any]]) -> bool:
    """Check if the change only repeats one of the params."""
    name = change.name.removesuffix(WOULD_BE).rpartition(": ")[2]
    return name != change.name and _is_simple(change.after) and (name, change.after) in said


def _is_simple(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def _join_labels(labels: list[str]) -> str:
    more = len(labels) - MAX_LABELS
    return ", ".join(labels[:MAX_LABELS]) + (f" and {more} more" if more > 0 else "")


def _preview(approval: Approval) -> dict[str, Any]:
    return approval.preview if isinstance(approval.preview, dict) else {}


def _is_blind(approval: Approval) -> bool:
    return bool(_preview(approval).get("problem"))


def _targets(approval: Approval) -> dict[str, dict[str, Any]]:
    return {target.get("id") or target.get("label", ""): target for target in _preview(approval).get("targets", [])}
