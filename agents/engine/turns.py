"""Where a run goes next: looked up under the run's lock, from what the database holds."""

import time
from dataclasses import dataclass
from enum import StrEnum

from django.db.models import Q

from agents.engine import lease
from agents.engine.cards import withdraw
from agents.engine.outcomes import end_unexecuted, lose_outcome, publish_rejection, publish_result
from agents.engine.timing import ATTEMPTS, CRASHES, DENIED_PASSES
from agents.engine.toolbox import installed_toolbox
from agents.events import Recording
from agents.models import (
    NOT_STARTED,
    PARKED,
    TERMINAL_CALLS,
    Approval,
    ApprovalKind,
    ApprovalStatus,
    CallStatus,
    EventType,
    ExitReason,
    Pass,
    Run,
    RunStatus,
    ToolCall,
)
from agents.statements import Prepared
from tools.contract import ErrorCode, Level, ToolError, ToolResult


class Move(StrEnum):
    """What the driver does next."""

    EXECUTE_APPROVED = "execute_approved"
    EXECUTE_READY = "execute_ready"
    ASK = "ask"
    CLOSE = "close"
    """Ask once more, for an answer without calls."""
    LEAVE = "leave"
    """The run waits, has ended, or is somebody else's turn."""


@dataclass(frozen=True)
class Turn:
    """The next move; `reason` is why a closing pass ends the run."""

    move: Move
    reason: ExitReason = ExitReason.FINAL_ANSWER


LEAVE = Turn(Move.LEAVE)
MACHINE = "gadget"

_OPEN_OR_LAST = Prepared(
    lambda run_id, number: (
        ToolCall.objects.filter(Q(pass_number=number) | ~Q(status__in=TERMINAL_CALLS), run_id=run_id)
        .order_by()
        .values_list("status", "pass_number")
    ),
    slots=(1_900_000_011, 31_011),
)


def settle(record: Recording, held: lease.Claim) -> Turn:
    """Decide the next move of a run that this worker holds; parks or ends it where nothing is left to do."""
    run = record.run
    if run.cancel_requested_at is not None:
        end(record, Ending(ExitReason.CANCELLED))
        return LEAVE
    rows = _OPEN_OR_LAST.rows(run.pk, run.pass_number)
    unfinished = {status for status, _ in rows if status not in TERMINAL_CALLS}
    if CallStatus.APPROVED in unfinished and startable(record):
        return _unless_interrupted(record, held, Turn(Move.EXECUTE_APPROVED))
    if CallStatus.READY in unfinished:
        return _unless_interrupted(record, held, Turn(Move.EXECUTE_READY))
    if unfinished:
        park(record, needs_attention=CallStatus.OUTCOME_UNKNOWN in unfinished)
        return LEAVE
    if ended := _overdue(record):
        end(record, Ending(ended))
        return LEAVE
    turn = _after_pass(record, [status for status, number in rows if number == run.pass_number])
    return _unless_interrupted(record, held, turn) if turn.move != Move.LEAVE else turn


def _open(run: Run) -> Q:
    return Q(run_id=run.pk) & ~Q(status__in=TERMINAL_CALLS)


def startable(record: Recording) -> bool:
    """True if an approved call of the run may start now, its grace being over."""
    approved = Approval.objects.filter(run_id=record.run.pk, status=ApprovalStatus.APPROVED)
    return approved.filter(start_after__lte=record.now).exists()


def _overdue(record: Recording) -> ExitReason | None:
    run = record.run
    if run.crash_count >= CRASHES:
        return ExitReason.INTERNAL_ERROR if run.problem == lease.ENGINE_FAILED else ExitReason.CRASH_LOOP
    if run.deadline_at is not None and run.deadline_at <= record.now:
        return ExitReason.DEADLINE
    return None


def _unless_interrupted(record: Recording, held: lease.Claim, turn: Turn) -> Turn:
    """Give the run back if the worker goes down or other runs have waited long enough."""
    if lease.is_going_down() or time.monotonic() >= held.slice_ends:
        lease.drop(record.run)
        record.run.status = RunStatus.QUEUED
        record.run.hinted_at = None
        return LEAVE
    if turn.move in (Move.ASK, Move.CLOSE) and record.run.asked_pass <= record.run.pass_number:
        record.run.asked_pass = record.run.pass_number + 1
        record.publish(EventType.PASS_STARTED, pass_number=record.run.asked_pass)
    return turn


def _after_pass(record: Recording, statuses: list[str]) -> Turn:
    """All calls are terminal: answered, repeating itself, out of passes, or the next pass."""
    run = record.run
    if run.pass_number == 0:
        return Turn(Move.ASK)
    has_news = run.message_count > run.messages_heard
    if not statuses and not has_news:
        answer = Pass.objects.values_list("text", flat=True).get(run_id=run.pk, number=run.pass_number)
        end(record, Ending(ExitReason.FINAL_ANSWER, answer))
        return LEAVE
    if not has_news and _denied_repeatedly(run, statuses):
        end(record, Ending(ExitReason.DENIED_REPEATEDLY))
        return LEAVE
    if run.pass_number >= run.max_passes:
        return Turn(Move.CLOSE, ExitReason.MAX_PASSES)
    if not has_news and statuses and set(statuses) == {CallStatus.DUPLICATE}:
        return Turn(Move.CLOSE, ExitReason.ALL_TOOLS_DUPLICATE)
    return Turn(Move.ASK)


