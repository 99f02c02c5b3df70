"""Step 3 of a run: run approved calls one by one, each judged and previewed again, and started at most once."""

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
from agents.platform.database_outages import OUTAGE_ERRORS, describe_outage
from agents.runs.engine.cards import (
    CallEffect,
    close_unknown_card,
    compute_digest,
    compute_effect_again,
    compute_effect_here,
    hash_params,
    mark_outcome_unknown,
    replace_after_drift,
    replace_card,
    seal,
    withdraw,
)
from agents.runs.engine.context import RunContext, load_context
from agents.runs.engine.execution import CallTerms, prepare_call, run_call
from agents.runs.engine.lease import Lease, is_shutting_down
from agents.runs.engine.next_step import wake_if_possible
from agents.runs.engine.recounts import lock_counted
from agents.runs.engine.recovery import has_happened_since, record_late_effect
from agents.runs.engine.requested_calls import find_call_timeout, publish_call_start
from agents.runs.engine.results import (
    CallExecution,
    NotExecuting,
    build_end_columns,
    end_unexecuted,
    keep_marks,
    publish_result,
    record_result,
    reject,
)
from agents.runs.engine.suspension import suspend
from agents.runs.engine.timing import timing
from agents.runs.engine.transaction import LostRace, NextStep, Transaction, run_transaction
from agents.runs.events import CallResolved
from agents.runs.models import CallStatus, ToolCall
from agents.standing_grants.answers import AskingCard, explain_ended, find_warnings
from tools.contract import ErrorCode, Preview, Suspend, Tool, ToolError, ToolResult
from tools.toolbox import executor
from tools.toolbox.conditions import list_exceeded
from tools.toolbox.limits import UNGUARDED
from tools.toolbox.permissions import Verdict

logger = logging.getLogger(__name__)
Value = TypeVar("Value")
_MAX_RECORDING_TRIES = 3
_TRANSACTION_TRIES = 3


@dataclass(frozen=True)
class _ApprovedCall:
    """An approved call that is due, as of before its transaction.

    Attributes:
        warnings: those on the card of a call that a standing grant approved; a person decides about them.
    """

    context: RunContext
    call: ToolCall
    card: Approval
    tool: Tool | None
    verdict: Verdict
    warnings: tuple[str, ...] = ()

    @property
    def matches_card(self) -> bool:
        """True if tool, definition, level and params are still those on the card."""
        same = self.tool is not None and self.tool.definition_hash == self.call.definition_hash
        return same and self.verdict.level == self.call.level and self.verdict.params == self.call.params

    @property
    def keeps_limits(self) -> bool:
        """True if a person has seen on the card each limit on counts that the call exceeds now."""
        conditions, params = self.context.grants.conditions.get(self.call.tool, ()), self.verdict.params
        seen = list_exceeded(conditions, params, (self.call.judgment or {}).get("facts", {}))
        return all(each in seen for each in list_exceeded(conditions, params, self.verdict.facts))


def run_approved(lease: Lease) -> NextStep:
    """Run the first approved call whose grace period is over."""
    waiting = Approval.objects.filter(run_id=lease.run_id, status=ApprovalStatus.APPROVED, start_after__lte=Now())
    card = waiting.select_related("tool_call", "decided_by").order_by("tool_call").first()
    if card is None or lease.stopped.is_set():
        with lease.transaction() as tx:
            pass  # nothing to change: its exit decides the next step
        return tx.next_step
    context = load_context(lease.run_id)
    tool, verdict = context.judge_start(card.tool_call.tool, card.tool_call)
    due = _ApprovedCall(context, card.tool_call, card, tool, verdict, _find_warnings(context, card, tool, verdict))
    lease.expect_step(2 * find_call_timeout(due.call))
    if tool is not None and tool.transactional and due.matches_card and verdict.error is None:
        return _run_transactional_write(lease, due, tool)
    return _run_external_write(lease, due)


def _find_warnings(context: RunContext, card: Approval, tool: Tool | None, verdict: Verdict) -> tuple[str, ...]:
    if card.standing_grant_id is None or tool is None or verdict.error is not None:
        return ()
    return find_warnings(AskingCard(card, context.run, tool, verdict.causes))


