"""Run approved calls one by one (step 3 of a run): each is judged and previewed again, and started
at most once."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, NoReturn, TypeVar

from django.db import DatabaseError, InternalError, OperationalError, connection, transaction
from django.db.models.functions import Now

from agents.platform.database_outages import OUTAGE_ERRORS, describe_outage
from agents.runs.engine.approved_calls import ApprovedCall
from agents.runs.engine.card_sentences import CallEffect
from agents.runs.engine.cards import (
    compute_effect_again,
    compute_effect_here,
    describe_refusal,
    hash_params,
    replace_after_drift,
    replace_card,
    withdraw,
)
from agents.runs.engine.context import load_context
from agents.runs.engine.execution import CallTerms, prepare_call, run_call
from agents.runs.engine.judgment import lock_counted
from agents.runs.engine.lease import Lease, is_shutting_down
from agents.runs.engine.next_step import wake_if_possible
from agents.runs.engine.planned_order import find_holding_calls, hold
from agents.runs.engine.preapprover import get_preapprover
from agents.runs.engine.recovery import record_late_effect
from agents.runs.engine.requested_calls import find_call_timeout, publish_call_start
from agents.runs.engine.results import (
    CallExecution,
    NotExecuting,
    build_end_columns,
    end_unexecuted,
    keep_provenance,
    publish_result,
    record_result,
    reject,
)
from agents.runs.engine.suspension import suspend
from agents.runs.engine.timing import timing
from agents.runs.engine.transaction import LostRace, NextStep, Transaction, run_transaction
from agents.runs.engine.unknown_outcomes import close_unknown_card, mark_outcome_unknown
from agents.runs.events import CallResolved
from agents.runs.models import Approval, ApprovalStatus, CallStatus, ToolCall
from agents.runs.queries.engine import STARTABLE_CARD, STILL_APPROVED
from tools.contract import ErrorCode, Suspend, Tool, ToolError, ToolResult
from tools.toolbox import executor
from tools.toolbox.limits import UNGUARDED
from tools.toolbox.objections import Objection

logger = logging.getLogger(__name__)
Value = TypeVar("Value")
_MAX_RECORDING_TRIES = 3
_TRANSACTION_TRIES = 3


def run_approved(lease: Lease) -> NextStep:
    """Run the first approved call whose grace period is over, and return the run's next step."""
    found = STARTABLE_CARD.fetch_one(lease.run_id)
    if found is None or found.card.after_id is not None or lease.stopped.is_set():
        with lease.transaction() as tx:
            pass  # the end of a transaction decides the next step
        return tx.next_step
    card = found.card
    card.tool_call, card.decided_by = found.call, found.decided_by
    due = ApprovedCall(load_context(lease.run_id), card)
    lease.expect_step(2 * find_call_timeout(due.call))
    if (
        due.tool is not None
        and due.tool.transactional
        and due.matches_card
        and due.verdict.error is None
    ):
        return _run_transactional_write(lease, due, due.tool)
    return _run_external_write(lease, due)


def _run_external_write(lease: Lease, due: ApprovedCall) -> NextStep:
    """Run a call with an effect outside our database: commit its start, run the tool, then record
    the result."""
    due.effect = compute_effect_again(
        due.card, due.tool, due.verdict, due.context.build_tool_context(due.call)
    )
    with lease.transaction(renews=True) as tx:
        effect = _use_approval(tx, due)
        if effect is not None:
            _start_attempt(
                due.call,
                status=CallStatus.EXECUTING,
                exec_epoch=lease.epoch,
                started_at=tx.now,
                deadline_at=tx.now + timedelta(seconds=find_call_timeout(due.call)),
            )
            publish_call_start(tx, due.call)
            _audit_start(tx, due)
            tx.step_continues = True
    if effect is None:
        return tx.next_step
    on_late = partial(_report_late, lease.epoch, due.call)
    terms = CallTerms(approved=effect.preview, may_begin=lease.may_begin_effect, on_late=on_late)
    done = run_call(due.context, due.call, terms)
    return _record_outcome(lease, due, done)


def _start_attempt(call: ToolCall, **columns: Any) -> None:
    """Start the only attempt at an approved call.

    Raises:
        LostRace: the call is not approved; its transaction must be rolled back.
    """
    approved = ToolCall.objects.filter(pk=call.pk, status=CallStatus.APPROVED, attempts=0)
    if approved.update(attempts=1, **columns) != 1:
        raise LostRace(f"call {call.pk} is not approved, although its approval was consumed")


