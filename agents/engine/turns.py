"""Where a run goes next: looked up under the run's lock, from what the database holds."""

import math
import time
from dataclasses import dataclass, replace
from enum import StrEnum

from django.db.models import Exists, OuterRef, Q, QuerySet

from agents.engine import lease
from agents.engine.endings import OPEN_OR_LAST, Ending, end
from agents.engine.losses import end_orphans
from agents.engine.parking import MACHINE, park, requeue
from agents.engine.timing import CRASHES, DENIED_PASSES
from agents.events import Recording
from agents.models import (
    PARKED,
    TERMINAL_CALLS,
    Approval,
    ApprovalKind,
    ApprovalStatus,
    CallStatus,
    EventType,
    ExitReason,
    Origin,
    Pass,
    Run,
    RunStatus,
    ToolCall,
)


class Move(StrEnum):
    """What the driver does next."""

    EXECUTE_APPROVED = "execute_approved"
    EXECUTE_READY = "execute_ready"
    EXPAND = "expand"
    """Take a recipe a step further."""
    ASK = "ask"
    CLOSE = "close"
    """Ask once more, for an answer without calls."""
    LEAVE = "leave"
    """The run waits, has ended, or is somebody else's turn."""


@dataclass(frozen=True)
class Turn:
    """The next move.

    Attributes:
        reason: why a closing pass ends the run.
        ends: monotonic time at which the run's own time is over, for a move that asks the model.
    """

    move: Move
    reason: ExitReason = ExitReason.FINAL_ANSWER
    ends: float = math.inf


LEAVE = Turn(Move.LEAVE)


def settle(record: Recording, held: lease.Claim) -> Turn:
    """Decide the next move of a run that this worker holds; parks or ends it where nothing is left to do."""
    run = record.run
    if run.cancel_requested_at is not None:
        end(record, Ending(ExitReason.CANCELLED))
        return LEAVE
    rows = OPEN_OR_LAST.rows(run.pk, run.pass_number)
    unfinished = {status for status, _ in rows if status not in TERMINAL_CALLS}
    if CallStatus.EXECUTING in unfinished:
        end_orphans(record)
        unfinished = set(ToolCall.objects.filter(_open(run)).values_list("status", flat=True))
    if ended := _overdue(record, unfinished):
        end(record, Ending(ended))
        return LEAVE
    if (move := _possible(record, unfinished)) is not None:
        return _unless_interrupted(record, held, Turn(move))
    if unfinished:
        park(record, needs_attention=CallStatus.OUTCOME_UNKNOWN in unfinished)
        return LEAVE
    turn = _after_pass(record, [status for status, number in rows if number == run.pass_number])
    return _unless_interrupted(record, held, turn) if turn.move != Move.LEAVE else turn


def _possible(record: Recording, unfinished: set[str]) -> Move | None:
    """What can be done about unfinished calls now, by their statuses; None if all of them wait."""
    if CallStatus.APPROVED in unfinished and startable(record):
        return Move.EXECUTE_APPROVED
    if CallStatus.READY in unfinished:
        return Move.EXECUTE_READY
    if CallStatus.SUSPENDED in unfinished and expandable(record.run.pk).exists():
        return Move.EXPAND
    return None


def _open(run: Run) -> Q:
    return Q(run_id=run.pk) & ~Q(status__in=TERMINAL_CALLS)


def expandable(run_id: int) -> QuerySet[ToolCall]:
    """The recipes of the run that wait for nothing: neither for a person nor another employee nor a step of theirs."""
    waiting = ToolCall.objects.filter(run_id=run_id, status=CallStatus.SUSPENDED, child_run=None)
    asking = Approval.objects.filter(tool_call=OuterRef("pk"), kind=ApprovalKind.QUESTION)
    steps = ToolCall.objects.exclude(status__in=TERMINAL_CALLS).filter(parent_call=OuterRef("pk"))
    return waiting.filter(~Exists(asking), ~Exists(steps)).order_by("pass_number", "index")


