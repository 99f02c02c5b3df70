"""Mark writes whose outcome is unknown, and ask a person to check them (step 7 of a run)."""

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models.functions import Now

from agents.runs.engine.cards import compute_digest, find_next_sequence
from agents.runs.engine.results import publish_result
from agents.runs.engine.transaction import Transaction
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus, CallStatus, ToolCall
from tools.contract import ErrorCode, Preview, ToolError, ToolResult
from tools.contract.sentences import format_name

MAX_WORDS_LENGTH = 1_000
_NEVER = timedelta(days=3650)


def mark_outcome_unknown(tx: Transaction, call: ToolCall, why: str, words: str = "") -> None:
    """Mark the outcome of an executing write as unknown, and ask a person to check it.

    Args:
        words: the other system's own words, unverified.
    """
    changed = ToolCall.objects.filter(pk=call.pk, status=CallStatus.EXECUTING).update(
        status=CallStatus.OUTCOME_UNKNOWN
    )
    if not changed:
        return
    hint = "A person has to check what happened."
    error = ToolError(ErrorCode.OUTCOME_UNKNOWN, why, recovery_hint=hint, words=words)
    publish_result(tx, call, ToolResult.failed(error), 0)
    show_unknown_card(tx, call, UnknownOutcome("We don’t know whether this happened", why, words))
    tx.audit("gadget", "outcome_unknown", f"tool_call:{call.pk}", tool=call.tool, why=error.message)


@dataclass(frozen=True)
class UnknownOutcome:
    """The text of a card that asks a person to check a call.

    Attributes:
        fact: the start of the card's sentence.
        words: the other system's own words, unverified.
    """

    fact: str
    why: str
    words: str = ""


def show_unknown_card(tx: Transaction, call: ToolCall, outcome: UnknownOutcome) -> Approval:
    """Create the card that asks a person to check a call; it shows the same effect as the call's
    last card."""
    last = (
        Approval.objects.filter(tool_call=call)
        .exclude(kind=ApprovalKind.UNKNOWN)
        .order_by("-sequence")
        .first()
    )
    effect = last.preview if last else Preview.impossible("There is no preview.").as_json()
    done = last.sentence if last else format_name(call.tool)
    tx.inbox_changed = True
    return Approval.objects.create(
        organization_id=call.organization_id,
        run_id=call.run_id,
        tool_call=call,
        sequence=find_next_sequence(call),
        kind=ApprovalKind.UNKNOWN,
        level=call.level,
        params=call.params,
        sentence=f"{outcome.fact}: {done}",
        preview=effect,
        why=outcome.why,
        words=outcome.words[:MAX_WORDS_LENGTH],
        digest=compute_digest(call, effect),
        shown_marks=last.shown_marks if last else None,
        expires_at=Now() + _NEVER,
    )


def close_unknown_card(call: ToolCall, reason: str, by: User | None = None) -> None:
    """Close the card of an unknown outcome after a person has resolved the outcome or the executor
    has reported it."""
    Approval.objects.filter(
        tool_call=call, kind=ApprovalKind.UNKNOWN, status=ApprovalStatus.PENDING
    ).update(status=ApprovalStatus.CANCELLED, reason=reason, decided_by=by, decided_at=Now())
