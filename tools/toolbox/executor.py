"""Execution of calls: one in the current thread, or the calls of a pass in parallel threads."""

import asyncio
import inspect
import math
import queue
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from tools.contract import (
    Delegation,
    ErrorCode,
    Fence,
    Question,
    Steps,
    Suspend,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    collect_secrets,
    fencing,
    make_storable,
)
from tools.contract.declarations import ValueRule
from tools.toolbox.isolation import UnexpectedFailure, run_isolated
from tools.toolbox.limits import UNGUARDED, Guards
from tools.toolbox.outcome import FileKeeper, build_unreadable_result, keep_files, normalize_result
from tools.toolbox.secrecy import HIDDEN, hide_secrets, hide_secrets_in_files
from tools.toolbox.threads import THREADS, mark_abandoned, mark_returned

_SUSPENDS = {cls: ValueRule(TypeAdapter(cls)) for cls in (Question, Delegation, Steps)}

CANCEL_GRACE_S = 0.5
"""The time in seconds that a timed-out async tool has to stop before its thread is abandoned."""

PROGRESS_INTERVAL_S = 0.2
"""Seconds between two progress reports of one call; in between, the latest report wins."""


LONGEST_PROGRESS = 1_000
"""The maximum number of characters in a progress report."""


@dataclass(frozen=True)
class PreparedCall:
    """A call that may run now: judged, with canonical params.

    Attributes:
        key: the caller's key for the call, unique in its batch.
        timeout_s: seconds from the start of the call.
        guards: the result cache and the rate limiter.
        may_suspend: True if the caller can wait for the result; otherwise a `Suspend` is a failure.
        fence: checked right before the tool runs, and again before its requests are sent.
        keep_files: keeps the files of the result; without it, they are only described.
    """

    key: int
    tool: Tool
    params: dict[str, Any]
    context: ToolContext
    timeout_s: float
    guards: Guards = UNGUARDED
    may_suspend: bool = False
    fence: Fence | None = None
    keep_files: FileKeeper | None = None


@dataclass(frozen=True)
class FinishedCall:
    """A finished call with its result.

    Attributes:
        abandoned: True if the call exceeded its timeout and its thread was abandoned.
        suspend: the question, delegation or steps that the call waits for; the result then only
            says that the call has not done anything yet.
    """

    key: int
    result: ToolResult
    duration_ms: int
    abandoned: bool = False
    suspend: Suspend | None = None


@dataclass(frozen=True)
class Progress:
    """The progress of a call, with a fraction from 0 to 1."""

    key: int
    fraction: float
    text: str


class _Suspension(Exception):
    """The tool returned a `Suspend`: nothing is cached, and the caller waits."""

    def __init__(self, suspend: Suspend) -> None:
        super().__init__(type(suspend).__name__)
        self.suspend = suspend


def run_call(call: PreparedCall, let_through: tuple[type[BaseException], ...] = ()) -> ToolResult:
    """Run the call in this thread and return its result, with `duration_ms` in the metadata.

    A failure of any kind becomes a failed result. An async tool is stopped at its timeout; a
    synchronous one is not.

    Raises:
        BaseException: only exceptions of the classes in `let_through`, e.g. a deadlock after which
            the caller retries.
    """
    try:
        return _run_guarded(call, call.context, let_through)
    except _Suspension:
        return ToolResult.failed(_build_run_only_error(call.tool))


def _run_guarded(
    call: PreparedCall, context: ToolContext, let_through: tuple[type[BaseException], ...] = ()
) -> ToolResult:
    started = time.perf_counter()

    def work() -> ToolResult:
        params = run_isolated(call.tool, "load_params", lambda: call.tool.load_params(call.params))
        if call.fence is not None:
            call.fence.check_execution()
        with fencing(call.fence):
            returned = run_isolated(
                call.tool, "execute", lambda: _execute(call, params, context), let_through
            )
        if isinstance(returned, Question | Delegation | Steps):
            raise _build_suspension(call, returned)
        ms = _measure_elapsed_ms(started)
        level = context.level or call.tool.level
        try:
            result = run_isolated(
                call.tool, "result", lambda: normalize_result(call.tool, returned, ms, level)
            )
        except UnexpectedFailure:
            if not level.has_side_effects:
                raise
            result = build_unreadable_result(call.tool, ms, level)
        secrets = collect_secrets(context.credentials)
        if result.files:
            result = replace(result, files=hide_secrets_in_files(result.files, secrets))
            result = run_isolated(
                call.tool, "files", lambda: keep_files(call.keep_files, call.tool, context, result)
            )
        return hide_secrets(result, secrets)

    try:
        return call.guards.get_or_run(call.tool, call.params, context, work)
    except ToolError as error:
        failed = ToolResult.failed(error, duration_ms=_measure_elapsed_ms(started))
        return hide_secrets(failed, collect_secrets(context.credentials))


