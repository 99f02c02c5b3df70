"""The progress and result of the call that a decided card let start, as the card shows them."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models.fields.json import KT

from agents.approvals.models import Approval, ApprovalStatus
from agents.runs.models import CallStatus, ToolCall

LONGEST = 1000


@dataclass(frozen=True)
class CallReport:
    """A call's progress or result in words, and their look: going, good or bad."""

    look: str
    words: str


def describe_call(approval: Approval, status: str, reported: str, *, is_graced: bool) -> CallReport | None:
    """Describe the card's call; None if the card did not let it start, or the approval can still be undone.

    Args:
        status: the call's current status.
        reported: the call's report, if it has ended.
    """
    if approval.status == ApprovalStatus.APPROVED:
        return None if is_graced else CallReport("going", "Not started yet.")
    if approval.status != ApprovalStatus.CONSUMED:
        return None
    if status == CallStatus.EXECUTING:
        return CallReport("going", "Running.")
    if status == CallStatus.OUTCOME_UNKNOWN:
        return CallReport("bad", "We don't know whether it happened.")
    word = "Succeeded" if status == CallStatus.SUCCEEDED else "Failed"
    return CallReport(
        "good" if status == CallStatus.SUCCEEDED else "bad", f"{word}: {reported}" if reported else f"{word}."
    )


def load_report(call_id: int) -> str:
    """Load the call's report without the rest of its result: the error's message, else the summary."""
    parts = ToolCall.objects.annotate(failure=KT("result__error__message"), said=KT("result__summary"))
    failure, said = parts.values_list("failure", "said").get(pk=call_id)
    return str(failure or said or "")[:LONGEST]
