"""Park a waiting run, or end a run and cancel its open calls and cards (step 8 of a run)."""

from dataclasses import dataclass
from functools import partial

from django.db import transaction
from django.db.models import QuerySet

from agents.platform import notify
from agents.providers.base import CutOff
from agents.runs import budgets
from agents.runs.engine.cards import withdraw
from agents.runs.engine.recovery import settle_lost_call
from agents.runs.engine.results import end_unexecuted
from agents.runs.engine.transaction import MACHINE, Transaction, run_transaction
from agents.runs.events import (
    CancelRequested,
    RunFinished,
    RunNeedsAttention,
    RunWaiting,
    ToolRejected,
)
from agents.runs.models import (
    NOT_STARTED,
    TERMINAL_CALLS,
    Approval,
    ApprovalKind,
    ApprovalStatus,
    CallStatus,
    ExitReason,
    Run,
    RunStatus,
    ToolCall,
)
from agents.runs.models.outcome import CALL_KIND_COLUMNS, CallKind, judge_outcome
from agents.runs.queries.engine import OPEN_OR_LAST_CALLS
from tools.contract import ErrorCode, ToolError

CUT_OFF_WORDS: dict[str, str] = {
    CutOff.LENGTH: "The answer is incomplete: it reached the model's length limit.",
    CutOff.FILTER: "The answer is incomplete: a content filter of the model's server withheld the rest.",
}
_CUT_OFF_REASONS: dict[str, ExitReason] = {
    CutOff.LENGTH: ExitReason.ANSWER_CUT,
    CutOff.FILTER: ExitReason.ANSWER_FILTERED,
}
_SUCCESSES = (ExitReason.FINAL_ANSWER, ExitReason.ALL_TOOLS_DUPLICATE, ExitReason.SESSION_ENDED)


@dataclass(frozen=True)
class Ending:
    """The way in which a run ends. If the model gave no answer, an answer is written from the
    summaries of the calls."""

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
    def answered(
        cls, answer: str, cut_off: str, reason: ExitReason = ExitReason.FINAL_ANSWER
    ) -> "Ending":
        """Return the ending for the model's answer, which may be cut off."""
        if cut_off:
            return cls(_CUT_OFF_REASONS[cut_off], answer, CUT_OFF_WORDS[cut_off])
        return cls(reason, answer)


def park(tx: Transaction, needs_attention: bool) -> None:
    """Release the run's worker, and let the run wait for people, colleagues or time."""
    run = tx.run
    tx.release_lease()
    run.status = RunStatus.NEEDS_ATTENTION if needs_attention else RunStatus.WAITING
    pending = Approval.objects.filter(run_id=run.pk, status=ApprovalStatus.PENDING).order_by("pk")
    cards = list(pending.values_list("pk", "kind"))
    kinds = [kind for _, kind in cards]
    event = RunNeedsAttention if needs_attention else RunWaiting
    tx.publish(
        event(
            approval_ids=[str(pk) for pk, _ in cards],
            decisions=kinds.count(ApprovalKind.APPROVAL),
            answers=kinds.count(ApprovalKind.QUESTION),
            colleagues=list(_list_busy_colleagues(run)),
            pass_number=run.pass_number,
        )
    )


def _list_busy_colleagues(run: Run) -> QuerySet[Run, str]:
    """Return the names of the employees that work on tasks delegated by the run."""
    children = Run.objects.filter(parent_id=run.pk, parent_call__status=CallStatus.SUSPENDED)
    return children.order_by("pk").values_list("employee__name", flat=True)


def end_run(tx: Transaction, ending: Ending) -> None:
    """End the run: cancel its open cards and unstarted calls, and settle calls that a lost worker
    left executing.

    If the run fails while an outcome is unknown, it needs attention first, and ends once a person
    has resolved the outcome.
    """
    run, status, reason = tx.run, ending.status, ending.reason
    _cancel_open_calls(tx, ending)
    if status == RunStatus.FAILED and _has_unknown(run):
        park(tx, needs_attention=True)
        return
    tx.release_lease()
    run.status, run.exit_reason = status, reason
    run.stopped_because = ""
    run.next_wake_at = None
    run.problem = ending.problem or run.problem
    run.answer = ending.answer or write_answer_from_summaries(run, reason)
    run.finished_at = tx.now
    run.outcome = judge_outcome(_list_call_kinds(run))
    tx.publish(RunFinished.of(run, budgets.to_currency(budgets.compute_run_cost(run))))
    if run.parent_id is not None:
        transaction.on_commit(partial(notify.wake_run, run.parent_id))


def _list_call_kinds(run: Run) -> list[CallKind]:
    """List the distinct kinds of calls that the run has made."""
    rows = ToolCall.objects.filter(run_id=run.pk).order_by()
    return [CallKind(*row) for row in rows.values_list(*CALL_KIND_COLUMNS).distinct()]


def _has_unknown(run: Run) -> bool:
    return ToolCall.objects.filter(run_id=run.pk, status=CallStatus.OUTCOME_UNKNOWN).exists()


def _cancel_open_calls(tx: Transaction, ending: Ending) -> None:
    """Cancel open cards and unstarted calls, and settle executing calls; costs one query if no call
    is open."""
    run = tx.run
    if not any(
        call.status not in TERMINAL_CALLS
        for call in OPEN_OR_LAST_CALLS.fetch_all(run.pk, run.pass_number)
    ):
        return
    why = f"The run ended: {ending.reason.label}."
    if ending.reason == ExitReason.CANCELLED:
        why = f"The run was cancelled. {ending.problem}".strip()
    _cancel_unstarted_calls(tx, ToolCall.objects.filter(run_id=run.pk), why)
    for call in ToolCall.objects.filter(run_id=run.pk, status=CallStatus.EXECUTING).order_by("pk"):
        settle_lost_call(tx, call, may_repeat=False)
    _cancel_suspended_calls(tx, ToolCall.objects.filter(run_id=run.pk), why)