def _denied_repeatedly(run: Run, statuses: list[str]) -> bool:
    """True if in each of the last three passes every card of some tool was denied."""
    if CallStatus.DENIED not in statuses or run.pass_number < DENIED_PASSES:
        return False
    passes = range(run.pass_number - DENIED_PASSES + 1, run.pass_number + 1)
    carded = ToolCall.objects.filter(run_id=run.pk, pass_number__in=passes, approvals__isnull=False).distinct()
    outcomes: dict[str, dict[int, set[str]]] = {}
    for tool, number, status in carded.values_list("tool", "pass_number", "status"):
        outcomes.setdefault(tool, {}).setdefault(number, set()).add(status)
    return any(all(by_pass.get(number) == {CallStatus.DENIED} for number in passes) for by_pass in outcomes.values())


def park(record: Recording, needs_attention: bool) -> None:
    """The run waits for people or for time and holds no worker meanwhile."""
    run = record.run
    lease.drop(run)
    run.status = RunStatus.NEEDS_ATTENTION if needs_attention else RunStatus.WAITING
    cards = Approval.objects.filter(run_id=run.pk, status=ApprovalStatus.PENDING).values_list("pk", flat=True)
    event = EventType.RUN_NEEDS_ATTENTION if needs_attention else EventType.RUN_WAITING
    record.publish(event, approval_ids=[str(pk) for pk in cards.order_by("pk")])


def wake_if_possible(record: Recording, by: str = MACHINE) -> bool:
    """Queue a parked run if a call can start now or all calls are terminal; otherwise it keeps waiting.

    Args:
        by: the name of the person whose act it was, as the panel tells it.
    """
    run = record.run
    if run.status not in PARKED:
        return False
    statuses = set(ToolCall.objects.filter(_open(run)).values_list("status", flat=True))
    can_start = CallStatus.READY in statuses or (CallStatus.APPROVED in statuses and startable(record))
    if statuses and not can_start:
        if run.status == RunStatus.NEEDS_ATTENTION and CallStatus.OUTCOME_UNKNOWN not in statuses:
            run.status = RunStatus.WAITING
        return False
    requeue(record)
    record.publish(EventType.RUN_RESUMED, by=by)
    return True


def requeue(record: Recording) -> None:
    """Put the run into the queue, due at once."""
    run = record.run
    lease.drop(run)
    run.status = RunStatus.QUEUED
    run.next_wake_at = None
    run.hinted_at = None


def take_over(record: Recording) -> None:
    """The worker of this run is lost: put it into the queue for another one, and say what that one will find."""
    left = ToolCall.objects.filter(run_id=record.run.pk, status=CallStatus.EXECUTING).order_by("pk")
    again, unknown = [], []
    for call in left:
        if _may_have_happened(call):
            unknown.append(_title_of(call))
        elif call.attempts < ATTEMPTS:
            again.append(_title_of(call))
    told = ["The worker was lost; another one goes on."]
    if again:
        told.append(f"Started again: {', '.join(again)}.")
    if unknown:
        told.append(f"Perhaps done, perhaps not, and never repeated by itself: {', '.join(unknown)}.")
    requeue(record)
    record.publish(EventType.RUN_RESUMED, by=MACHINE, reason=" ".join(told))


def _title_of(call: ToolCall) -> str:
    tool = installed_toolbox().get_tool(call.tool)
    return tool.title if tool else call.tool


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
        return RunStatus.SUCCEEDED if self.reason in _SUCCESSES else RunStatus.FAILED


_SUCCESSES = (ExitReason.FINAL_ANSWER, ExitReason.ALL_TOOLS_DUPLICATE, ExitReason.MAX_PASSES)


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
    )


def _has_unknown(run: Run) -> bool:
    return ToolCall.objects.filter(run_id=run.pk, status=CallStatus.OUTCOME_UNKNOWN).exists()


def _cancel_open(record: Recording, reason: ExitReason) -> None:
    run = record.run
    if not any(status not in TERMINAL_CALLS for status, _ in _OPEN_OR_LAST.rows(run.pk, run.pass_number)):
        return
    why = "The run was cancelled." if reason == ExitReason.CANCELLED else f"The run ended: {reason.label}."
    cards = Approval.objects.filter(
        run_id=run.pk, kind=ApprovalKind.APPROVAL, status__in=(ApprovalStatus.PENDING, ApprovalStatus.APPROVED)
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


def lose_worker(record: Recording, call: ToolCall, may_repeat: bool) -> None:
    """Settle a call that was executing when its worker was lost: reads run again, writes are unknown."""
    if _may_have_happened(call):
        lose_outcome(record, call, "The worker was lost while this was executing.")
        return
    same = ToolCall.objects.filter(pk=call.pk, status=CallStatus.EXECUTING)
    if may_repeat and call.attempts < ATTEMPTS:
        same.update(status=CallStatus.READY, exec_epoch=None, deadline_at=None)
        return
    error = ToolError(ErrorCode.WORKER_LOST, "The worker was lost while this was executing.")
    if end_unexecuted(record, call, CallStatus.FAILED, error):
        publish_result(record, call, ToolResult.failed(error), 0)


def _may_have_happened(call: ToolCall) -> bool:
    """Whether the effect of a call that was executing when its worker was lost may be there: it cannot be repeated."""
    return Level(call.level).has_side_effects or Approval.objects.filter(tool_call=call).exists()


def answer_from_summaries(run: Run, reason: ExitReason) -> str:
    """An answer made by the server, for runs that ended without one of the model's; it says so."""
    done = ToolCall.objects.filter(run_id=run.pk, status=CallStatus.SUCCEEDED).order_by("pass_number", "index")
    lines = [f"- {result['summary']}" for result in done.values_list("result", flat=True)[:200] if result]
    head = f"There is no answer of the employee's: {reason.label.lower()}."
    if run.problem:
        head += f" {run.problem}"
    if not lines:
        return f"{head} Nothing was done."
    return "\n".join([f"{head} This is what its tools reported:", *lines])
