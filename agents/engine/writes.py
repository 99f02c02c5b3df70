"""Executes approved calls, one by one: judged again, previewed again, started at most once."""

import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, NoReturn

from django.db import DatabaseError, InternalError, OperationalError, transaction
from django.db.models.functions import Now

from agents.database_condition import condition_of
from agents.engine import lease, turns
from agents.engine.cards import Effect, drifted, effect_here, effect_now, seal, withdraw
from agents.engine.digests import digest_of, params_hash_of
from agents.engine.execution import Alone, run_alone
from agents.engine.gate import Workplace, workplace
from agents.engine.late_effects import happened_meanwhile, note_late_effect
from agents.engine.outcomes import (
    Execution,
    NotExecuting,
    close_unknown_card,
    end_unexecuted,
    ended,
    lose_outcome,
    publish_result,
    record_result,
    reject,
)
from agents.engine.patience import record_patiently
from agents.engine.starting import publish_start, timeout_of
from agents.engine.suspended import Waiting, suspend
from agents.engine.turns import Turn
from agents.events import LostRace, Recording, recording
from agents.models import Approval, ApprovalStatus, CallStatus, EventType, ToolCall
from tools.contract import ErrorCode, Preview, Tool, ToolError, ToolResult
from tools.toolbox.executor import Finished, PreparedCall, run_call
from tools.toolbox.permissions import Verdict

logger = logging.getLogger(__name__)

_TRIES = 3


class _TriedInVain(Exception):
    """The tool returned a failure: roll its savepoint back."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.summary)
        self.result = result


@dataclass(frozen=True)
class _Approved:
    """An approved call whose start is due, as it was found before its transaction."""

    place: Workplace
    call: ToolCall
    card: Approval
    tool: Tool | None
    verdict: Verdict

    @property
    def fits(self) -> bool:
        """True if tool, definition, level and params are still what the card shows."""
        same = self.tool is not None and self.tool.definition_hash == self.call.definition_hash
        return same and self.verdict.level == self.call.level and self.verdict.params == self.call.params


def run_approved(held: lease.Claim) -> Turn:
    """Start the first of the approved calls whose grace is over, and find the next move."""
    waiting = Approval.objects.filter(run_id=held.run_id, status=ApprovalStatus.APPROVED, start_after__lte=Now())
    card = waiting.select_related("tool_call", "decided_by").order_by("tool_call").first()
    if card is None or held.stopped.is_set():
        with held.recording() as record:
            return turns.settle(record, held)
    place = workplace(held.run_id)
    tool, verdict = place.judge(card.tool_call.tool, card.tool_call.params)
    due = _Approved(place, card.tool_call, card, tool, verdict)
    held.expects(2 * timeout_of(due.call))
    if tool is not None and tool.transactional and due.fits and verdict.error is None:
        return _run_inside_transaction(held, due, tool)
    return _run_outside(held, due)


def _run_outside(held: lease.Claim, due: _Approved) -> Turn:
    """A write beyond our database: the intent is committed first, then the tool runs, then its result is recorded."""
    effect = effect_now(due.card, due.tool, due.verdict, due.place.context(due.call))
    with held.renewing() as record:
        place = _may_start(record, due, effect)
        if place is None or isinstance(effect, ToolError):
            return turns.settle(record, held)
        _start(
            due.call,
            status=CallStatus.EXECUTING,
            exec_epoch=held.epoch,
            started_at=record.now,
            deadline_at=record.now + timedelta(seconds=timeout_of(due.call)),
        )
        publish_start(record, due.call)
        _audit_execution(record, due)
    alone = Alone(effect.preview, held.may_begin_effect, partial(_report_late, held.epoch, due.call))
    done = run_alone(place, due.call, alone)
    return _record_done(held, due, done)


def _start(call: ToolCall, **columns: Any) -> None:
    """The one attempt of an approved call; nothing of its transaction is committed if the call is not approved."""
    approved = ToolCall.objects.filter(pk=call.pk, status=CallStatus.APPROVED, attempts=0)
    if approved.update(attempts=1, **columns) != 1:
        raise LostRace(f"call {call.pk} is not approved, although its approval was consumed")


def _may_start(record: Recording, due: _Approved, effect: Effect | ToolError) -> Workplace | None:
    """The guards, under the run's lock; consumes the approval if they all hold, and returns by what they judged."""
    approved = Approval.objects.filter(pk=due.card.pk, status=ApprovalStatus.APPROVED)
    if not record.run.may_start or not approved.exists():
        return None
    place = due.place.judging_anew()
    tool, verdict = place.judge(due.call.tool, due.call.params)
    due = replace(due, tool=tool, verdict=verdict)
    if (refusal := verdict.error or effect) and isinstance(refusal, ToolError):
        _refuse(record, due, refusal)
        return None
    assert isinstance(effect, Effect)
    why = _what_changed(due, effect)
    in_time = approved.filter(valid_until__gt=Now(), start_after__lte=Now())
    if not why and in_time.update(status=ApprovalStatus.CONSUMED, consumed_at=Now()):
        return place
    drifted(record, due.card, effect, why or "The approval was not used in time.")
    return None


