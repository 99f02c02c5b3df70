"""How a run ends: what is open is cancelled, what may have happened stays visible, and an answer is never missing."""

from dataclasses import dataclass
from functools import partial

from django.db import transaction
from django.db.models import Q

from agents import hints
from agents.engine import lease, prices
from agents.engine.cards import withdraw
from agents.engine.losses import lose_worker
from agents.engine.outcomes import end_unexecuted, publish_rejection
from agents.engine.parking import MACHINE, park
from agents.events import Recording, recording
from agents.models import (
    NOT_STARTED,
    TERMINAL_CALLS,
    Approval,
    ApprovalKind,
    ApprovalStatus,
    CallStatus,
    EventType,
    ExitReason,
    Run,
    RunStatus,
    ToolCall,
)
from agents.providers.base import CutOff
from agents.statements import SMALL_STAND_INS, STAND_INS, Prepared
from tools.contract import ErrorCode, ToolError

OPEN_OR_LAST = Prepared(
    lambda run_id, number: (
        ToolCall.objects.filter(Q(pass_number=number) | ~Q(status__in=TERMINAL_CALLS), run_id=run_id)
        .order_by()
        .values_list("status", "pass_number")
    ),
    slots=(STAND_INS[0], SMALL_STAND_INS[0]),
)
"""Status and pass of the calls that are open, or of the last pass."""


@dataclass(frozen=True)
class Ending:
    """How a run ends; without an answer, the server makes one from what was done."""

    reason: ExitReason
    answer: str = ""
    problem: str = ""

    @property
    def status(self) -> RunStatus:
        if self.reason == ExitReason.CANCELLED:
            return RunStatus.CANCELLED
        if self.reason == ExitReason.MAX_PASSES:
            return RunStatus.SUCCEEDED if self.answer.strip() else RunStatus.FAILED
        return RunStatus.SUCCEEDED if self.reason in _SUCCESSES else RunStatus.FAILED

    @classmethod
    def answered(cls, answer: str, cut_off: str, reason: ExitReason = ExitReason.FINAL_ANSWER) -> "Ending":
        """Return how a run ends with this answer of its model, which may be cut off."""
        if cut_off:
            return cls(_CUT_OFF[cut_off], answer, CUT_OFF_WORDS[cut_off])
        return cls(reason, answer)


CUT_OFF_WORDS: dict[str, str] = {
    CutOff.LENGTH: "The answer is incomplete: it reached the model's length limit.",
    CutOff.FILTER: "The answer is incomplete: a content filter of the model's server withheld the rest.",
}
_CUT_OFF: dict[str, ExitReason] = {
    CutOff.LENGTH: ExitReason.ANSWER_CUT,
    CutOff.FILTER: ExitReason.ANSWER_FILTERED,
}
_SUCCESSES = (ExitReason.FINAL_ANSWER, ExitReason.ALL_TOOLS_DUPLICATE)


def end(record: Recording, ending: Ending) -> None:
    """End the run: open cards and unstarted calls are cancelled, what a dead worker executed is settled or unknown.

    A run that fails while an outcome is unknown needs attention first, and ends when that is settled.
    """
    run, status, reason = record.run, ending.status, ending.reason
    _cancel_open(record, reason)
    if status == RunStatus.FAILED and _has_unknown(run):
        park(record, needs_attention=True)
        return
    lease.drop(run)
    run.status, run.exit_reason = status, reason
    run.stopped_because = ""
    run.next_wake_at = None
    run.problem = ending.problem or run.problem
    run.answer = ending.answer or answer_from_summaries(run, reason)
    run.finished_at = record.now
    record.publish(
        EventType.RUN_FINISHED,
        status=str(status),
        exit_reason=str(reason),
        answer=run.answer,
        pass_number=run.pass_number,
        input_tokens=run.input_tokens,
        output_tokens=run.output_tokens,
        usage_estimated=run.estimated_tokens > 0,
        cost=prices.in_units(prices.known_cost(run)),
        currency=run.organization.currency,
    )
    if run.parent_id is not None:
        transaction.on_commit(partial(hints.wake, run.parent_id))


def _has_unknown(run: Run) -> bool:
    return ToolCall.objects.filter(run_id=run.pk, status=CallStatus.OUTCOME_UNKNOWN).exists()


def _cancel_open(record: Recording, reason: ExitReason) -> None:
    run = record.run
    if not any(status not in TERMINAL_CALLS for status, _ in OPEN_OR_LAST.rows(run.pk, run.pass_number)):
        return
    why = "The run was cancelled." if reason == ExitReason.CANCELLED else f"The run ended: {reason.label}."
    cards = Approval.objects.filter(
        run_id=run.pk,
        kind__in=(ApprovalKind.APPROVAL, ApprovalKind.QUESTION),
        status__in=(ApprovalStatus.PENDING, ApprovalStatus.APPROVED),
    )
    for card in cards.select_related("decided_by").order_by("pk"):
        withdraw(record, card, why)
    error = ToolError(ErrorCode.OPERATION_NOT_ALLOWED, f"This call was not started. {why}", attempted=False)
    for call in ToolCall.objects.filter(run_id=run.pk, status__in=NOT_STARTED).order_by("pk"):
        end_unexecuted(record, call, CallStatus.CANCELLED, error)
        if call.status == CallStatus.READY:
            publish_rejection(record, call, error)
    for call in ToolCall.objects.filter(run_id=run.pk, status=CallStatus.EXECUTING).order_by("pk"):
        lose_worker(record, call, may_repeat=False)
    _stop_waiting(record, why)


def _stop_waiting(record: Recording, why: str) -> None:
    """Cancel the calls that wait for an answer; the runs that they wait for follow, each in its own transaction."""
    error = ToolError(ErrorCode.OPERATION_NOT_ALLOWED, f"Nobody waits for the answer any more. {why}", attempted=False)
    waiting = ToolCall.objects.filter(run_id=record.run.pk, status=CallStatus.SUSPENDED).order_by("pk")
    for call in waiting.select_related("child_run"):
        end_unexecuted(record, call, CallStatus.CANCELLED, error)
        publish_rejection(record, call, error)
        if (child := getattr(call, "child_run", None)) is not None:
            transaction.on_commit(partial(cancel_child, child.pk), robust=True)


def cancel_child(run_id: int, wait: bool = True) -> bool:
    """Nobody waits for this run any more: it is cancelled as by a person, and what it has handed on follows it.

    Raises:
        Run.DoesNotExist: without `wait`, it is not free.
    """
    with recording(run_id, wait=wait) as record:
        run = record.run
        if run.has_ended or run.cancel_requested_at is not None:
            return False
        run.cancel_requested_at = record.now
        record.publish(EventType.CANCEL_REQUESTED, by=MACHINE)
        if run.status != RunStatus.RUNNING:
            end(record, Ending(ExitReason.CANCELLED))
    return True


def answer_from_summaries(run: Run, reason: ExitReason) -> str:
    """An answer made by the server, for runs that ended without one of the model's; it says so."""
    done = ToolCall.objects.filter(run_id=run.pk, status=CallStatus.SUCCEEDED).order_by("pass_number", "index")
    lines = [f"- {result['summary']}" for result in done.values_list("result", flat=True)[:200] if result]
    head = f"The employee gave no answer: {reason.label.lower()}."
    if run.problem:
        head += f" {run.problem}" if run.problem.endswith((".", "!", "?")) else f" {run.problem}."
    if not lines:
        return f"{head} Nothing was done."
    return "\n".join([f"{head} This is what its tools reported:", *lines])
