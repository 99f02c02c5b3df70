"""Questions of employees on cards, with the suggested answers."""

from __future__ import annotations

from dataclasses import dataclass

from agents.approvals.questions import MAX_ANSWER
from agents.approvals.warnings.card_reading import get_preview
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus


@dataclass(frozen=True)
class AskedQuestion:
    """A question in the employee's own, unverified words.

    Attributes:
        choices: the suggested answers.
        max_length: the maximum length of an answer, in characters.
    """

    text: str
    choices: list[str]
    is_open: bool
    max_length: int = MAX_ANSWER


def read_question(approval: Approval) -> AskedQuestion | None:
    """Read the card's question; None for a card of another kind."""
    if approval.kind != ApprovalKind.QUESTION:
        return None
    preview = get_preview(approval)
    choices = [str(choice) for choice in preview.get("choices", ())]
    return AskedQuestion(
        str(preview.get("question", "")), choices, approval.status == ApprovalStatus.PENDING
    )
