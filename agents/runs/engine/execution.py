"""Step 7 of a run: run calls. Every call runs through `RunningCalls`: a pass's reads, approved writes and inner calls.

They differ in their `Terms` alone. Each call runs in a thread of its own, at most its timeout.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from agents.employees.toolboxes import installed_toolbox
from agents.platform.database_condition import closing_connection, release_connection
from agents.platform.statements import update
from agents.runs.engine.context import RunContext, load_context
from agents.runs.engine.lease import Lease, is_going_down
from agents.runs.engine.next_step import is_late
from agents.runs.engine.requested_calls import (
    MOST_CALL_DEPTH,
    ROUNDS,
    CallRequest,
    PlannedCall,
    begin_execution,
    insert_calls,
    make_child,
    plan_call,
    publish_start,
    timeout_of,
)
from agents.runs.engine.results import Execution, record_result, record_results, reject
from agents.runs.engine.suspension import suspend
from agents.runs.engine.transaction import NextStep, Transaction, run_transaction
from agents.runs.events import ToolProgress
from agents.runs.models import CallStatus, RunStatus, ToolCall
from tools.contract import ErrorCode, LastLook, Level, Preview, ToolError, ToolResult
from tools.toolbox.executor import Batch, Finished, PreparedCall, Progress
from tools.toolbox.permissions import Permission

LOOK_AGAIN_S = 1.0
MOST_INNER_CALLS = 100
"""Of one call."""
_TOGETHER_S = 0.02
_STARTED_COLUMNS = ("status", "exec_epoch", "attempts", "started_at", "deadline_at")


@dataclass(frozen=True)
class Terms:
    """The conditions under which a call runs; the defaults are those of a read that a model asked for.

    Attributes:
        depth: how many calls stand above it.
        key: the idempotency key for the tool; the call's own if empty. An inner call gets the same when its caller
            runs again, so that a draft is made once.
        may_suspend: somebody can wait for its result.
        approved: the effect that a person approved.
        may_begin: checked right before the effect.
        on_late: receives the report of a call that was given up.
    """

    depth: int = 0
    key: str = ""
    may_suspend: bool = True
    approved: Preview | None = None
    may_begin: Callable[[], bool] | None = None
    on_late: Callable[[int, ToolResult], None] | None = None


READ = Terms()


def prepare_call(context: RunContext, call: ToolCall, terms: Terms = READ) -> PreparedCall:
    """Prepare a call for the executor, with the tool that was judged: later changes do not matter."""
    tool = context.find_tool(call)
    if tool is None:
        raise LookupError(f"{call.tool}@{call.version} was not judged here")
    tool_context = context.tool_context(call)
    key = terms.key or tool_context.idempotency_key
    inner = _InnerCalls(context, call, terms.depth + 1, key)
    told: dict[str, Any] = {"idempotency_key": key, "call_tool": inner.call_tool}
    if terms.approved is not None:
        told["preview"] = terms.approved
    look = None
    if terms.may_begin is not None:
        look = LastLook(terms.may_begin, is_read=not Level(call.level).has_side_effects)
    return PreparedCall(
        key=call.pk,
        tool=tool,
        params=call.params,
        context=replace(tool_context, **told),
        timeout_s=context.toolbox.timeout_of(tool),
        guards=installed_toolbox().guards,
        may_suspend=terms.may_suspend,
        last_look=look,
    )


class RunningCalls:
    """Calls that run side by side.

    Attributes:
        calls: all that were started, by id.
    """

    def __init__(self, on_late: Callable[[int, ToolResult], None] | None = None) -> None:
        self.calls: dict[int, ToolCall] = {}
        self._batch = Batch(around=closing_connection, on_late=on_late)

    @property
    def count(self) -> int:
        """The calls that have not ended yet."""
        return self._batch.running

    @property
    def longest_timeout(self) -> float:
        """The longest time that one of the calls may take, in seconds."""
        return max((timeout_of(call) for call in self.calls.values()), default=0)

    def start(self, context: RunContext, call: ToolCall, terms: Terms = READ) -> None:
        """Run the call in a thread of its own."""
        self._batch.start(prepare_call(context, call, terms))
        self.calls[call.pk] = call

    def wait(self) -> list[Finished | Progress]:
        """Return what happened, as soon as there is something; nothing after a second without news."""
        release_connection()
        reports = self._batch.wait(time.monotonic() + LOOK_AGAIN_S)
        while reports and self.count and (more := self._batch.wait(time.monotonic() + _TOGETHER_S)):
            reports += more
        return reports


def run_call(context: RunContext, call: ToolCall, terms: Terms) -> Finished:
    """Run one call until it ends or is given up; publish its progress meanwhile."""
    running = RunningCalls(terms.on_late)
    running.start(context, call, terms)
    while True:
        for report in running.wait():
            if isinstance(report, Finished):
                return report
            with run_transaction(call.run_id) as tx:
                tx.publish(ToolProgress.of(call, report.fraction, report.text))


def run_ready(lease: Lease, context: RunContext | None = None, started: list[ToolCall] | None = None) -> NextStep:
    """Run every call that needs nobody's approval, as many at a time as there are slots.

    Args:
        context, started: of the pass that was just recorded: its calls were judged and started already.
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
        reports = _wait_for_reports(lease, running)
        with lease.transaction() as tx:
            _record_reports(tx, context, running, reports)
            started = []
            if len(running.calls) >= count_slots():
                context = context.with_current_rules()
                started = start_ready(tx, context, running.count)
            tx.is_midway = bool(running.count or started)
        if not tx.is_midway:
            return tx.next_step


def count_slots() -> int:
    """Return how many calls of one pass may execute at the same time."""
    return installed_toolbox().limits.calls_at_once


