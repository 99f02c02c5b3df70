"""Refuse approvals whose sender has not seen the marks of the card."""

from __future__ import annotations

from dataclasses import replace

from agents.accounts.models import Membership
from agents.approvals.decisions import Decision
from agents.approvals.own_cards import require_approver
from agents.approvals.votes import require_vote
from agents.approvals.warnings.card_marks import load_marks
from agents.approvals.warnings.employee_words import note_words, select_words
from agents.approvals.warnings.marks import MUST_BE_SEEN, name_marks
from agents.platform.refusals import MarksNotSeen
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus


def refuse_unseen(member: Membership, approval_id: int, decision: Decision) -> Decision:
    """Raise MarksNotSeen if the card has marks that must be seen and the decision does not name
    them; otherwise return the decision with the card's marks.

    A card that is not waiting, or has another digest, is not checked here, but by the decision
    itself.

    Raises:
        Forbidden: the member may not approve the card, whatever they have seen.
        MarksNotSeen
    """
    require_approver(member)
    waiting = Approval.objects.filter(
        organization_id=member.organization_id,
        pk=approval_id,
        digest=decision.digest,
        kind=ApprovalKind.APPROVAL,
        status=ApprovalStatus.PENDING,
    )
    rows = waiting.select_related("tool_call", "run__organization")
    card = rows.annotate(employee_words=select_words()).first()
    if card is None:
        return decision
    note_words(card.organization_id, {card.digest: card.employee_words or ""})
    marks = load_marks([card]).get(card.pk, ())
    needed = MUST_BE_SEEN.difference(decision.seen_marks)
    if unseen := [mark for mark in marks if mark.kind in needed]:
        require_vote(member, member.organization, card, decision.decision_id)
        raise MarksNotSeen(
            f"look at what is marked on this card first: {name_marks(unseen)}",
            approval_status=card.status,
            marks=[mark.as_json() for mark in unseen],
        )
    return replace(decision, marks=marks)