def _run_external_write(lease: Lease, due: _ApprovedCall) -> NextStep:
    """Run a call with an effect outside our database: commit the intent, run the tool, then record its result."""
    effect = compute_effect_again(due.card, due.tool, due.verdict, due.context.build_tool_context(due.call))
    with lease.transaction(renews=True) as tx:
        context = _use_approval(tx, due, effect)
        if context is not None:
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
    if context is None or isinstance(effect, ToolError):
        return tx.next_step
    on_late = partial(_report_late, lease.epoch, due.call)
    terms = CallTerms(approved=effect.preview, may_begin=lease.may_begin_effect, on_late=on_late)
    done = run_call(context, due.call, terms)
    return _record_outcome(lease, due, done)


def _start_attempt(call: ToolCall, **columns: Any) -> None:
    """Start the only attempt at an approved call.

    Raises:
        LostRace: the call is not approved; its transaction must be rolled back.
    """
    approved = ToolCall.objects.filter(pk=call.pk, status=CallStatus.APPROVED, attempts=0)
    if approved.update(attempts=1, **columns) != 1:
        raise LostRace(f"call {call.pk} is not approved, although its approval was consumed")


def _use_approval(tx: Transaction, due: _ApprovedCall, effect: CallEffect | ToolError) -> RunContext | None:
    """Check all guards under the run's lock and consume the approval; return the context that judged the call.

    If a guard fails, ask a person again or reject the call, and return None.
    """
    approved = Approval.objects.filter(pk=due.card.pk, status=ApprovalStatus.APPROVED)
    if not tx.run.may_start or not approved.exists():
        return None
    context = due.context.with_current_rules()
    lock_counted(tx, context, [due.call.tool])
    tool, verdict = context.judge_start(due.call.tool, due.call, tx.now)
    due = replace(due, context=context, tool=tool, verdict=verdict)
    if (refusal := verdict.error or effect) and isinstance(refusal, ToolError):
        _refuse(tx, due, refusal)
        return None
    assert isinstance(effect, CallEffect)
    why = _explain_change(due, effect)
    if not why and (ended := _explain_grant(due)):
        replace_card(tx, due.card, effect, f"The standing grant that approved this no longer answers it: {ended}.")
        return None
    in_time = approved.filter(valid_until__gt=Now(), start_after__lte=Now())
    if not why and in_time.update(status=ApprovalStatus.CONSUMED, consumed_at=Now()):
        return context
    if tool is not None and not (due.matches_card and due.keeps_limits):
        context.record_verdict(due.call, verdict)
        seal(due.call, tool, verdict.params)
    replace_after_drift(tx, due.card, effect, why or "The approval was not used in time.")
    return None


def _explain_grant(due: _ApprovedCall) -> str:
    """Explain why the standing grant that approved the call does not let it start; empty if it or a person does."""
    if due.card.standing_grant_id is None or due.tool is None:
        return ""
    if due.warnings:
        return f"the card carries a warning: {', '.join(due.warnings)}"
    return explain_ended(AskingCard(due.card, due.context.run, due.tool, due.verdict.causes))


def _explain_change(due: _ApprovedCall, effect: CallEffect) -> str:
    """Explain why the card no longer matches the call; empty if it matches."""
    if not due.matches_card:
        return "The tool or its level changed since this was approved."
    if not due.keeps_limits:
        return "A limit was reached after this was approved."
    if hash_params(due.call.params) != hash_params(due.card.params):
        return "The params were changed in the database after this was approved."
    if has_happened_since(due.card):
        return "The same call was marked as not done, but it happened. This call would repeat it."
    if compute_digest(due.call, effect.preview.as_json()) != due.card.digest:
        return "The target changed since this was approved."
    return ""


def _refuse(tx: Transaction, due: _ApprovedCall, error: ToolError) -> None:
    if withdraw(tx, due.card, error.message):
        reject(tx, due.call, error)


def _audit_start(tx: Transaction, due: _ApprovedCall) -> None:
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