def _build_suspension(call: PreparedCall, suspend: Suspend) -> _Suspension | ToolError:
    if not call.tool.suspends:
        message = f"{call.tool.title} returned a {type(suspend).__name__}, but its attribute `suspends` is False."
        return ToolError(ErrorCode.TOOL_EXECUTION_FAILED, message, attempted=False)
    try:
        wait = next(rule for cls, rule in _SUSPENDS.items() if isinstance(suspend, cls)).convert(
            suspend
        )
    except ValueError as error:
        message = f"{call.tool.title} returned an invalid {type(suspend).__name__}: {error}."
        return ToolError(ErrorCode.TOOL_EXECUTION_FAILED, message, attempted=False)
    return _Suspension(wait) if call.may_suspend else _build_run_only_error(call.tool)


def _build_run_only_error(tool: Tool) -> ToolError:
    return ToolError(
        ErrorCode.OPERATION_NOT_ALLOWED,
        f"{tool.title} has to wait for its result, which is only possible in a run.",
        attempted=False,
    )


def _execute(call: PreparedCall, params: Any, context: ToolContext) -> object:
    returned = call.tool.execute(params, context)
    if inspect.isawaitable(returned):
        return asyncio.run(_await_result(returned, call))
    return returned


async def _await_result(returned: Awaitable[object], call: PreparedCall) -> object:
    try:
        async with asyncio.timeout(call.timeout_s) as limit:
            return await returned
    except TimeoutError:
        if not limit.expired():
            raise
        raise _build_timeout_error(call) from None


def _build_timeout_error(call: PreparedCall) -> ToolError:
    return ToolError(
        ErrorCode.TIMEOUT,
        f"{call.tool.title} did not respond within {call.timeout_s:g} s.",
        recovery_hint="Request less at once, or try again later.",
    )


def _measure_elapsed_ms(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)


class _RunningCall:
    """A started call of a batch; the thread that removes it from the table decides its result."""

    __slots__ = ("abandoned_at", "call", "lock", "progress", "progress_at", "started")

    def __init__(self, call: PreparedCall) -> None:
        self.call = call
        self.started = time.perf_counter()
        grace = CANCEL_GRACE_S if call.tool.is_async else 0.0
        self.abandoned_at = time.monotonic() + call.timeout_s + grace
        self.lock = threading.Lock()
        self.progress: Progress | None = None
        self.progress_at = 0.0

    @property
    def next_due(self) -> float:
        """The monotonic time at which the batch has to check this call even without a report."""
        return min(self.abandoned_at, self.progress_at) if self.progress else self.abandoned_at

    def store_progress(self, progress: Progress) -> bool:
        """Store the latest report; return True if the batch has taken the previous one."""
        with self.lock:
            was_taken = self.progress is None
            self.progress = progress
        return was_taken

    def take_due_progress(self, now: float) -> Progress | None:
        """Take the report that is due now; one is due at most every PROGRESS_INTERVAL_S seconds."""
        if self.progress is None or now < self.progress_at:
            return None
        with self.lock:
            progress, self.progress = self.progress, None
        self.progress_at = now + PROGRESS_INTERVAL_S
        return progress