def _use_approval(tx: Transaction, due: ApprovedCall) -> CallEffect | None:
    """Judge the call under the run's lock and consume its approval; return the approved effect.

    Return None if the call may not start now. If the call no longer matches its card, a new card
    asks again, or the call is rejected.
    """
    if not tx.run.may_start or STILL_APPROVED.fetch_one(due.card.pk) is None:
        return None
    objection = due.judge_again(tx)
    if objection is not None and objection.error is not None:
        _refuse(tx, due, objection.error)
        return None
    effect = due.effect
    assert isinstance(effect, CallEffect)
    is_granted = objection is None and due.card.standing_grant_id is not None
    if is_granted and _waits_for_earlier_call(tx, due.card, effect):
        return None
    if is_granted and (withdrawn := due.find_grant_objection()) is not None:
        get_preapprover().end(withdrawn.ended)
        why = f"The standing grant that approved this no longer covers it: {withdrawn.why}."
        replace_card(tx, due.card, effect, why)
        return None
    approved = Approval.objects.filter(pk=due.card.pk, status=ApprovalStatus.APPROVED)
    in_time = approved.filter(valid_until__gt=Now(), start_after__lte=Now())
    if objection is None and in_time.update(status=ApprovalStatus.CONSUMED, consumed_at=Now()):
        return effect
    _ask_again(tx, due, effect, objection or Objection("The approval was not used in time."))
    return None


def _waits_for_earlier_call(tx: Transaction, card: Approval, effect: CallEffect) -> bool:
    """Hold a preapproved call until an earlier call that it depends on ends, or ask a person if
    one has failed; return False if all have succeeded."""
    ((awaited, failed),) = find_holding_calls(tx.run, [card.tool_call])
    if failed:
        replace_card(tx, card, effect, f"This was planned after another call, which {failed}.")
    elif awaited is not None:
        hold(card, awaited)
        card.save(update_fields=("after", "valid_until"))
    return bool(failed) or awaited is not None


def _ask_again(
    tx: Transaction, due: ApprovedCall, effect: CallEffect, objection: Objection
) -> None:
    due.seal_changes(due.call)
    replace_after_drift(tx, due.card, effect, objection.why)


def _refuse(tx: Transaction, due: ApprovedCall, error: ToolError) -> None:
    if withdraw(tx, due.card, error.message):
        reject(tx, due.call, error)


def _audit_start(tx: Transaction, due: ApprovedCall) -> None:
    tx.audit(
        f"employee:{due.context.run.employee.name}",
        "call_started",
        f"tool_call:{due.call.pk}",
        tool=due.call.tool,
        params_hash=hash_params(due.call.params),
        digest=due.card.digest,
        approval=str(due.card.pk),
        approved_by=due.card.decider,
    )


def _record_outcome(lease: Lease, due: ApprovedCall, done: executor.FinishedCall) -> NextStep:
    """Record the outcome of an external write, even if the lease was lost, because the effect has
    happened.

    This is retried while the database is unavailable, so that a known outcome does not become
    unknown.
    """
    call = due.call

    def record() -> NextStep:
        lease.expect_step(find_call_timeout(call))
        with lease.transaction(even_if_lost=True) as tx:
            error = done.result.error
            if tx.run.lease_epoch != lease.epoch:
                _settle_by_late_report(tx, lease.epoch, call, done.result)
            elif done.suspend is not None:
                _suspend_write(tx, call, done.suspend, done)
            elif error is not None and not error.is_definite:
                mark_outcome_unknown(tx, call, error.fact or error.message, error.words)
            elif not record_result(
                tx, call, CallExecution(lease.epoch, done.result, done.duration_ms)
            ):
                _settle_by_late_report(tx, lease.epoch, call, done.result)
            due.context.save_session(tx.run, call)
        return tx.next_step

    return record_patiently(f"recording what call {call.pk} did", record)


def _suspend_write(
    tx: Transaction, call: ToolCall, wait: Suspend, done: executor.FinishedCall
) -> None:
    """Suspend an approved call that waits for an answer or a colleague; if it was given up in the
    meantime, record its result as a late report."""
    epoch = tx.run.lease_epoch
    try:
        suspend(tx, call, wait, done.duration_ms)
    except NotExecuting:
        _settle_by_late_report(tx, epoch, call, done.result)


def _report_late(epoch: int, call: ToolCall, _key: int, result: ToolResult) -> None:
    """Record the result of a call that was given up, in the tool's own thread."""

    def record() -> None:
        with run_transaction(call.run_id) as tx:
            _settle_by_late_report(tx, epoch, call, result)

    record_patiently(f"recording the late report of call {call.pk}", record)


def _settle_by_late_report(tx: Transaction, epoch: int, call: ToolCall, result: ToolResult) -> None:
    """Settle a call by the late report of its worker, even if nobody has noticed yet that the
    worker was lost.

    If the call is already settled, the report is only published and audited, and a success is
    recorded as a late effect.
    """
    outcome = "succeeded" if result.success else "failed"
    unsettled = (CallStatus.EXECUTING, CallStatus.OUTCOME_UNKNOWN)
    open_call = ToolCall.objects.filter(pk=call.pk, status__in=unsettled, exec_epoch=epoch)
    is_definite = result.success or (result.error is not None and result.error.is_definite)
    if is_definite and open_call.update(**build_end_columns(tx, call, result)):
        close_unknown_card(call, "The worker reported late.")
        keep_provenance(call, result)
        tx.inbox_changed = True
        tx.publish(CallResolved(str(call.pk), outcome, "gadget", "The worker reported late."))
        wake_if_possible(tx)
    else:
        reported = outcome if is_definite else "its outcome is unknown"
        tx.publish(
            CallResolved(
                str(call.pk), "late_report", "gadget", f"The worker reported late: {reported}."
            )
        )
        record_late_effect(tx, call, epoch, result)
    tx.audit("gadget", "late_report", f"tool_call:{call.pk}", tool=call.tool, outcome=outcome)