def _what_changed(due: _Approved, effect: Effect) -> str:
    """Why the card no longer shows what would run; empty if it does. The call is sealed anew for its next card."""
    if not due.fits and due.tool is not None:
        due.call.level = str(due.verdict.level)
        seal(due.call, due.tool, due.verdict.params)
        return "The tool or its level changed since this was approved."
    if params_hash_of(due.call.params) != params_hash_of(due.card.params):
        return "The params were changed in the database after this was approved."
    if happened_meanwhile(due.card):
        return "The same call was declared not done but happened: this would do it a second time."
    if digest_of(due.call, effect.preview.as_json()) != due.card.digest:
        return "The target changed since this was approved."
    return ""


def _refuse(record: Recording, due: _Approved, error: ToolError) -> None:
    if withdraw(record, due.card, error.message):
        reject(record, due.call, error)


def _audit_execution(record: Recording, due: _Approved) -> None:
    by = due.card.decided_by.get_username() if due.card.decided_by else ""
    record.audit(
        f"employee:{due.place.run.employee.name}",
        "call_started",
        f"tool_call:{due.call.pk}",
        tool=due.call.tool,
        params_hash=params_hash_of(due.call.params),
        digest=due.card.digest,
        approval=str(due.card.pk),
        approved_by=by,
    )


def _run_inside_transaction(held: lease.Claim, due: _Approved, tool: Tool) -> Turn:
    """A write on our own database: guards, effect, result and lines are one commit, so it happens exactly once."""
    for attempt in range(1, _TRIES + 1):
        try:
            with held.recording() as record:
                _attempt(record, due, tool)
                return turns.settle(record, held)
        except DatabaseError as refusal:
            if attempt == _TRIES:
                if condition_of(refusal):
                    raise  # the call stays approved and starts later
                break
    with held.recording() as record:
        error = ToolError(
            ErrorCode.OPERATION_FAILED, "The database refused, or was busy; nothing was changed.", attempted=False
        )
        if withdraw(record, due.card, error.message) and end_unexecuted(record, due.call, CallStatus.FAILED, error):
            publish_result(record, due.call, ToolResult.failed(error), 0)
        return turns.settle(record, held)


def _attempt(record: Recording, due: _Approved, tool: Tool) -> None:
    call = due.call
    list(Approval.objects.select_for_update().filter(pk=due.card.pk).values_list("pk"))
    context = replace(due.place.context(call), progress=_refused_inside, call_tool=_refused_inside)
    try:
        with transaction.atomic():
            effect = effect_here(tool, call.params, context, (DatabaseError,))
    except ToolError as error:
        effect = Effect(due.card.sentence, Preview.impossible(error.message))
    if not _may_start(record, due, effect):
        return
    publish_start(record, call)
    sealed = replace(context, preview=effect.preview)
    result = _in_savepoint(PreparedCall(call.pk, tool, call.params, sealed, timeout_of(call)))
    duration_ms = int(result.metadata.get("duration_ms", 0))
    _start(
        call,
        exec_epoch=record.run.lease_epoch,
        started_at=record.now,
        **ended(record, call, result, duration_ms),
    )
    publish_result(record, call, result, duration_ms)
    due.place.keep_session(record.run, call)
    record.run.crash_count = 0
    _audit_execution(record, due)


def _refused_inside(*_: object) -> NoReturn:
    raise ToolError(
        ErrorCode.OPERATION_NOT_ALLOWED, "A transactional tool reports no progress and calls no tools.", attempted=False
    )


