"""Questions on cards: the employee's own words, and the answers that it offers."""

from __future__ import annotations

from dataclasses import dataclass

from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.approvals.questions import MOST_ANSWER


@dataclass(frozen=True)
class AskedQuestion:
    """A question as the employee asked it, not verified. An answer has at most `most` characters."""

    text: str
    choices: list[str]
    is_open: bool
    most: int = MOST_ANSWER


def read_question(approval: Approval) -> AskedQuestion | None:
    """Read the card's question; None for a card of another kind."""
    if approval.kind != ApprovalKind.QUESTION:
        return None
    kept = approval.preview if isinstance(approval.preview, dict) else {}
    choices = [str(choice) for choice in kept.get("choices", ())]
    return AskedQuestion(str(kept.get("question", "")), choices, approval.status == ApprovalStatus.PENDING)