def record_patiently(what: str, act: Callable[[], Value]) -> Value:
    """Run a function that records something that must not be lost, and retry it as long as the
    database is unavailable.

    After other database errors, or while the worker is shutting down, the function is tried at most
    three times.
    """
    tries = 0
    while True:
        try:
            return act()
        except OUTAGE_ERRORS as error:
            tries += 1
            condition = describe_outage(error)
            if tries >= _MAX_RECORDING_TRIES and (not condition or is_shutting_down()):
                raise
            logger.warning("%s: %s (%s)", what, condition or "the database failed", error)
            connection.close()
        if tries > 1:
            time.sleep(timing().sweep_s)


def _run_transactional_write(lease: Lease, due: ApprovedCall, tool: Tool) -> NextStep:
    """Run a write to our own database: guards, effect, result and events are one commit, so it
    happens exactly once."""
    for attempt in range(1, _TRANSACTION_TRIES + 1):
        try:
            with lease.transaction() as tx:
                _write_in_transaction(tx, due, tool)
            return tx.next_step
        except DatabaseError as error:
            if attempt == _TRANSACTION_TRIES:
                if describe_outage(error):
                    raise  # the call stays approved and starts later
                break
    message = "The database was busy or refused the change. Nothing was changed."
    failure = ToolError(ErrorCode.OPERATION_FAILED, message, attempted=False)
    with lease.transaction() as tx:
        if withdraw(tx, due.card, failure.message) and end_unexecuted(
            tx, due.call, CallStatus.FAILED, failure
        ):
            publish_result(tx, due.call, ToolResult.failed(failure))
    return tx.next_step


def _write_in_transaction(tx: Transaction, due: ApprovedCall, tool: Tool) -> None:
    call = due.call
    # Always lock counts and card before the targets, so that two writes cannot deadlock.
    lock_counted(tx, due.context, [due.call.tool])
    list(Approval.objects.select_for_update().filter(pk=due.card.pk).values_list("pk"))
    tool_context = replace(due.context.build_tool_context(call), **_REFUSED_INSIDE)
    try:
        with transaction.atomic():
            due.effect = compute_effect_here(tool, call.params, tool_context, (DatabaseError,))
    except ToolError as error:
        due.effect = describe_refusal(tool, due.card, error)
    effect = _use_approval(tx, due)
    if effect is None:
        return
    publish_call_start(tx, call)
    prepared = prepare_call(
        due.context, call, CallTerms(approved=effect.preview, may_suspend=False)
    )
    result = _run_in_savepoint(
        replace(prepared, context=replace(prepared.context, **_REFUSED_INSIDE), guards=UNGUARDED)
    )
    duration_ms = int(result.metadata.get("duration_ms", 0))
    _start_attempt(
        call,
        exec_epoch=tx.run.lease_epoch,
        started_at=tx.now,
        **build_end_columns(tx, call, result, duration_ms),
    )
    publish_result(tx, call, result, duration_ms)
    due.context.save_session(tx.run, call)
    tx.run.crash_count = 0
    _audit_start(tx, due)


class _ToolFailed(Exception):
    """The tool returned a failure, so its savepoint is rolled back."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.summary)
        self.result = result


def _run_in_savepoint(prepared: executor.PreparedCall) -> ToolResult:
    try:
        with transaction.atomic():
            result = executor.run_call(prepared, let_through=(OperationalError,))
            if not result.success:
                raise _ToolFailed(result)
            if transaction.get_rollback():
                raise InternalError("the tool suppressed a database error")
    except _ToolFailed as failure:
        return failure.result
    except InternalError:
        logger.exception("%s: its changes were rolled back", prepared.tool.id)
        message = f"{prepared.tool.title} failed in the database. Nothing was changed."
        return ToolResult.failed(
            ToolError(ErrorCode.TOOL_EXECUTION_FAILED, message, attempted=False)
        )
    return result


def _refuse_inside(*_: object) -> NoReturn:
    raise ToolError(
        ErrorCode.OPERATION_NOT_ALLOWED,
        "A transactional tool reports no progress and calls no tools.",
        attempted=False,
    )


_REFUSED_INSIDE: dict[str, Any] = {"progress": _refuse_inside, "call_tool": _refuse_inside}
"""The parts of a tool's context that a transactional tool may not use."""
