"""Find cards whose call could not start even if it were approved, because its tool or targets have
changed."""

from __future__ import annotations

from collections.abc import Mapping

from agents.approvals.current_calls import compute_effect_now
from agents.approvals.warnings.card_reading import (
    MAX_COMPARED,
    get_family,
    get_targets,
    is_about_records,
    read_card,
)
from agents.approvals.warnings.current_records import RecordState, describe_problems
from agents.employees.toolboxes import load_toolbox
from agents.runs.engine.cards import compute_digest
from agents.runs.models import Approval, ToolCall
from tools.contract import Tool, ToolError
from tools.contract.outside_text import quote_excerpt

LOCAL = frozenset({"files", "schedule"})
"""The families of tools whose effect is computed again for the card, because they read only local
data."""
MAX_PROBLEM = 300


def find_staleness(card: Approval, records: Mapping[int, RecordState]) -> str | None:
    """Return the reason why the card's call could not start as shown; None if it could."""
    problems = describe_problems(read_card(card).records, records)
    return problems or (_compare_effect(card) if _tells_fact(card) else find_local_staleness(card))


def find_tool_staleness(call: ToolCall, tool: Tool | None) -> str | None:
    """Return the reason why the current version of the tool could not run the call as shown; None
    if it could."""
    if tool is None:
        withheld = load_toolbox(call.organization_id).policy.withheld
        return withheld.get(
            call.tool, f"The tool {quote_excerpt(call.tool)} is no longer available."
        )
    if tool.definition_hash != call.definition_hash:
        return "The tool has changed since this request. If you approve, you are asked again for the new version."
    return None


def find_local_staleness(card: Approval) -> str | None:
    """Compute the effect of a local tool's call again, and return the reason why the call could not
    start as shown. Return None if it could, or if the tool is not local."""
    return _compare_effect(card) if get_family(card) in LOCAL else None


def _tells_fact(card: Approval) -> bool:
    """Return True if a card about records shows a yes or no that is not a value of the record, such
    as whether a list is new."""
    return is_about_records(card) and any(
        isinstance(value, bool) and name not in (target.get("before") or {})
        for target in get_targets(card)[:MAX_COMPARED]
        for name, value in (target.get("after") or {}).items()
    )


def _compare_effect(card: Approval) -> str | None:
    effect = compute_effect_now(card)
    if isinstance(effect, ToolError):
        return quote_excerpt(effect.message.rstrip("."), MAX_PROBLEM)
    if effect.preview.problem:
        return quote_excerpt(effect.preview.problem.rstrip("."), MAX_PROBLEM)
    is_same = compute_digest(card.tool_call, effect.preview.as_json()) == card.digest
    return None if is_same else "The target has changed since the request"
