"""Decisions in bulk: each card is decided separately, by its digest and with its own outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.accounts.models import Membership
from agents.approvals.decisions import Decision, approve, deny, undo
from agents.approvals.individual_cards import find_bulk_refusals
from agents.platform.refusals import Invalid, Refusal


@dataclass(frozen=True)
class DecisionOutcome:
    """The outcome of one decision among many."""

    approval_id: int
    status: int
    code: str = ""
    detail: str = ""


def decide_many(member: Membership, items: Sequence[tuple[int, str, Decision]]) -> list[DecisionOutcome]:
    """Decide card by card, and return an outcome for each; some cards must be approved individually."""
    approved = {approval_id for approval_id, action, _ in items if action == "approve"}
    reasons = find_bulk_refusals(member.organization, approved) if approved else {}
    return [_decide_one(member, item, reasons.get(item[0], ())) for item in items]


def undo_many(member: Membership, approval_ids: Sequence[int]) -> list[DecisionOutcome]:
    """Undo approvals one by one, and return an outcome for each."""
    outcomes = []
    for approval_id in approval_ids:
        try:
            undo(member, approval_id)
        except Refusal as refusal:
            outcomes.append(DecisionOutcome(approval_id, refusal.status, refusal.code, refusal.detail))
        else:
            outcomes.append(DecisionOutcome(approval_id, 200))
    return outcomes


def _decide_one(member: Membership, item: tuple[int, str, Decision], reasons: Sequence[str]) -> DecisionOutcome:
    approval_id, action, decision = item
    try:
        if action == "deny":
            deny(member, approval_id, decision)
        elif action == "approve" and reasons:
            raise Invalid("action", f"this card must be approved individually: {', '.join(reasons)}")
        elif action == "approve":
            approve(member, approval_id, decision)
        else:
            raise Invalid("action", f"action is {action!r}, but must be 'approve' or 'deny'")
    except Refusal as refusal:
        return DecisionOutcome(approval_id, refusal.status, refusal.code, refusal.detail)
    return DecisionOutcome(approval_id, 200)
