"""Step 3 of a run: run approved calls, one by one: judged again, previewed again, started at most once."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, NoReturn, TypeVar

from django.db import DatabaseError, InternalError, OperationalError, connection, transaction
from django.db.models.functions import Now

from agents.approvals.models import Approval, ApprovalStatus
from agents.platform.database_condition import UNAVAILABLE, condition_of
from agents.runs.engine.cards import (
    Effect,
    close_unknown_card,
    digest_of,
    drifted,
    effect_here,
    effect_now,
    lose_outcome,
    params_hash_of,
    seal,
    withdraw,
)
from agents.runs.engine.context import RunContext, load_context
from agents.runs.engine.execution import Terms, prepare_call, run_call
from agents.runs.engine.lease import Lease, is_going_down
from agents.runs.engine.next_step import wake_if_possible
from agents.runs.engine.recovery import happened_meanwhile, note_late_effect
from agents.runs.engine.requested_calls import publish_start, timeout_of
from agents.runs.engine.results import (
    Execution,
    NotExecuting,
    end_columns,
    end_unexecuted,
    publish_result,
    record_result,
    reject,
)
from agents.runs.engine.suspension import suspend
from agents.runs.engine.timing import timing
from agents.runs.engine.transaction import LostRace, NextStep, Transaction, run_transaction
from agents.runs.events import CallResolved
from agents.runs.models import CallStatus, ToolCall
from tools.contract import ErrorCode, Preview, Suspend, Tool, ToolError, ToolResult
from tools.toolbox.executor import Finished, PreparedCall
from tools.toolbox.executor import run_call as run_here
from tools.toolbox.limits import UNGUARDED
from tools.toolbox.permissions import Verdict

logger = logging.getLogger(__name__)


_MOST_RECORDING_TRIES = 3

Value = TypeVar("Value")


def record_patiently(what: str, act: Callable[[], Value]) -> Value:
    """Record something that must not be lost; retry for as long as a condition of the database prevents it.

    Any other failure of the database, or a condition while the worker shuts down, is tried three times.
    """
    tries = 0
    while True:
        try:
            return act()
        except UNAVAILABLE as error:
            tries += 1
            condition = condition_of(error)
            if tries >= _MOST_RECORDING_TRIES and (not condition or is_going_down()):
                raise
            logger.warning("%s: %s (%s)", what, condition or "the database failed", error)
            connection.close()
        if tries > 1:
            time.sleep(timing().sweep_s)


_TRIES = 3


class _ToolFailed(Exception):
    """The tool returned a failure: roll its savepoint back."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.summary)
        self.result = result


@dataclass(frozen=True)
class _ApprovedCall:
    """An approved call that is due, as it was read before its transaction."""

    context: RunContext
    call: ToolCall
    card: Approval
    tool: Tool | None
    verdict: Verdict

    @property
    def fits(self) -> bool:
        """Return True if tool, definition, level and params are still those on the card."""
        same = self.tool is not None and self.tool.definition_hash == self.call.definition_hash
        return same and self.verdict.level == self.call.level and self.verdict.params == self.call.params


def run_approved(lease: Lease) -> NextStep:
    """Run the first of the approved calls whose grace is over."""
    waiting = Approval.objects.filter(run_id=lease.run_id, status=ApprovalStatus.APPROVED, start_after__lte=Now())
    card = waiting.select_related("tool_call", "decided_by").order_by("tool_call").first()
    if card is None or lease.stopped.is_set():
        with lease.transaction() as tx:
            pass
        return tx.next_step
    context = load_context(lease.run_id)
    tool, verdict = context.judge(card.tool_call.tool, card.tool_call.params)
    due = _ApprovedCall(context, card.tool_call, card, tool, verdict)
    lease.expect_step(2 * timeout_of(due.call))
    if tool is not None and tool.transactional and due.fits and verdict.error is None:
        return _run_inside_transaction(lease, due, tool)
    return _run_outside(lease, due)


def _run_outside(lease: Lease, due: _ApprovedCall) -> NextStep:
    """Write beyond our database: commit the intent, run the tool, then record its result."""
    effect = effect_now(due.card, due.tool, due.verdict, due.context.tool_context(due.call))
    with lease.transaction(renews=True) as tx:
        context = _use_approval(tx, due, effect)
        if context is not None:
            _start(
                due.call,
                status=CallStatus.EXECUTING,
                exec_epoch=lease.epoch,
                started_at=tx.now,
                deadline_at=tx.now + timedelta(seconds=timeout_of(due.call)),
            )
            publish_start(tx, due.call)
            _audit_start(tx, due)
            tx.is_midway = True
    if context is None or isinstance(effect, ToolError):
        return tx.next_step
    on_late = partial(_report_late, lease.epoch, due.call)
    terms = Terms(approved=effect.preview, may_begin=lease.may_begin_effect, on_late=on_late)
    done = run_call(context, due.call, terms)
    return _record_done(lease, due, done)