def startable(record: Recording) -> bool:
    """True if an approved call of the run may start now, its grace being over."""
    approved = Approval.objects.filter(run_id=record.run.pk, status=ApprovalStatus.APPROVED)
    return approved.filter(start_after__lte=record.now).exists()


def _overdue(record: Recording, unfinished: set[str]) -> ExitReason | None:
    """Why the run has to end now, though something may be left to start; what executes is waited for."""
    run = record.run
    if CallStatus.EXECUTING in unfinished:
        return None
    if run.crash_count >= CRASHES:
        return ExitReason.INTERNAL_ERROR if run.problem == lease.ENGINE_FAILED else ExitReason.CRASH_LOOP
    return ExitReason.DEADLINE if is_late(record) else None


def is_late(record: Recording) -> bool:
    """Whether the run has had its time."""
    return record.run.deadline_at is not None and record.run.deadline_at <= record.now


def _unless_interrupted(record: Recording, held: lease.Claim, turn: Turn) -> Turn:
    """Give the run back if it was stopped, the worker goes down, or other runs have waited long enough."""
    if record.run.stopped_because or lease.is_going_down() or time.monotonic() >= held.slice_ends:
        lease.drop(record.run)
        record.run.status = RunStatus.QUEUED
        record.run.hinted_at = None
        return LEAVE
    if turn.move in (Move.ASK, Move.CLOSE) and record.run.asked_pass <= record.run.pass_number:
        record.run.asked_pass = record.run.pass_number + 1
        record.publish(EventType.PASS_STARTED, pass_number=record.run.asked_pass)
    if record.run.deadline_at is None:
        return turn
    return replace(turn, ends=time.monotonic() + (record.run.deadline_at - record.now).total_seconds())


def _after_pass(record: Recording, statuses: list[str]) -> Turn:
    """All calls are terminal: answered, tried by hand, repeating itself, out of passes, or the next pass."""
    run = record.run
    if run.pass_number == 0:
        return Turn(Move.ASK)
    has_news = run.message_count > run.messages_heard
    if run.origin == Origin.MANUAL or (not statuses and not has_news):
        end(record, _final_answer(run))
        return LEAVE
    if not has_news and _denied_repeatedly(run, statuses):
        end(record, Ending(ExitReason.DENIED_REPEATEDLY))
        return LEAVE
    if run.pass_number >= run.max_passes:
        return Turn(Move.CLOSE, ExitReason.MAX_PASSES)
    if not has_news and statuses and set(statuses) == {CallStatus.DUPLICATE}:
        return Turn(Move.CLOSE, ExitReason.ALL_TOOLS_DUPLICATE)
    return Turn(Move.ASK)


def _final_answer(run: Run) -> Ending:
    """The model's own; of a run by hand, for which no model is asked, what its one call came to."""
    if run.origin != Origin.MANUAL:
        rows = Pass.objects.filter(run_id=run.pk, number=run.pass_number)
        return Ending.answered(*rows.values_list("text", "cut_off").get())
    result = ToolCall.objects.values_list("result", flat=True).get(run_id=run.pk, parent_call=None) or {}
    error = result.get("error")
    answer = f"The call failed: {error['message']}" if error else str(result.get("summary", ""))
    return Ending(ExitReason.FINAL_ANSWER, answer)


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


def wake_if_possible(record: Recording, by: str = MACHINE) -> bool:
    """Queue a parked run if a call can start now or all calls are terminal; otherwise it keeps waiting.

    Args:
        by: the name of the person whose act it was, as the panel tells it.
    """
    run = record.run
    if run.status not in PARKED:
        return False
    statuses = set(ToolCall.objects.filter(_open(run)).values_list("status", flat=True))
    if statuses and _possible(record, statuses) is None:
        if run.status == RunStatus.NEEDS_ATTENTION and CallStatus.OUTCOME_UNKNOWN not in statuses:
            park(record, needs_attention=False)
        return False
    requeue(record)
    if not run.stopped_because:
        record.publish(EventType.RUN_RESUMED, by=by, pass_number=run.pass_number)
    return True
