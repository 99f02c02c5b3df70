"""Runs calls: one in this thread, or the calls of a pass side by side, each in a thread of its own."""

import asyncio
import contextvars
import inspect
import math
import queue
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from tools.contract import (
    Delegation,
    ErrorCode,
    LastLook,
    Question,
    Steps,
    Suspend,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    looking,
    secrets_of,
)

from .isolation import isolated
from .limits import UNGUARDED, Guards
from .outcome import checked_result
from .secrecy import HIDDEN, without_secrets
from .threads import THREADS, came_back, give_up

CANCEL_GRACE_S = 0.5
"""How long a timed-out async tool may take to honour its cancellation before its thread is given up."""

PROGRESS_INTERVAL_S = 0.2
"""At most one progress report per call in this time; the latest wins."""


@dataclass(frozen=True)
class PreparedCall:
    """A call that may run now: judged, with canonical params.

    Attributes:
        key: the caller's name for it, unique in its batch.
        timeout_s: seconds from its start.
        guards: keep and count its results.
        may_suspend: a caller can wait for the result; otherwise a `Suspend` is a failure.
        last_look: checked right before the tool runs, and again before its requests leave.
    """

    key: int
    tool: Tool
    params: dict[str, Any]
    context: ToolContext
    timeout_s: float
    guards: Guards = UNGUARDED
    may_suspend: bool = False
    last_look: LastLook | None = None


@dataclass(frozen=True)
class Finished:
    """A call ended; `abandoned` if it outlived its timeout and its thread was given up.

    Attributes:
        suspend: what the call waits for from now on; the result then only says that it did nothing yet.
    """

    key: int
    result: ToolResult
    duration_ms: int
    abandoned: bool = False
    suspend: Suspend | None = None


@dataclass(frozen=True)
class Progress:
    """How far a call has come: fraction from 0 to 1."""

    key: int
    fraction: float
    text: str


class _Suspended(Exception):
    """The tool returned a `Suspend`: nothing is kept, and whoever started the call waits."""

    def __init__(self, suspend: Suspend) -> None:
        super().__init__(type(suspend).__name__)
        self.suspend = suspend


def run_call(call: PreparedCall, let_through: tuple[type[BaseException], ...] = ()) -> ToolResult:
    """The call's result, made in this thread; `metadata["duration_ms"]` says how long it took.

    A failure of any kind becomes a failed result. A synchronous tool is not stopped at its timeout, an async one is.

    Raises:
        BaseException: only of the classes in `let_through`, e.g. a deadlock that the caller answers by trying again.
    """
    try:
        return _result_of(call, call.context, let_through)
    except _Suspended:
        return ToolResult.failed(_only_in_a_run(call.tool))


def _result_of(
    call: PreparedCall, context: ToolContext, let_through: tuple[type[BaseException], ...] = ()
) -> ToolResult:
    started = time.perf_counter()

    def work() -> ToolResult:
        params = isolated(call.tool, "load_params", lambda: call.tool.load_params(call.params))
        if call.last_look is not None:
            call.last_look.before_execution()
        with looking(call.last_look):
            returned = isolated(call.tool, "execute", lambda: _execute(call, params, context), let_through)
        if isinstance(returned, Question | Delegation | Steps):
            raise _suspended(call, returned)
        ms = _elapsed_ms(started)
        result = isolated(call.tool, "result", lambda: checked_result(call.tool, returned, ms, context.level))
        return without_secrets(result, secrets_of(context.credentials))

    try:
        return call.guards.result_of(call.tool, call.params, context, work)
    except ToolError as error:
        failed = ToolResult.failed(error, duration_ms=_elapsed_ms(started))
        return without_secrets(failed, secrets_of(context.credentials))


def _suspended(call: PreparedCall, suspend: Suspend) -> _Suspended | ToolError:
    if not call.tool.suspends:
        message = f"{call.tool.title} returned a {type(suspend).__name__}, but does not say that it suspends."
        return ToolError(ErrorCode.TOOL_EXECUTION_FAILED, message, attempted=False)
    return _Suspended(suspend) if call.may_suspend else _only_in_a_run(call.tool)


def _only_in_a_run(tool: Tool) -> ToolError:
    return ToolError(
        ErrorCode.OPERATION_NOT_ALLOWED,
        f"{tool.title} has to wait for its result, which only works in a run.",
        attempted=False,
    )


def _execute(call: PreparedCall, params: Any, context: ToolContext) -> object:
    returned = call.tool.execute(params, context)
    if inspect.isawaitable(returned):
        return asyncio.run(_awaited(returned, call))
    return returned


async def _awaited(returned: Awaitable[object], call: PreparedCall) -> object:
    try:
        async with asyncio.timeout(call.timeout_s) as limit:
            return await returned
    except TimeoutError:
        if not limit.expired():
            raise
        raise _timed_out(call) from None


def _timed_out(call: PreparedCall) -> ToolError:
    return ToolError(
        ErrorCode.TIMEOUT,
        f"{call.tool.title} did not answer within {call.timeout_s:g} s.",
        recovery_hint="Ask for less at once, or try again later.",
    )


def _elapsed_ms(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)


