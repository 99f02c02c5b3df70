"""Targets that are no longer as their card shows them, so that its call could not start if it were approved."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from agents.approvals.current_records import RecordState, is_about_records
from agents.approvals.marks import get_family, get_targets
from agents.approvals.models import Approval
from agents.approvals.unstarted_cards import compute_effect_now
from agents.platform.row_ids import parse_row_id_or_none
from agents.runs.engine.cards import compute_digest
from tools.contract import ToolError

LOCAL = frozenset({"files", "schedule"})
"""Tools whose effect is computed again for the card, because that reads only local data."""
MAX_NAMED = 3


def describe_staleness(card: Approval, records: dict[int, RecordState]) -> str:
    """Explain why the call could not start as shown; empty if it could."""
    if is_about_records(card):
        return _join_problems(list(_list_problems(card, records)))
    if get_family(card) in LOCAL:
        return _compare_effect(card)
    return ""


def _list_problems(card: Approval, records: dict[int, RecordState]) -> Iterator[str]:
    for target in get_targets(card):
        row_id, label = parse_row_id_or_none(str(target.get("id"))), str(target.get("label"))
        if row_id is None:
            continue
        record = records.get(row_id)
        if record is None:
            yield f"{label} no longer exists"
        elif record.version != target.get("version"):
            yield f"{label} has changed since the request"


def _join_problems(problems: list[str]) -> str:
    if not problems:
        return ""
    more = f", and {len(problems) - MAX_NAMED} more" if len(problems) > MAX_NAMED else ""
    return ", ".join(islice(problems, MAX_NAMED)) + more


def _compare_effect(card: Approval) -> str:
    effect = compute_effect_now(card)
    if isinstance(effect, ToolError):
        return effect.message.rstrip(".")
    if effect.preview.problem:
        return effect.preview.problem.rstrip(".")
    is_same = compute_digest(card.tool_call, effect.preview.as_json()) == card.digest
    return "" if is_same else "The target has changed since the request"
