"""Find cards whose effect already exists, and the run or person that caused the effect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.approvals.current_calls import compute_effect_now
from agents.approvals.warnings.card_reading import (
    get_family,
    get_preview,
    is_about_records,
    is_done,
)
from agents.runs.engine.card_sentences import EXISTS, CallEffect
from agents.runs.models import Approval, ApprovalStatus, CallStatus
from tools.registries.records import RECORD_STORE

MAX_LISTED = 3
MAX_SEARCHED = 100
"""The maximum number of a record's changes, or of started calls, that are searched for the cause,
beginning with the newest."""


@dataclass(frozen=True)
class DoneTarget:
    """A target that already has the wanted values. `values` are pairs of a field's name and its
    value; it is empty if the target was to be deleted."""

    label: str
    values: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class DoneAlready:
    """The targets of a card that already have the wanted values, and the cause.

    Attributes:
        targets: the first three targets.
        more: the number of further targets.
        run_id, actor: the run that made the change, or else the person; None and empty if the cause
            is not known.
        at: the time of the change.
    """

    targets: tuple[DoneTarget, ...]
    more: int
    run_id: int | None = None
    actor: str = ""
    at: datetime | None = None


@dataclass(frozen=True)
class _Doing:
    """The change that gave one target its current values."""

    run_id: int | None
    actor: str
    at: datetime


def find_done(card: Approval, *, is_stale: bool) -> DoneAlready | None:
    """Return the targets that already have the values that the card wants; None if the card's call
    would still change something.

    Args:
        is_stale: True if the targets have changed since the card was created, so that its effect
            must be computed again.
    """
    preview = get_preview(card)
    if is_stale:
        effect = compute_effect_now(card)
        preview = effect.preview.as_json() if isinstance(effect, CallEffect) else {}
    if not is_done(preview):
        return None
    targets = preview["targets"]
    shown = tuple(
        DoneTarget(str(each["label"]), _list_values(each)) for each in targets[:MAX_LISTED]
    )
    doing = _find_change(card, targets[0]) or _find_call(card, targets[0])
    done = DoneAlready(shown, len(targets) - len(shown))
    return (
        done
        if doing is None
        else DoneAlready(shown, done.more, doing.run_id, doing.actor, doing.at)
    )


def is_shown_as_done(card: Approval) -> bool:
    """Return True if the card itself says that its effect already exists."""
    return is_done(get_preview(card))


def _list_values(target: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return () if target["after"] == {EXISTS: False} else tuple(target["after"].items())


def _find_change(card: Approval, target: dict[str, Any]) -> _Doing | None:
    """Find the newest change in a record's history that gave the record the wanted values."""
    if not is_about_records(card) or not str(target["id"]).isdecimal():
        return None
    own = RECORD_STORE.get().get_changes(card.organization_id).filter(record_id=int(target["id"]))
    for change in own.order_by("-pk")[:MAX_SEARCHED]:
        if _has_values(change.after, target["after"]):
            run_id = int(change.run_id) if change.run_id.isdecimal() else None
            return _Doing(run_id, change.actor, change.at)
    return None


def _find_call(card: Approval, target: dict[str, Any]) -> _Doing | None:
    """Find the newest approved call of a tool of the same family that changed the target to the
    wanted values."""
    started = Approval.objects.filter(
        organization_id=card.organization_id,
        status=ApprovalStatus.CONSUMED,
        tool_call__status=CallStatus.SUCCEEDED,
        tool_call__tool__startswith=f"{get_family(card)}.",
    )
    found = [
        _Doing(run_id, "", at)
        for run_id, at, preview in started.order_by("-pk").values_list(
            "run_id", "consumed_at", "preview"
        )[:MAX_SEARCHED]
        if at is not None and any(_did(each, target) for each in _list_targets(preview))
    ]
    return max(found, key=lambda doing: doing.at, default=None)


def _list_targets(preview: Any) -> Iterator[dict[str, Any]]:
    targets = preview.get("targets") if isinstance(preview, dict) else None
    return (each for each in targets or () if isinstance(each, dict))


def _did(each: dict[str, Any], target: dict[str, Any]) -> bool:
    key = "id" if target["id"] else "label"
    if each.get(key) != target[key]:
        return False
    if target["after"] == {EXISTS: False}:
        return bool(each.get("before")) and not each.get("after")
    return _has_values(each.get("after") or {}, target["after"])


def _has_values(after: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(name in after and after[name] == value for name, value in wanted.items())
