"""Decisions in bulk: each card is decided separately, by its digest and with its own outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.accounts.models import Membership
from agents.approvals.decisions import Decision, approve, deny, find_card, undo
from agents.approvals.marks import read_card
from agents.approvals.models import Approval
from agents.approvals.reach import reaches_far
from agents.approvals.warnings import has_warning
from agents.platform.refusals import Invalid, Refusal
from tools.contract import Level


@dataclass(frozen=True)
class DecisionOutcome:
    """The outcome of one decision among many."""

    approval_id: int
    status: int
    code: str = ""
    detail: str = ""


def decide_many(member: Membership, items: Sequence[tuple[int, str, Decision]]) -> list[DecisionOutcome]:
    """Decide card by card, and return an outcome for each; destructive calls must be approved one at a time."""
    return [_decide_one(member, approval_id, action, decision) for approval_id, action, decision in items]


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


def _decide_one(member: Membership, approval_id: int, action: str, decision: Decision) -> DecisionOutcome:
    try:
        if action == "deny":
            deny(member, approval_id, decision)
        elif action == "approve":
            _refuse_in_bulk(find_card(member, approval_id), member)
            approve(member, approval_id, decision)
        else:
            raise Invalid("action", f"action is {action!r}, but must be 'approve' or 'deny'")
    except Refusal as refusal:
        return DecisionOutcome(approval_id, refusal.status, refusal.code, refusal.detail)
    return DecisionOutcome(approval_id, 200)


def _refuse_in_bulk(card: Approval, member: Membership) -> None:
    if card.level == Level.DESTRUCTIVE:
        raise Invalid("action", "a destructive call must be approved individually")
    if reaches_far(card):
        raise Invalid("action", "a call that affects this many objects must be approved individually")
    if has_warning(card) or (member.organization.restored_at is not None and card.warning):
        raise Invalid("action", "a card with a warning must be approved individually")
    if card.level == Level.WRITE and read_card(card).folds_parts:
        raise Invalid("action", "a card with shortened values or a long list must be approved individually")