def _in_savepoint(prepared: PreparedCall) -> ToolResult:
    try:
        with transaction.atomic():
            result = run_call(prepared, let_through=(OperationalError,))
            if not result.success:
                raise _TriedInVain(result)
            if transaction.get_rollback():
                raise InternalError("the tool kept a database error to itself")
    except _TriedInVain as failure:
        return failure.result
    except InternalError:
        logger.exception("%s: its changes were rolled back", prepared.tool.id)
        message = f"{prepared.tool.title} failed in the database; nothing was changed."
        return ToolResult.failed(ToolError(ErrorCode.TOOL_EXECUTION_FAILED, message, attempted=False))
    return result


def _record_done(held: lease.Claim, due: _Approved, done: Finished) -> Turn:
    """Record what an external write reported, whoever drives the run by now: the effect is a fact.

    A database that is busy or away must not turn a known result into an unknown one.
    """

    def record() -> Turn:
        held.expects(timeout_of(due.call))
        return _record_once(held, due, done)

    return record_patiently(f"recording what call {due.call.pk} did", record)


def _record_once(held: lease.Claim, due: _Approved, done: Finished) -> Turn:
    call, place = due.call, due.place
    with recording(held.run_id) as record:
        error = done.result.error
        if record.run.lease_epoch != held.epoch:
            _settle_late(record, held.epoch, call, done.result)
        elif done.suspend is not None:
            _let_wait(record, held, call, done)
        elif error is not None and not error.is_definite:
            lose_outcome(record, call, error.message)
        elif not record_result(record, call, Execution(held.epoch, done.result, done.duration_ms)):
            _settle_late(record, held.epoch, call, done.result)
        place.keep_session(record.run, call)
        if held.holds(record.run):
            return turns.settle(record, held)
    logger.info("run %s: the lease was lost while a write was executing", held.run_id)
    return turns.LEAVE


def _let_wait(record: Recording, held: lease.Claim, call: ToolCall, done: Finished) -> None:
    """An approved call asks a question or hands a task over; if it was given up meanwhile, it did nothing."""
    assert done.suspend is not None
    try:
        suspend(record, call, Waiting(held.epoch, done.suspend, done.duration_ms))
    except NotExecuting:
        _settle_late(record, held.epoch, call, done.result)


def _report_late(epoch: int, call: ToolCall, _key: int, result: ToolResult) -> None:
    """In the tool's thread: the call was given up and reports after all."""

    def record() -> None:
        with recording(call.run_id) as late:
            _settle_late(late, epoch, call, result)

    record_patiently(f"recording the late report of call {call.pk}", record)


def _settle_late(record: Recording, epoch: int, call: ToolCall, result: ToolResult) -> None:
    """The original executor proves what happened, unless a person has said so before: then it is only audited.

    It may come before anybody noticed that the call was given up.
    """
    outcome = "succeeded" if result.success else "failed"
    unsettled = (CallStatus.EXECUTING, CallStatus.OUTCOME_UNKNOWN)
    unknown = ToolCall.objects.filter(pk=call.pk, status__in=unsettled, exec_epoch=epoch)
    is_definite = result.success or (result.error is not None and result.error.is_definite)
    if is_definite and unknown.update(**ended(record, call, result)):
        close_unknown_card(call, "The executor reported late.")
        record.inbox_changed = True
        publish_resolution(record, call, Resolution(outcome, "gadget", "The executor reported late."))
        turns.wake_if_possible(record)
    else:
        said = outcome if is_definite else "nobody can know whether it happened"
        publish_resolution(record, call, Resolution("late_report", "gadget", f"It reported after all: {said}."))
        note_late_effect(record, call, epoch, result)
    record.audit("gadget", "late_report", f"tool_call:{call.pk}", tool=call.tool, outcome=outcome)


@dataclass(frozen=True)
class Resolution:
    """What became of an unknown outcome, and who says so."""

    outcome: str
    by: str
    reason: str


def publish_resolution(record: Recording, call: ToolCall, said: Resolution) -> None:
    """The panel's line for an unknown outcome that was settled."""
    record.publish(EventType.CALL_RESOLVED, call_id=str(call.pk), outcome=said.outcome, by=said.by, reason=said.reason)