class Batch:
    """Calls of one pass that run in parallel; one thread starts and awaits them.

    Args:
        around: context entered in the tool's thread around each call, e.g. to close its database
            connection.
        on_late: receives the late result of an abandoned call, in the tool's thread and inside
            `around`.
    """

    def __init__(
        self,
        around: Callable[[], AbstractContextManager[None]] = nullcontext,
        on_late: Callable[[int, ToolResult], None] | None = None,
    ) -> None:
        self._around = around
        self._on_late = on_late
        self._keys: set[int] = set()
        self._table: dict[int, _RunningCall] = {}
        self._reports: queue.SimpleQueue[FinishedCall | None] = queue.SimpleQueue()
        self._open = 0

    @property
    def running(self) -> int:
        """The number of calls that `wait` has not yet returned as finished."""
        return self._open

    def start(self, call: PreparedCall) -> None:
        """Run the call in a daemon thread of its own.

        Raises:
            ValueError: this batch has already started a call with this key.
        """
        if call.key in self._keys:
            raise ValueError(f"the call {call.key!r} was already started")
        self._keys.add(call.key)
        running = self._table[call.key] = _RunningCall(call)
        self._open += 1
        THREADS.run(lambda: self._run(running))

    def wait(self, wake_at: float) -> list[FinishedCall | Progress]:
        """Wait for reports and return them; return an empty list at monotonic time `wake_at` or if
        no call is running.

        A call that exceeds its timeout is abandoned: its result is TIMEOUT, whatever it reports
        later.
        """
        received: list[FinishedCall | None] = []
        while True:
            now = time.monotonic()
            reports = self._collect(received, now)
            if reports or now >= wake_at or not self._open:
                return reports
            due = min([wake_at, *(running.next_due for running in self._table.copy().values())])
            try:
                received = [self._reports.get(timeout=max(0.0, due - now))]
            except queue.Empty:
                received = []

    def _collect(
        self, received: list[FinishedCall | None], now: float
    ) -> list[FinishedCall | Progress]:
        while not self._reports.empty():
            received.append(self._reports.get())
        finished = [report for report in received if report is not None]
        reports: list[FinishedCall | Progress] = []
        for running in self._table.copy().values():
            if now >= running.abandoned_at:
                finished += self._abandon(running)
            elif progress := running.take_due_progress(now):
                reports.append(progress)
        self._open -= len(finished)
        return reports + finished

    def _abandon(self, running: _RunningCall) -> list[FinishedCall]:
        mark_abandoned(running)
        if self._table.pop(running.call.key, None) is None:
            mark_returned(running)
            return []
        duration_ms = _measure_elapsed_ms(running.started)
        result = ToolResult.failed(_build_timeout_error(running.call), duration_ms=duration_ms)
        return [FinishedCall(running.call.key, result, duration_ms, abandoned=True)]

    def _run(self, running: _RunningCall) -> None:
        call = running.call
        ends = [_finish(call, ToolResult.failed(_build_not_started_error(call)))]
        context = call.context.with_progress(
            lambda *report: self._record_progress(running, *report)
        )
        self._run_inside_context(running, lambda: ends.append(_run_to_end(call, context)))
        self._report(running, ends[-1])

    def _report(self, running: _RunningCall, finished: FinishedCall) -> None:
        key, result = finished.key, finished.result
        if self._table.pop(key, None) is not None:
            self._reports.put(finished)
            return
        on_late = self._on_late
        if on_late is not None:
            self._run_inside_context(running, lambda: on_late(key, result))
        mark_returned(running)

    def _run_inside_context(self, running: _RunningCall, work: Callable[[], None]) -> None:
        """Do the work inside `around`; a failure of `around` itself is only logged."""

        def work_inside() -> None:
            with self._around():
                work()

        with suppress(ToolError):
            run_isolated(running.call.tool, "the context around a call", work_inside)

    def _record_progress(self, running: _RunningCall, fraction: float, text: str) -> None:
        try:
            number = float(fraction)
        except (
            TypeError,
            ValueError,
            OverflowError,
        ):
            # An invalid report must not make the call fail.
            number = 0.0
        finite = number if math.isfinite(number) else 0.0
        text = make_storable(str(text)[:LONGEST_PROGRESS])
        for secret in collect_secrets(running.call.context.credentials):
            text = text.replace(secret, HIDDEN)
        if running.store_progress(Progress(running.call.key, min(1.0, max(0.0, finite)), text)):
            self._reports.put(None)


def _run_to_end(call: PreparedCall, context: ToolContext) -> FinishedCall:
    """Run the call and return it as finished; a failure here may have happened after the effect."""
    started = time.perf_counter()
    try:
        return run_isolated(
            call.tool, "result", lambda: _finish(call, _run_guarded(call, context)), (_Suspension,)
        )
    except ToolError as error:
        return _finish(call, ToolResult.failed(error))
    except _Suspension as waits:
        result = ToolResult.failed(_build_run_only_error(call.tool))
        return FinishedCall(call.key, result, _measure_elapsed_ms(started), suspend=waits.suspend)


def _finish(call: PreparedCall, result: ToolResult) -> FinishedCall:
    return FinishedCall(call.key, result, result.metadata.get("duration_ms", 0))


def _build_not_started_error(call: PreparedCall) -> ToolError:
    return ToolError(
        ErrorCode.TOOL_EXECUTION_FAILED,
        f"{call.tool.title} could not be started; the reason was logged.",
        attempted=False,
    )
