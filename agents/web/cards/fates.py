"""What became of the call that a decided card let start, for the card itself to tell."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models.fields.json import KT

from agents.approvals.models import Approval, ApprovalStatus
from agents.runs.models import CallStatus, ToolCall

LONGEST = 1000


@dataclass(frozen=True)
class Fate:
    """What became of it in words, and how they look: going, good or bad."""

    look: str
    words: str


def fate_of(approval: Approval, status: str, reported: str, *, is_graced: bool) -> Fate | None:
    """The fate of the card's call; None if the card did not let it start, or the approval can still be undone.

    Args:
        status: of the call, as it is now.
        reported: what the call has reported, if it has ended.
    """
    if approval.status == ApprovalStatus.APPROVED:
        return None if is_graced else Fate("going", "It has not started yet.")
    if approval.status != ApprovalStatus.CONSUMED:
        return None
    if status == CallStatus.EXECUTING:
        return Fate("going", "It is being carried out.")
    if status == CallStatus.OUTCOME_UNKNOWN:
        return Fate("bad", "It is not known whether it happened.")
    word = "Succeeded" if status == CallStatus.SUCCEEDED else "Failed"
    return Fate("good" if status == CallStatus.SUCCEEDED else "bad", f"{word}: {reported}" if reported else f"{word}.")


def reported_by(call_id: int) -> str:
    """What the call has reported, without the rest of its result: the error's message, else the summary."""
    parts = ToolCall.objects.annotate(failure=KT("result__error__message"), said=KT("result__summary"))
    failure, said = parts.values_list("failure", "said").get(pk=call_id)
    return str(failure or said or "")[:LONGEST]