def _wait_for_reports(lease: Lease, running: RunningCalls) -> list[Finished | Progress]:
    """Wait for the next reports; a driver that is told to stop meanwhile first sees if the run is still its own."""
    while running.count:
        if reports := running.wait():
            return reports
        if lease.stopped.is_set():
            with lease.transaction() as tx:
                tx.is_midway = True
                lease.stopped.clear()
    return []


def _record_reports(
    tx: Transaction, context: RunContext, running: RunningCalls, reports: list[Finished | Progress]
) -> None:
    results = []
    for report in reports:
        call = running.calls[report.key]
        if isinstance(report, Progress):
            tx.publish(ToolProgress.of(call, report.fraction, report.text))
        elif report.suspend is not None:
            suspend(tx, call, report.suspend, report.duration_ms)
        else:
            results.append((call, Execution(tx.run.lease_epoch, report.result, report.duration_ms)))
    record_results(tx, results)
    for report in reports:
        if isinstance(report, Finished):
            context.keep_session(tx.run, running.calls[report.key])


def start_ready(tx: Transaction, context: RunContext, running: int = 0) -> list[ToolCall]:
    """Reject the ready calls that are no longer permitted, and start as many others as find a slot.

    Starts none if the run may start nothing or the worker is leaving.
    """
    for call in ToolCall.objects.filter(run_id=tx.run.pk, status=CallStatus.READY):
        _, verdict = context.judge(f"{call.tool}@{call.version}", call.params)
        if verdict.permission == Permission.FORBIDDEN and verdict.error is not None:
            reject(tx, call, verdict.error)
        elif verdict.permission == Permission.ASK:
            reject(tx, call, _refusal(ErrorCode.OPERATION_NOT_ALLOWED, "This needs approval by now."))
    if not tx.run.may_start or is_late(tx) or is_going_down():
        return []
    ready = ToolCall.objects.filter(run_id=tx.run.pk, status=CallStatus.READY).order_by("pass_number", "index")
    calls = list(ready[: max(count_slots() - running, 0)])
    for call in calls:
        begin_execution(tx, call)
        changed = {name: getattr(call, name) for name in _STARTED_COLUMNS}
        if update(ToolCall, changed, {"id": call.pk, "status": CallStatus.READY.value}):
            publish_start(tx, call)
    tx.is_midway = bool(calls)
    return calls


class _InnerCalls:
    """The calls that one executing call makes: `context.call_tool` of its tool, in the tool's own thread.

    Each is judged and recorded like any call, as a child of the call that makes it.
    """

    def __init__(self, context: RunContext, parent: ToolCall, depth: int, key: str) -> None:
        self._context = context
        self._parent = parent
        self._depth = depth
        self._key = key
        self._numbers = count(1)

    def call_tool(self, name: str, params: dict[str, Any]) -> ToolResult:
        """Run the tool and return its result; a refusal is a failed result."""
        terms = Terms(depth=self._depth, key=f"{self._key}-{next(self._numbers)}", may_suspend=False)
        try:
            return self._run(CallRequest(name, params), terms)
        except ToolError as refusal:
            return ToolResult.failed(refusal)

    def _run(self, request: CallRequest, terms: Terms) -> ToolResult:
        if terms.depth > MOST_CALL_DEPTH:
            raise _refusal(ErrorCode.LIMIT_EXCEEDED, f"Tools call each other at most {MOST_CALL_DEPTH} levels deep.")
        context, call = self._start(request)
        done = run_call(context, call, terms)
        with run_transaction(call.run_id) as tx:
            record_result(tx, call, Execution(call.exec_epoch or 0, done.result, done.duration_ms))
            context.keep_session(tx.run, call)
        release_connection()
        return done.result

    def _start(self, request: CallRequest) -> tuple[RunContext, ToolCall]:
        """Record the call and start it, judged by the rules of that moment; return also the context that judged it.

        If the rules have changed since it was planned, it is planned anew, outside the transaction.
        """
        context, parent = self._context, self._parent
        for _ in range(ROUNDS):
            planned = plan_call(context, 0, request)
            with run_transaction(parent.run_id) as tx:
                _refuse_unawaited(tx, parent)
                current = context.with_current_rules()
                if current.has_same_rules(context):
                    _refuse_unpermitted(planned, parent)
                    call = make_child(parent, planned)
                    insert_calls(tx, [planned], slots=1)
                    return current, call
            context = current
        message = "What is permitted kept changing while this call was prepared."
        raise _refusal(ErrorCode.OPERATION_NOT_ALLOWED, message)


def _refuse_unawaited(tx: Transaction, parent: ToolCall) -> None:
    run = tx.run
    still = ToolCall.objects.filter(pk=parent.pk, status=CallStatus.EXECUTING, exec_epoch=run.lease_epoch)
    if run.status != RunStatus.RUNNING or not still.exists():
        raise _refusal(ErrorCode.WORKER_LOST, "This call was given up: nobody waits for its result any more.")
    if not run.may_start:
        raise _refusal(ErrorCode.OPERATION_NOT_ALLOWED, "The run was cancelled or stopped.")


def _refuse_unpermitted(planned: PlannedCall, parent: ToolCall) -> None:
    if planned.error is not None:
        raise planned.error
    if planned.permission is not Permission.AUTO:
        message = f"{planned.row.tool!r} needs a person's approval: ask for it directly."
        raise _refusal(ErrorCode.OPERATION_NOT_ALLOWED, message)
    if ToolCall.objects.filter(parent_call=parent.pk).count() >= MOST_INNER_CALLS:
        raise _refusal(ErrorCode.LIMIT_EXCEEDED, f"One call may make at most {MOST_INNER_CALLS} calls.")


def _refusal(code: ErrorCode, message: str) -> ToolError:
    return ToolError(code, message, attempted=False)
