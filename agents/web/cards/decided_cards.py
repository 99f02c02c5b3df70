"""Cards of the history: decided approvals with their outcomes, loaded together for a whole page."""

from __future__ import annotations

from collections.abc import Iterable

from agents.approvals.warnings.card_marks import load_marks
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus
from agents.web.cards.call_reports import load_reports
from agents.web.cards.cards import Card, find_call_tool

WITH_REPORT = (ApprovalStatus.CONSUMED, ApprovalStatus.CANCELLED, ApprovalStatus.ANSWERED)
"""The states of a card whose call may have a report; a resolved unknown outcome is cancelled or
answered."""


def build_decided_cards(approvals: Iterable[Approval]) -> list[Card]:
    """Build the cards of decided approvals of one organization, whose call and run are loaded
    already, in at most three queries."""
    approvals = list(approvals)
    marks = load_marks(approvals)
    started = [each for each in approvals if each.kind != ApprovalKind.QUESTION]
    reports = load_reports({each.tool_call_id for each in started if each.status in WITH_REPORT})
    replaced = {each.tool_call_id for each in approvals if each.status == ApprovalStatus.SUPERSEDED}
    newest = _load_newest_cards(replaced) if replaced else {}
    return [
        Card(
            approval,
            approval.tool_call,
            approval.run,
            find_call_tool(approval.tool_call),
            report_text=reports.get(approval.tool_call_id, ""),
            successor=newest.get(approval.tool_call_id)
            if approval.status == ApprovalStatus.SUPERSEDED
            else None,
            marks=marks.get(approval.pk, ()),
        )
        for approval in approvals
    ]


def _load_newest_cards(call_ids: set[int]) -> dict[int, Approval]:
    """Load the newest card of each of these calls, without its preview."""
    rows = Approval.objects.filter(tool_call_id__in=call_ids).order_by("sequence")
    return {
        card.tool_call_id: card for card in rows.only("tool_call_id", "sequence", "status", "kind")
    }
