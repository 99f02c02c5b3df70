"""Reports about a decided card: the progress or result of its call, or that it did not start."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db.models.fields.json import KT

from agents.runs.models import Approval, ApprovalKind, ApprovalStatus, CallStatus, ToolCall

MAX_LENGTH = 1000
DID_NOT_START = (ApprovalStatus.DENIED, ApprovalStatus.EXPIRED, ApprovalStatus.CANCELLED)


@dataclass(frozen=True)
class CallReport:
    """A call's progress or result.

    Attributes:
        state: going, good, bad or none; chooses the icon.
        words: the tool's own words, which follow the text.
    """

    state: str
    text: str
    words: str = ""


def describe_call(
    approval: Approval, call: ToolCall, report_text: str, *, is_undoable: bool
) -> CallReport | None:
    """Describe what happened after the decision; None for a question, for a card that waits or was
    replaced, or while Undo is offered.

    Args:
        call: the card's call, in its current state.
        report_text: the call's report, if it has ended.
        is_undoable: True if the approval can still be undone.
    """
    if approval.kind == ApprovalKind.QUESTION:
        return None
    if approval.kind == ApprovalKind.APPROVAL and approval.status in DID_NOT_START:
        return CallReport("none", "Did not start.")
    if approval.kind == ApprovalKind.APPROVAL and approval.status == ApprovalStatus.ANSWERED:
        return CallReport("none", "There was nothing to do, so nothing was done.")
    if approval.status == ApprovalStatus.APPROVED:
        waits = "Waits for an earlier call." if approval.after_id else "Not started yet."
        return None if is_undoable else CallReport("going", waits)
    was_resolved = (
        approval.kind == ApprovalKind.UNKNOWN and approval.status != ApprovalStatus.PENDING
    )
    return (
        _describe_started(call, report_text)
        if was_resolved or approval.status == ApprovalStatus.CONSUMED
        else None
    )


def _describe_started(call: ToolCall, report_text: str) -> CallReport:
    if call.status == CallStatus.EXECUTING:
        return CallReport("going", "Running.")
    if call.status == CallStatus.OUTCOME_UNKNOWN:
        return CallReport("bad", "We don’t know whether this happened.")
    if call.late_effect is not None:
        return CallReport("bad", "Marked as not done, but later reported as done.")
    state, word = (
        ("good", "Succeeded") if call.status == CallStatus.SUCCEEDED else ("bad", "Failed")
    )
    return CallReport(state, f"{word}:" if report_text else f"{word}.", report_text)


def load_report(call_id: int) -> str:
    """Load the error message of a call's result, or else its summary, without the rest of the
    result."""
    return load_reports({call_id}).get(call_id, "")


def load_reports(call_ids: Collection[int]) -> dict[int, str]:
    """Load the report of each of these calls, as `load_report` does, in one query; calls without a
    report are missing."""
    if not call_ids:
        return {}
    rows: Any = ToolCall.objects.filter(pk__in=call_ids)
    rows = rows.annotate(failure=KT("result__error__message"), summary=KT("result__summary"))
    found = rows.order_by().values_list("pk", "failure", "summary")
    return {
        pk: str(failure or summary)[:MAX_LENGTH]
        for pk, failure, summary in found
        if failure or summary
    }