def _start(call: ToolCall, **columns: Any) -> None:
    """Begin the one attempt of an approved call.

    Raises:
        LostRace: the call is not approved; nothing of its transaction may be committed.
    """
    approved = ToolCall.objects.filter(pk=call.pk, status=CallStatus.APPROVED, attempts=0)
    if approved.update(attempts=1, **columns) != 1:
        raise LostRace(f"call {call.pk} is not approved, although its approval was consumed")


def _use_approval(tx: Transaction, due: _ApprovedCall, effect: Effect | ToolError) -> RunContext | None:
    """Check all guards under the run's lock and consume the approval; return the context that judged the call.

    If a guard fails, a person is asked again, or the call is rejected: None.
    """
    approved = Approval.objects.filter(pk=due.card.pk, status=ApprovalStatus.APPROVED)
    if not tx.run.may_start or not approved.exists():
        return None
    context = due.context.with_current_rules()
    tool, verdict = context.judge(due.call.tool, due.call.params)
    due = replace(due, tool=tool, verdict=verdict)
    if (refusal := verdict.error or effect) and isinstance(refusal, ToolError):
        _refuse(tx, due, refusal)
        return None
    assert isinstance(effect, Effect)
    why = _what_changed(due, effect)
    in_time = approved.filter(valid_until__gt=Now(), start_after__lte=Now())
    if not why and in_time.update(status=ApprovalStatus.CONSUMED, consumed_at=Now()):
        return context
    drifted(tx, due.card, effect, why or "The approval was not used in time.")
    return None


def _what_changed(due: _ApprovedCall, effect: Effect) -> str:
    """Say why the card no longer shows what would run; empty if it does. Seals the call for its next card."""
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


def _refuse(tx: Transaction, due: _ApprovedCall, error: ToolError) -> None:
    if withdraw(tx, due.card, error.message):
        reject(tx, due.call, error)


def _audit_start(tx: Transaction, due: _ApprovedCall) -> None:
    by = due.card.decided_by.get_username() if due.card.decided_by else ""
    tx.audit(
        f"employee:{due.context.run.employee.name}",
        "call_started",
        f"tool_call:{due.call.pk}",
        tool=due.call.tool,
        params_hash=params_hash_of(due.call.params),
        digest=due.card.digest,
        approval=str(due.card.pk),
        approved_by=by,
    )


def _run_inside_transaction(lease: Lease, due: _ApprovedCall, tool: Tool) -> NextStep:
    """Write to our own database: guards, effect, result and events are one commit, so it happens exactly once."""
    for attempt in range(1, _TRIES + 1):
        try:
            with lease.transaction() as tx:
                _attempt(tx, due, tool)
            return tx.next_step
        except DatabaseError as refusal:
            if attempt == _TRIES:
                if condition_of(refusal):
                    raise  # the call stays approved and starts later
                break
    with lease.transaction() as tx:
        error = ToolError(
            ErrorCode.OPERATION_FAILED, "The database refused, or was busy; nothing was changed.", attempted=False
        )
        if withdraw(tx, due.card, error.message) and end_unexecuted(tx, due.call, CallStatus.FAILED, error):
            publish_result(tx, due.call, ToolResult.failed(error))
    return tx.next_step


def _attempt(tx: Transaction, due: _ApprovedCall, tool: Tool) -> None:
    call = due.call
    list(Approval.objects.select_for_update().filter(pk=due.card.pk).values_list("pk"))
    tool_context = replace(due.context.tool_context(call), **_OUTSIDE_ALONE)
    try:
        with transaction.atomic():
            effect = effect_here(tool, call.params, tool_context, (DatabaseError,))
    except ToolError as error:
        effect = Effect(due.card.sentence, Preview.impossible(error.message))
    if not _use_approval(tx, due, effect):
        return
    publish_start(tx, call)
    usual = prepare_call(due.context, call, Terms(approved=effect.preview, may_suspend=False))
    result = _run_in_savepoint(replace(usual, context=replace(usual.context, **_OUTSIDE_ALONE), guards=UNGUARDED))
    duration_ms = int(result.metadata.get("duration_ms", 0))
    _start(
        call,
        exec_epoch=tx.run.lease_epoch,
        started_at=tx.now,
        **end_columns(tx, call, result, duration_ms),
    )
    publish_result(tx, call, result, duration_ms)
    due.context.keep_session(tx.run, call)
    tx.run.crash_count = 0
    _audit_start(tx, due)


