"""What the card of a question shows: the employee's own words, and the answers that it offers."""

from __future__ import annotations

from dataclasses import dataclass

from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.approvals.questions import MOST_ANSWER


@dataclass(frozen=True)
class Question:
    """A question as it was asked; nothing in it was verified. An answer may have `most` characters."""

    text: str
    choices: list[str]
    is_open: bool
    most: int = MOST_ANSWER


def question_of(approval: Approval) -> Question | None:
    """The question of this card; None if it is a card of another kind."""
    if approval.kind != ApprovalKind.QUESTION:
        return None
    kept = approval.preview if isinstance(approval.preview, dict) else {}
    choices = [str(choice) for choice in kept.get("choices", ())]
    return Question(str(kept.get("question", "")), choices, approval.status == ApprovalStatus.PENDING)