class _Running:
    """One started call of a batch. Whoever takes it out of the batch's table decides how it ended."""

    __slots__ = ("call", "gives_up_at", "lock", "progress", "progress_at", "started")

    def __init__(self, call: PreparedCall) -> None:
        self.call = call
        self.started = time.perf_counter()
        grace = CANCEL_GRACE_S if call.tool.is_async else 0.0
        self.gives_up_at = time.monotonic() + call.timeout_s + grace
        self.lock = threading.Lock()
        self.progress: Progress | None = None
        self.progress_at = 0.0

    @property
    def next_due(self) -> float:
        """The monotonic time at which the batch has to look at this call though it has not rung."""
        return min(self.gives_up_at, self.progress_at) if self.progress else self.gives_up_at

    def note(self, progress: Progress) -> bool:
        """Keep the latest report; True if the batch has seen the one before it."""
        with self.lock:
            first = self.progress is None
            self.progress = progress
        return first

    def due_progress(self, now: float) -> Progress | None:
        """The report that may be handed over now, at most one in PROGRESS_INTERVAL_S."""
        if self.progress is None or now < self.progress_at:
            return None
        with self.lock:
            progress, self.progress = self.progress, None
        self.progress_at = now + PROGRESS_INTERVAL_S
        return progress


class Batch:
    """The calls of one pass that run at the same time; started and awaited by one thread.

    Args:
        around: entered in the tool's thread around each call, e.g. to close its database connection.
        on_late: told, in the tool's thread and inside `around`, what an abandoned call reported after all.
    """

    def __init__(
        self,
        around: Callable[[], AbstractContextManager[None]] = nullcontext,
        on_late: Callable[[int, ToolResult], None] | None = None,
    ) -> None:
        self._around = around
        self._on_late = on_late
        self._keys: set[int] = set()
        self._table: dict[int, _Running] = {}
        self._reports: queue.SimpleQueue[Finished | None] = queue.SimpleQueue()
        self._open = 0

    @property
    def running(self) -> int:
        """Calls that `wait` has not handed over as finished yet."""
        return self._open

    def start(self, call: PreparedCall) -> None:
        """Run the call in a daemon thread of its own.

        Raises:
            ValueError: this batch has started a call with this key before.
        """
        if call.key in self._keys:
            raise ValueError(f"the call {call.key!r} was started before")
        self._keys.add(call.key)
        running = self._table[call.key] = _Running(call)
        self._open += 1
        context = contextvars.copy_context()
        THREADS.run(lambda: context.run(self._run, running))

    def wait(self, wake_at: float) -> list[Finished | Progress]:
        """All that happened, as soon as there is something; empty at the monotonic time `wake_at` or if nothing runs.

        A call past its timeout is given up: its result is TIMEOUT, whatever it reports later.
        """
        rung: list[Finished | None] = []
        while True:
            now = time.monotonic()
            happened = self._collect(rung, now)
            if happened or now >= wake_at or not self._open:
                return happened
            due = min([wake_at, *(running.next_due for running in self._table.copy().values())])
            try:
                rung = [self._reports.get(timeout=max(0.0, due - now))]
            except queue.Empty:
                rung = []

    def _collect(self, rung: list[Finished | None], now: float) -> list[Finished | Progress]:
        while not self._reports.empty():
            rung.append(self._reports.get())
        finished = [report for report in rung if report is not None]
        reports: list[Finished | Progress] = []
        for running in self._table.copy().values():
            if now >= running.gives_up_at:
                finished += self._give_up(running)
            elif progress := running.due_progress(now):
                reports.append(progress)
        self._open -= len(finished)
        return reports + finished

    def _give_up(self, running: _Running) -> list[Finished]:
        give_up(running)
        if self._table.pop(running.call.key, None) is None:
            came_back(running)
            return []
        duration_ms = _elapsed_ms(running.started)
        result = ToolResult.failed(_timed_out(running.call), duration_ms=duration_ms)
        return [Finished(running.call.key, result, duration_ms, abandoned=True)]

    def _run(self, running: _Running) -> None:
        call = running.call
        ends = [_finished(call, ToolResult.failed(_never_begun(call)))]
        context = call.context.with_progress(lambda *report: self._note(running, *report))
        self._surrounded(running, lambda: ends.append(_end_of(call, context)))
        self._report(running, ends[-1])

    def _report(self, running: _Running, finished: Finished) -> None:
        key, result = finished.key, finished.result
        if self._table.pop(key, None) is not None:
            self._reports.put(finished)
            return
        on_late = self._on_late
        if on_late is not None:
            self._surrounded(running, lambda: on_late(key, result))
        came_back(running)

    def _surrounded(self, running: _Running, work: Callable[[], None]) -> None:
        """Do the work inside `around`; a failure of the surroundings is logged, and the thread lives on."""

        def whole() -> None:
            with self._around():
                work()

        with suppress(ToolError):
            isolated(running.call.tool, "the surroundings of a call", whole)

    def _note(self, running: _Running, fraction: float, text: str) -> None:
        known = fraction if math.isfinite(fraction) else 0.0
        for secret in secrets_of(running.call.context.credentials):
            text = text.replace(secret, HIDDEN)
        if running.note(Progress(running.call.key, min(1.0, max(0.0, known)), text)):
            self._reports.put(None)


def _end_of(call: PreparedCall, context: ToolContext) -> Finished:
    started = time.perf_counter()
    try:
        return _finished(call, _result_of(call, context))
    except _Suspended as waits:
        result = ToolResult.failed(_only_in_a_run(call.tool))
        return Finished(call.key, result, _elapsed_ms(started), suspend=waits.suspend)


def _finished(call: PreparedCall, result: ToolResult) -> Finished:
    return Finished(call.key, result, result.metadata.get("duration_ms", 0))


def _never_begun(call: PreparedCall) -> ToolError:
    return ToolError(
        ErrorCode.TOOL_EXECUTION_FAILED,
        f"{call.tool.title} could not be started; the reason was logged.",
        attempted=False,
    )