def _refuse_inside(*_: object) -> NoReturn:
    raise ToolError(
        ErrorCode.OPERATION_NOT_ALLOWED, "A transactional tool reports no progress and calls no tools.", attempted=False
    )


_OUTSIDE_ALONE: dict[str, Any] = {"progress": _refuse_inside, "call_tool": _refuse_inside}
"""The parts of a context that a tool inside our transaction goes without."""


def _run_in_savepoint(prepared: PreparedCall) -> ToolResult:
    try:
        with transaction.atomic():
            result = run_here(prepared, let_through=(OperationalError,))
            if not result.success:
                raise _ToolFailed(result)
            if transaction.get_rollback():
                raise InternalError("the tool kept a database error to itself")
    except _ToolFailed as failure:
        return failure.result
    except InternalError:
        logger.exception("%s: its changes were rolled back", prepared.tool.id)
        message = f"{prepared.tool.title} failed in the database; nothing was changed."
        return ToolResult.failed(ToolError(ErrorCode.TOOL_EXECUTION_FAILED, message, attempted=False))
    return result


def _record_done(lease: Lease, due: _ApprovedCall, done: Finished) -> NextStep:
    """Record the report of an external write, whoever drives the run by now: the effect is a fact.

    A database that is busy or away must not turn a known result into an unknown one.
    """
    call = due.call

    def record() -> NextStep:
        lease.expect_step(timeout_of(call))
        with lease.transaction(even_if_lost=True) as tx:
            error = done.result.error
            if tx.run.lease_epoch != lease.epoch:
                _settle_late(tx, lease.epoch, call, done.result)
            elif done.suspend is not None:
                _let_wait(tx, call, done.suspend, done)
            elif error is not None and not error.is_definite:
                lose_outcome(tx, call, error.message)
            elif not record_result(tx, call, Execution(lease.epoch, done.result, done.duration_ms)):
                _settle_late(tx, lease.epoch, call, done.result)
            due.context.keep_session(tx.run, call)
        return tx.next_step

    return record_patiently(f"recording what call {call.pk} did", record)


def _let_wait(tx: Transaction, call: ToolCall, wait: Suspend, done: Finished) -> None:
    """Let an approved call wait for an answer or a colleague; if it was given up meanwhile, it did nothing."""
    epoch = tx.run.lease_epoch
    try:
        suspend(tx, call, wait, done.duration_ms)
    except NotExecuting:
        _settle_late(tx, epoch, call, done.result)


def _report_late(epoch: int, call: ToolCall, _key: int, result: ToolResult) -> None:
    """Record, in the tool's thread, the report of a call that was given up."""

    def record() -> None:
        with run_transaction(call.run_id) as tx:
            _settle_late(tx, epoch, call, result)

    record_patiently(f"recording the late report of call {call.pk}", record)


def _settle_late(tx: Transaction, epoch: int, call: ToolCall, result: ToolResult) -> None:
    """Settle a call by the late report of its executor; if a person has settled it before, only audit the report.

    The report may come before anybody noticed that the call was given up.
    """
    outcome = "succeeded" if result.success else "failed"
    unsettled = (CallStatus.EXECUTING, CallStatus.OUTCOME_UNKNOWN)
    unknown = ToolCall.objects.filter(pk=call.pk, status__in=unsettled, exec_epoch=epoch)
    is_definite = result.success or (result.error is not None and result.error.is_definite)
    if is_definite and unknown.update(**end_columns(tx, call, result)):
        close_unknown_card(call, "The executor reported late.")
        tx.inbox_changed = True
        tx.publish(CallResolved(str(call.pk), outcome, "gadget", "The executor reported late."))
        wake_if_possible(tx)
    else:
        said = outcome if is_definite else "nobody can know whether it happened"
        tx.publish(CallResolved(str(call.pk), "late_report", "gadget", f"It reported after all: {said}."))
        note_late_effect(tx, call, epoch, result)
    tx.audit("gadget", "late_report", f"tool_call:{call.pk}", tool=call.tool, outcome=outcome)