def _record_outcome(lease: Lease, due: _ApprovedCall, done: executor.FinishedCall) -> NextStep:
    """Record the outcome of an external write, even if the lease was lost: the effect is a fact.

    A busy or unavailable database must not turn a known outcome into an unknown one.
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
                mark_outcome_unknown(tx, call, error.message)
            elif not record_result(tx, call, CallExecution(lease.epoch, done.result, done.duration_ms)):
                _settle_by_late_report(tx, lease.epoch, call, done.result)
            due.context.save_session(tx.run, call)
        return tx.next_step

    return record_patiently(f"recording what call {call.pk} did", record)


def _suspend_write(tx: Transaction, call: ToolCall, wait: Suspend, done: executor.FinishedCall) -> None:
    """Let an approved call wait for an answer or a colleague; a call that was given up did nothing."""
    epoch = tx.run.lease_epoch
    try:
        suspend(tx, call, wait, done.duration_ms)
    except NotExecuting:
        _settle_by_late_report(tx, epoch, call, done.result)


def _report_late(epoch: int, call: ToolCall, _key: int, result: ToolResult) -> None:
    """Record the report of a call that was given up, in the tool's own thread."""

    def record() -> None:
        with run_transaction(call.run_id) as tx:
            _settle_by_late_report(tx, epoch, call, result)

    record_patiently(f"recording the late report of call {call.pk}", record)


def _settle_by_late_report(tx: Transaction, epoch: int, call: ToolCall, result: ToolResult) -> None:
    """Settle a call by the late report of its executor, even if nobody has noticed yet that the call was lost.

    If it was settled before, the report is only published and audited; a success is recorded as a late effect.
    """
    outcome = "succeeded" if result.success else "failed"
    unsettled = (CallStatus.EXECUTING, CallStatus.OUTCOME_UNKNOWN)
    open_call = ToolCall.objects.filter(pk=call.pk, status__in=unsettled, exec_epoch=epoch)
    is_definite = result.success or (result.error is not None and result.error.is_definite)
    if is_definite and open_call.update(**build_end_columns(tx, call, result)):
        close_unknown_card(call, "The worker reported late.")
        keep_marks(call, result)
        tx.inbox_changed = True
        tx.publish(CallResolved(str(call.pk), outcome, "gadget", "The worker reported late."))
        wake_if_possible(tx)
    else:
        reported = outcome if is_definite else "its outcome is unknown"
        tx.publish(CallResolved(str(call.pk), "late_report", "gadget", f"The worker reported late: {reported}."))
        record_late_effect(tx, call, epoch, result)
    tx.audit("gadget", "late_report", f"tool_call:{call.pk}", tool=call.tool, outcome=outcome)


def record_patiently(what: str, act: Callable[[], Value]) -> Value:
    """Record something that must not be lost; retry as long as an outage of the database prevents it.

    After any other failure of the database, or while the worker shuts down, try three times.
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


def _run_transactional_write(lease: Lease, due: _ApprovedCall, tool: Tool) -> NextStep:
    """Run a write on our own database: guards, effect, result and events are one commit, so it happens exactly once."""
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
        if withdraw(tx, due.card, failure.message) and end_unexecuted(tx, due.call, CallStatus.FAILED, failure):
            publish_result(tx, due.call, ToolResult.failed(failure))
    return tx.next_step


def _write_in_transaction(tx: Transaction, due: _ApprovedCall, tool: Tool) -> None:
    call = due.call
    # lock the counts and the card before its targets
    lock_counted(tx, due.context, [due.call.tool])
    list(Approval.objects.select_for_update().filter(pk=due.card.pk).values_list("pk"))
    tool_context = replace(due.context.build_tool_context(call), **_REFUSED_INSIDE)
    try:
        with transaction.atomic():
            effect = compute_effect_here(tool, call.params, tool_context, (DatabaseError,))
    except ToolError as error:
        effect = CallEffect(due.card.sentence, Preview.impossible(error.message))
    if not _use_approval(tx, due, effect):
        return
    publish_call_start(tx, call)
    prepared = prepare_call(due.context, call, CallTerms(approved=effect.preview, may_suspend=False))
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
    """The tool returned a failure: its savepoint is rolled back."""

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
        return ToolResult.failed(ToolError(ErrorCode.TOOL_EXECUTION_FAILED, message, attempted=False))
    return result


def _refuse_inside(*_: object) -> NoReturn:
    raise ToolError(
        ErrorCode.OPERATION_NOT_ALLOWED, "A transactional tool reports no progress and calls no tools.", attempted=False
    )


_REFUSED_INSIDE: dict[str, Any] = {"progress": _refuse_inside, "call_tool": _refuse_inside}
"""The parts of a tool's context that a transactional tool may not use."""
