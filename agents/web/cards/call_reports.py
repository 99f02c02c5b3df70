"""The progress and result of a decided card's call, as the card shows them."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models.fields.json import KT

from agents.approvals.models import Approval, ApprovalStatus
from agents.runs.models import CallStatus, ToolCall

MAX_LENGTH = 1000


@dataclass(frozen=True)
class CallReport:
    """A call's progress or result. `state` (going, good or bad) chooses the icon."""

    state: str
    text: str


def describe_call(approval: Approval, status: str, report_text: str, *, is_undoable: bool) -> CallReport | None:
    """Describe the card's call; None if this card did not start it, or the approval can still be undone.

    Args:
        status: the call's current status.
        report_text: the call's report, if it has ended.
        is_undoable: the approval can still be undone.
    """
    if approval.status == ApprovalStatus.APPROVED:
        return None if is_undoable else CallReport("going", "Not started yet.")
    if approval.status != ApprovalStatus.CONSUMED:
        return None
    if status == CallStatus.EXECUTING:
        return CallReport("going", "Running.")
    if status == CallStatus.OUTCOME_UNKNOWN:
        return CallReport("bad", "We don't know whether it happened.")
    state, word = ("good", "Succeeded") if status == CallStatus.SUCCEEDED else ("bad", "Failed")
    return CallReport(state, f"{word}: {report_text}" if report_text else f"{word}.")


def load_report(call_id: int) -> str:
    """Load the error message of a call's result, or else its summary, without the rest of the result."""
    parts = ToolCall.objects.annotate(failure=KT("result__error__message"), summary=KT("result__summary"))
    failure, summary = parts.values_list("failure", "summary").get(pk=call_id)
    return str(failure or summary or "")[:MAX_LENGTH]
