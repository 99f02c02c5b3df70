"""Bulk decisions: each card is decided separately, by its digest and with its own outcome."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

from agents.accounts.models import Membership, Organization
from agents.approvals.decisions import Decision, approve, deny, undo
from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.approvals.stale_targets import describe_local_staleness
from agents.approvals.warnings.individual_cards import STALE, WaitingCard, find_individual_reasons
from agents.approvals.warnings.marks import read_cards
from agents.platform.refusals import Invalid, Refusal


@dataclass(frozen=True)
class DecisionOutcome:
    """The outcome of one decision among many."""

    approval_id: int
    status: int
    code: str = ""
    detail: str = ""


def decide_many(
    member: Membership, items: Sequence[tuple[int, str, Decision]], bulk_id: UUID | None = None
) -> list[DecisionOutcome]:
    """Decide card by card, and return an outcome for each; some cards must be approved individually.

    Args:
        bulk_id: marks several calls as parts of one bulk decision; without it, two or more items are one.
    """
    bulk_id = bulk_id or (uuid4() if len(items) > 1 else None)
    items = [(pk, action, replace(decision, bulk_id=bulk_id)) for pk, action, decision in items]
    approved = {approval_id for approval_id, action, _ in items if action == "approve"}
    reasons = find_bulk_refusals(member.organization, approved) if approved else {}
    return [_decide_one(member, item, reasons.get(item[0], ())) for item in items]


def find_bulk_refusals(organization: Organization, ids: Collection[int]) -> dict[int, tuple[str, ...]]:
    """Find the reasons why the waiting approvals with these ids are refused in bulk, as labels by card id.

    Cards of tools that read local data are also compared with the effect that their call would have now.
    """
    waiting = Approval.objects.filter(
        organization_id=organization.pk, pk__in=ids, kind=ApprovalKind.APPROVAL, status=ApprovalStatus.PENDING
    )
    cards = list(waiting.select_related("tool_call"))
    columns = [WaitingCard(card.pk, card.level, card.digest, card.tool_call.created_at) for card in cards]
    readings = read_cards(organization.pk, {card.pk: card.digest for card in cards})
    found = find_individual_reasons(organization, columns, readings)
    stale = {card.pk: (STALE,) for card in cards if card.pk not in found and describe_local_staleness(card)}
    return found | stale


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
            if approve(member, approval_id, decision).status == ApprovalStatus.PENDING:
                return DecisionOutcome(
                    approval_id, 202, "voted", "your approval counts, and more people must approve it"
                )
        else:
            raise Invalid("action", f"action is {action!r}, but must be 'approve' or 'deny'")
    except Refusal as refusal:
        return DecisionOutcome(approval_id, refusal.status, refusal.code, refusal.detail)
    return DecisionOutcome(approval_id, 200)