def cancel_waiting_call(tx: Transaction, call: ToolCall, why: str) -> bool:
    """Cancel a call with all its steps; do nothing and return False if one of them executes or the
    call has ended."""
    calls = ToolCall.objects.filter(pk__in=_list_steps(call), run_id=tx.run.pk)
    was_open = calls.filter(pk=call.pk).exclude(status__in=TERMINAL_CALLS).exists()
    if not was_open or calls.filter(status=CallStatus.EXECUTING).exists():
        return False
    _cancel_unstarted_calls(tx, calls, why)
    _cancel_suspended_calls(tx, calls, why)
    return calls.filter(pk=call.pk, status=CallStatus.CANCELLED).exists()


def _list_steps(call: ToolCall) -> list[int]:
    """List the ids of the call and of its steps, at every level."""
    found, level = [call.pk], [call.pk]
    while level:
        level = list(ToolCall.objects.filter(parent_call_id__in=level).values_list("pk", flat=True))
        found += level
    return found


def _cancel_unstarted_calls(tx: Transaction, calls: QuerySet[ToolCall], why: str) -> None:
    """Withdraw the open cards of these calls of the run, and cancel the calls that have not
    started."""
    cards = Approval.objects.filter(
        run_id=tx.run.pk,
        tool_call__in=calls,
        kind__in=(ApprovalKind.APPROVAL, ApprovalKind.QUESTION),
        status__in=(ApprovalStatus.PENDING, ApprovalStatus.APPROVED),
    )
    for card in cards.select_related("decided_by").order_by("pk"):
        withdraw(tx, card, why)
    error = ToolError(
        ErrorCode.OPERATION_NOT_ALLOWED, f"This call was not started. {why}", attempted=False
    )
    for call in calls.filter(status__in=NOT_STARTED).order_by("pk"):
        end_unexecuted(tx, call, CallStatus.CANCELLED, error)
        if call.status == CallStatus.READY:
            tx.publish(ToolRejected.of(call, error))


def _cancel_suspended_calls(tx: Transaction, calls: QuerySet[ToolCall], why: str) -> None:
    """Cancel the calls that wait for an answer, and the colleagues' runs that work on these
    answers, each run in its own transaction."""
    error = ToolError(
        ErrorCode.OPERATION_NOT_ALLOWED, f"Nobody is waiting for the answer. {why}", attempted=False
    )
    waiting = calls.filter(status=CallStatus.SUSPENDED).order_by("pk")
    for call in waiting.select_related("child_run"):
        end_unexecuted(tx, call, CallStatus.CANCELLED, error)
        tx.publish(ToolRejected.of(call, error))
        if (child := getattr(call, "child_run", None)) is not None:
            transaction.on_commit(partial(cancel_unneeded, child.pk), robust=True)


def cancel_unneeded(run_id: int, problem: str = "", *, wait: bool = True) -> bool:
    """Cancel a run whose answer is no longer needed, and the runs that it delegated; return False
    if it has ended or is being cancelled.

    Args:
        problem: a sentence for people with the reason.

    Raises:
        Run.DoesNotExist: `wait` is False and the run is locked.
    """
    with run_transaction(run_id, wait=wait) as tx:
        run = tx.run
        if run.has_ended or run.cancel_requested_at is not None:
            return False
        run.cancel_requested_at = tx.now
        run.problem = problem or run.problem
        tx.publish(CancelRequested(MACHINE))
        if run.status != RunStatus.RUNNING:
            end_run(tx, Ending(ExitReason.CANCELLED, problem=problem))
        # The driver will end the run without knowing the reason, so its calls record it now.
        elif problem:
            _cancel_unstarted_calls(
                tx, ToolCall.objects.filter(run_id=run_id), f"The run was cancelled. {problem}"
            )
    return True


def end_if_overdue(run_id: int) -> bool:
    """End a queued or waiting run past its deadline; return False if the run has another status, or
    its deadline has not passed.

    Raises:
        Run.DoesNotExist: the run is locked.
    """
    with run_transaction(run_id, wait=False) as tx:
        run = tx.run
        if run.status not in (RunStatus.QUEUED, RunStatus.WAITING) or not tx.is_late:
            return False
        is_cancelled = run.cancel_requested_at is not None
        end_run(tx, Ending(ExitReason.CANCELLED if is_cancelled else ExitReason.DEADLINE))
        return True


def write_answer_from_summaries(run: Run, reason: ExitReason) -> str:
    """Write an answer from the calls' summaries, for a run whose model did not give one; the text
    says so."""
    done = ToolCall.objects.filter(run_id=run.pk, status=CallStatus.SUCCEEDED).order_by(
        "pass_number", "index"
    )
    lines = [
        f"- {result['summary']}" for result in done.values_list("result", flat=True)[:200] if result
    ]
    is_cancelled = reason == ExitReason.CANCELLED
    why = "" if reason == ExitReason.FINAL_ANSWER else f": {reason.label.lower()}"
    head = (
        f"Cancelled before {run.employee.name} answered."
        if is_cancelled
        else f"The employee gave no answer{why}."
    )
    if run.problem:
        head += f" {run.problem}" if run.problem.endswith((".", "!", "?")) else f" {run.problem}."
    if not lines:
        return f"{head} Nothing was done."
    return "\n".join([f"{head} {'So far:' if is_cancelled else 'Its tools reported:'}", *lines])
