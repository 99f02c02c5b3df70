"""Execute calls (step 7 of a run).

Every call is prepared by `prepare_call`: the reads of a pass, approved writes, inner calls, the
steps of recipes and manual calls. They differ only in their `CallTerms`. `RunningCalls` runs each
call in its own thread, for no longer than the call's timeout; only a transactional write stays in
the thread of its transaction (see `writes`).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import count
from typing import Any

from typing_extensions import override

from agents.employees.toolboxes import get_installed_toolbox
from agents.platform.database_connections import closing_connection, release_connection
from agents.platform.database_threads import beside_event_loop
from agents.platform.queries.writes import update_rows
from agents.runs.engine.context import RunContext, load_context
from agents.runs.engine.judgment import Judgment, PlannedCalls, lock_counted
from agents.runs.engine.lease import Lease, is_shutting_down
from agents.runs.engine.requested_calls import (
    MAX_CALL_DEPTH,
    CallRequest,
    PlannedCall,
    attach_to_parent,
    begin_execution,
    insert_calls,
    publish_call_start,
)
from agents.runs.engine.results import CallExecution, record_result, record_results, reject
from agents.runs.engine.suspension import make_refusal, suspend
from agents.runs.engine.transaction import NextStep, Transaction, run_transaction
from agents.runs.events import ToolProgress
from agents.runs.models import CallStatus, Origin, RunStatus, ToolCall
from tools.contract import ErrorCode, Fence, Level, Preview, ToolError, ToolResult
from tools.registries.files import FILE_STORE
from tools.toolbox.executor import Batch, FinishedCall, PreparedCall, Progress
from tools.toolbox.objections import Objection
from tools.toolbox.param_values import write_params
from tools.toolbox.permissions import CauseKind, Permission, Verdict

POLL_S = 1.0
_ADDED_S = 0.1
"""The number of seconds between two checks for new calls of a remote agent while other calls
execute."""
MAX_INNER_CALLS = 100
"""The maximum number of inner calls that one call may make."""
_GATHERING_S = 0.02
"""The number of seconds to wait for further reports, which are then written in one transaction with
the first."""
_STARTED_COLUMNS = ("status", "exec_epoch", "attempts", "started_at", "deadline_at")


@dataclass(frozen=True)
class CallTerms:
    """The terms on which a call runs; the defaults are those of a read that the model requested.

    Attributes:
        depth: the number of calls above this one.
        key: the idempotency key for the tool; the call's own if empty. An inner call gets the same
            key when its caller runs again, so that a draft is created once.
        may_suspend: True if the call may wait for a person or a colleague.
        approved: the effect that was approved, for a write.
        may_begin: called right before the tool begins; returns False if it must not begin.
        on_late: called with the result of a call that ends after it was abandoned.
    """

    depth: int = 0
    key: str = ""
    may_suspend: bool = True
    approved: Preview | None = None
    may_begin: Callable[[], bool] | None = None
    on_late: Callable[[int, ToolResult], None] | None = None


_DEFAULT_TERMS = CallTerms()


def prepare_call(
    context: RunContext, call: ToolCall, terms: CallTerms = _DEFAULT_TERMS
) -> PreparedCall:
    """Prepare a call for the executor, with the tool in the version that was judged."""
    tool = context.find_tool(call)
    if tool is None:
        raise LookupError(
            f"the toolbox has no {call.tool}@{call.version}, with which the call was judged"
        )
    tool_context = context.build_tool_context(call)
    key = terms.key or tool_context.idempotency_key
    inner = _InnerCalls(context, call, terms.depth + 1, key)
    extra: dict[str, Any] = {"idempotency_key": key, "call_tool": inner.call_tool}
    if terms.approved is not None:
        extra["preview"] = terms.approved
    fence = None
    if terms.may_begin is not None:
        fence = Fence(terms.may_begin, is_read=not Level(call.level).has_side_effects)
    return PreparedCall(
        key=call.pk,
        tool=tool,
        params=call.params,
        context=replace(tool_context, **extra),
        timeout_s=context.toolbox.get_timeout(tool),
        guards=get_installed_toolbox().guards,
        may_suspend=terms.may_suspend,
        fence=fence,
        keep_files=partial(
            FILE_STORE.get().keep_result_files, context.run.organization_id, context.run.pk
        ),
    )


class RunningCalls:
    """A set of calls that run in parallel, each in its own thread.

    Attributes:
        calls: all started calls, by id.
        longest_timeout: the longest timeout of these calls, in seconds.
    """

    def __init__(self, on_late: Callable[[int, ToolResult], None] | None = None) -> None:
        self.calls: dict[int, ToolCall] = {}
        self.longest_timeout = 0.0
        self._batch = Batch(around=closing_connection, on_late=on_late)

    @property
    def count(self) -> int:
        """The number of calls that have not ended."""
        return self._batch.running

    def start(self, context: RunContext, call: ToolCall, terms: CallTerms = _DEFAULT_TERMS) -> None:
        """Start the call in its own thread."""
        prepared = prepare_call(context, call, terms)
        self._batch.start(prepared)
        self.calls[call.pk] = call
        self.longest_timeout = max(self.longest_timeout, prepared.timeout_s)

    def wait(self, seconds: float = POLL_S) -> list[FinishedCall | Progress]:
        """Wait for reports and return them; an empty list if none arrive within `seconds`."""
        release_connection()
        reports = self._batch.wait(time.monotonic() + seconds)
        while (
            reports and self.count and (more := self._batch.wait(time.monotonic() + _GATHERING_S))
        ):
            reports += more
        return reports


def run_call(context: RunContext, call: ToolCall, terms: CallTerms) -> FinishedCall:
    """Run one call until it ends or is given up, and publish its progress."""
    running = RunningCalls(terms.on_late)
    running.start(context, call, terms)
    while True:
        for report in running.wait():
            if isinstance(report, FinishedCall):
                return report
            with run_transaction(call.run_id) as tx:
                tx.publish(ToolProgress.of(call, report.fraction, report.text))


def run_ready(
    lease: Lease, context: RunContext | None = None, started: list[ToolCall] | None = None
) -> NextStep:
    """Run all calls that need no approval, as many at a time as there are slots; return the next
    step.

    Args:
        context, started: the context and the started calls of a pass that was just recorded.
    """
    if context is None or not started:
        with lease.transaction() as tx:
            context = load_context(lease.run_id)
            started = start_ready(tx, context)
        if not started:
            return tx.next_step
    running = RunningCalls()
    while True:
        for call in started:
            running.start(context, call)
        lease.expect_step(running.longest_timeout)
        reports = _wait_for_reports(lease, context, running)
        with lease.transaction() as tx:
            _record_reports(tx, context, running, reports)
            started = []
            # Ready calls are left only if every slot was taken, or if an MCP client has added some.
            if len(running.calls) >= context.calls_at_once or _takes_more(context):
                context = context.with_current_rules()
                started = start_ready(tx, context, running.count)
            tx.step_continues = bool(running.count or started)
        if not tx.step_continues:
            return tx.next_step


def _takes_more(context: RunContext) -> bool:
    """Return True if calls may be added to the run while other calls execute."""
    return context.run.origin == Origin.MCP


def _wait_for_reports(
    lease: Lease, context: RunContext, running: RunningCalls
) -> list[FinishedCall | Progress]:
    """Wait for the next reports or added calls; if the driver must stop, check that it still holds
    the lease."""
    takes_more = _takes_more(context)
    while running.count:
        if reports := running.wait(_ADDED_S if takes_more else POLL_S):
            return reports
        if (
            takes_more
            and ToolCall.objects.filter(run_id=lease.run_id, status=CallStatus.READY).exists()
        ):
            return []
        if lease.stopped.is_set():
            with lease.transaction() as tx:  # raises LeaseLost if another worker has taken the run
                tx.step_continues = True
                lease.stopped.clear()
    return []


def _record_reports(
    tx: Transaction,
    context: RunContext,
    running: RunningCalls,
    reports: list[FinishedCall | Progress],
) -> None:
    results = []
    for report in reports:
        call = running.calls[report.key]
        if isinstance(report, Progress):
            tx.publish(ToolProgress.of(call, report.fraction, report.text))
            continue
        context.save_session(tx.run, call)
        if report.suspend is not None:
            suspend(tx, call, report.suspend, report.duration_ms)
        else:
            results.append(
                (call, CallExecution(tx.run.lease_epoch, report.result, report.duration_ms))
            )
    record_results(tx, results)


def start_ready(tx: Transaction, context: RunContext, running: int = 0) -> list[ToolCall]:
    """Reject ready calls that are no longer permitted, start as many other calls as there are free
    slots, and return the started calls.

    No call starts if the run is cancelled, stopped or past its deadline, or if the worker is
    shutting down.

    Args:
        context: the context with the rules that were read under the run's lock.
    """
    ready = list(ToolCall.objects.filter(run_id=tx.run.pk, status=CallStatus.READY))
    lock_counted(tx, context, (call.tool for call in ready))
    # Judge the calls one by one: a rejected call leaves its place under a limit to the next call.
    for call in ready:
        objection = _ReadyCall(context, call).judge_again(tx, current=context)
        if objection is not None and objection.error is not None:
            reject(tx, call, objection.error)
    if not tx.run.may_start or tx.is_late or is_shutting_down():
        return []
    startable = ToolCall.objects.filter(run_id=tx.run.pk, status=CallStatus.READY).order_by(
        "pass_number", "index"
    )
    calls = list(startable[: max(context.calls_at_once - running, 0)])
    for call in calls:
        begin_execution(tx, call)
        changed = {name: getattr(call, name) for name in _STARTED_COLUMNS}
        if update_rows(ToolCall, changed, {"id": call.pk, "status": CallStatus.READY.value}):
            publish_call_start(tx, call)
    tx.step_continues = bool(calls)
    return calls


class _ReadyCall(Judgment):
    """The judgment of a stored call that was allowed to start without approval."""

    follows_rules_alone = False

    def __init__(self, context: RunContext, call: ToolCall) -> None:
        super().__init__(context)
        self._call = call
        self._verdict: Verdict | None = None

    @override
    def list_tools(self) -> list[str]:
        return [self._call.tool]

    @override
    def judge(self, now: datetime | None) -> None:
        _, self._verdict = self.context.judge_start(
            f"{self._call.tool}@{self._call.version}", self._call, now
        )

    @override
    def compare(self, tx: Transaction) -> Objection | None:
        assert self._verdict is not None
        if self._verdict.error is not None:
            return Objection(self._verdict.reason, self._verdict.error)
        # The params were written before any newer result, so they cannot contain text from it.
        causes = {cause.kind for cause in self._verdict.causes}
        if self._verdict.permission is Permission.AUTO or causes == {CauseKind.UNSEEN_TEXT}:
            return None
        # LIMIT_EXCEEDED lets the model request the same call again, which then gets a card.
        code = (
            ErrorCode.LIMIT_EXCEEDED
            if self._call.tool in self.counted
            else ErrorCode.OPERATION_NOT_ALLOWED
        )
        error = make_refusal(code, "This call now needs approval.")
        return Objection(error.message, error)


class _InnerCalls:
    """The inner calls of one executing call, which its tool makes with `context.call_tool` in its
    own thread.

    Each inner call is judged and recorded like any other call, as a child of the calling call.
    """

    def __init__(self, context: RunContext, parent: ToolCall, depth: int, key: str) -> None:
        self._context = context
        self._parent = parent
        self._depth = depth
        self._key = key
        self._numbers = count(1)

    @beside_event_loop
    def call_tool(self, name: str, params: dict[str, Any]) -> ToolResult:
        """Call the tool and return its result; a refusal is returned as a failed result."""
        terms = CallTerms(
            depth=self._depth, key=f"{self._key}-{next(self._numbers)}", may_suspend=False
        )
        try:
            return self._run(CallRequest(str(name), write_params(params)), terms)
        except ToolError as refusal:
            return ToolResult.failed(refusal)

    def _run(self, request: CallRequest, terms: CallTerms) -> ToolResult:
        if terms.depth > MAX_CALL_DEPTH:
            message = f"Tools call each other at most {MAX_CALL_DEPTH} levels deep."
            raise make_refusal(ErrorCode.LIMIT_EXCEEDED, message)
        context, call = self._start(request)
        done = run_call(context, call, terms)
        with run_transaction(call.run_id) as tx:
            record_result(
                tx, call, CallExecution(call.exec_epoch or 0, done.result, done.duration_ms)
            )
            context.save_session(tx.run, call)
        release_connection()
        return done.result

    def _start(self, request: CallRequest) -> tuple[RunContext, ToolCall]:
        """Record the call as started, and return it with the context that judged it."""
        parent = self._parent
        judgment = PlannedCalls(self._context, [request])
        for _ in judgment.rounds(has_cards=False):
            with run_transaction(parent.run_id) as tx:
                _refuse_abandoned(tx, parent)
                if judgment.judge_again(tx) is None:
                    _refuse_unpermitted(judgment.only, parent)
                    call = attach_to_parent(parent, judgment.only, judgment.context)
                    insert_calls(tx, judgment.planned, free_slots=1)
                    return judgment.context, call
        raise AssertionError("the last round records or refuses every call")


def _refuse_abandoned(tx: Transaction, parent: ToolCall) -> None:
    run = tx.run
    executing = ToolCall.objects.filter(
        pk=parent.pk, status=CallStatus.EXECUTING, exec_epoch=run.lease_epoch
    )
    if run.status != RunStatus.RUNNING or not executing.exists():
        raise make_refusal(
            ErrorCode.WORKER_LOST, "This call was given up: its result is no longer needed."
        )
    if not run.may_start:
        raise make_refusal(ErrorCode.OPERATION_NOT_ALLOWED, "The run was cancelled or stopped.")


def _refuse_unpermitted(planned: PlannedCall, parent: ToolCall) -> None:
    if planned.error is not None:
        raise planned.error
    if planned.permission is not Permission.AUTO:
        message = f"{planned.row.tool!r} needs a person's approval: call it directly."
        raise make_refusal(ErrorCode.OPERATION_NOT_ALLOWED, message)
    if ToolCall.objects.filter(parent_call=parent.pk).count() >= MAX_INNER_CALLS:
        raise make_refusal(
            ErrorCode.LIMIT_EXCEEDED, f"One call may make at most {MAX_INNER_CALLS} calls."
        )
