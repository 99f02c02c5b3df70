"""Parallel calls together take as long as the slowest call, and are isolated from each other."""

import contextvars
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from tests.features import feature
from tests.tools.toolbox.sample_tools import Does, Echo, Holding
from tools.contract import ErrorCode, Tool, ToolContext, ToolResult
from tools.toolbox import Batch, FinishedCall, PreparedCall, Progress, count_abandoned_threads
from tools.toolbox.executor import PROGRESS_INTERVAL_S

CONTEXT = ToolContext(organization_id=1)


def prepared(
    work: Callable[[ToolContext], Any] | Tool, key: int = 0, timeout_s: float = 10.0
) -> PreparedCall:
    tool = work if isinstance(work, Tool) else Does(work)
    return PreparedCall(key, tool, {}, CONTEXT, timeout_s)


def finished(batch: Batch, within_s: float = 10.0) -> dict[int, FinishedCall]:
    """Wait until all calls of the batch have ended, and return them."""
    found: dict[int, FinishedCall] = {}
    until = time.monotonic() + within_s
    while batch.running and time.monotonic() < until:
        found |= {
            report.key: report for report in batch.wait(until) if isinstance(report, FinishedCall)
        }
    assert batch.running == 0
    return found


def until_true(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < give_up_at
        threading.Event().wait(0.002)


@pytest.fixture(autouse=True)
def _nobody_hangs() -> None:
    """Wait until the threads that an earlier test abandoned have ended."""
    until_true(lambda: count_abandoned_threads() == 0)


def test_calls_run_at_the_same_time() -> None:
    together = threading.Barrier(5)

    def meet(context: ToolContext) -> ToolResult:
        return ToolResult.ok(together.wait(10))

    batch = Batch()
    for key in range(5):
        batch.start(prepared(meet, key))
    assert sorted(report.result.data for report in finished(batch).values()) == [0, 1, 2, 3, 4]


@feature(
    "Execution",
    "A call that fails or hangs does not affect the others",
    "tools/toolbox/executor.py",
)
def test_a_failing_and_a_hanging_call_do_not_affect_other_calls() -> None:
    def fails(context: ToolContext) -> ToolResult:
        raise SystemExit("no")

    hangs = Holding()
    batch = Batch()
    batch.start(prepared(fails, 1))
    batch.start(prepared(hangs, 2, timeout_s=0.05))
    batch.start(prepared(lambda _: ToolResult.ok("whole"), 3))
    reports = finished(batch)
    hangs.released.set()
    assert reports[1].result.error is not None
    assert reports[1].result.error.code is ErrorCode.TOOL_EXECUTION_FAILED
    assert reports[2].abandoned
    assert reports[2].result.error is not None
    assert reports[2].result.error.code is ErrorCode.TIMEOUT
    assert reports[3].result.data == "whole"
    until_true(lambda: count_abandoned_threads() == 0)


def test_wait_returns_at_the_given_time_with_the_results_so_far() -> None:
    holds = Holding()
    batch = Batch()
    assert batch.wait(time.monotonic() + 10) == []
    batch.start(prepared(holds, 1))
    began = time.monotonic()
    assert batch.wait(began + 0.02) == []
    assert time.monotonic() - began >= 0.02
    assert batch.running == 1
    holds.released.set()
    assert [report.key for report in batch.wait(time.monotonic() + 10)] == [1]
    assert batch.running == 0


def test_a_late_report_is_passed_on_and_does_not_change_the_result() -> None:
    late: list[tuple[int, ToolResult]] = []
    holds = Holding()
    batch = Batch(on_late=lambda key, result: late.append((key, result)))
    batch.start(prepared(holds, 7, timeout_s=0.02))
    report = finished(batch)[7]
    assert report.abandoned
    assert count_abandoned_threads() == 1
    holds.released.set()
    until_true(lambda: count_abandoned_threads() == 0)
    assert batch.wait(time.monotonic()) == []
    assert [(key, result.data) for key, result in late] == [(7, "released")]


def test_the_context_manager_around_a_call_runs_in_its_thread_and_exits_before_the_report() -> None:
    seen: list[tuple[str, str]] = []

    @contextmanager
    def around() -> Iterator[None]:
        seen.append(("enter", threading.current_thread().name))
        yield
        seen.append(("leave", threading.current_thread().name))

    def work(context: ToolContext) -> ToolResult:
        seen.append(("work", threading.current_thread().name))
        raise ValueError

    batch = Batch(around)
    batch.start(prepared(work))
    finished(batch)
    assert seen == [("enter", "tool"), ("work", "tool"), ("leave", "tool")]


def test_a_call_that_could_not_start_is_reported_as_not_attempted() -> None:
    def around() -> AbstractContextManager[None]:
        raise OSError("no connection")

    batch = Batch(around)
    batch.start(prepared(Echo()))
    error = finished(batch)[0].result.error
    assert error is not None
    assert error.code is ErrorCode.TOOL_EXECUTION_FAILED
    assert error.is_definite


def test_an_error_on_exit_of_the_context_manager_does_not_lose_the_result() -> None:
    @contextmanager
    def around() -> Iterator[None]:
        yield
        raise OSError("already gone")

    batch = Batch(around)
    batch.start(prepared(lambda _: ToolResult.ok("done")))
    assert finished(batch)[0].result.data == "done"


def test_progress_is_clamped_and_only_the_latest_of_a_burst_is_kept() -> None:
    holds = Holding()

    def work(context: ToolContext) -> ToolResult:
        for step in range(1000):
            context.progress(step, f"step {step}")
        context.progress(float("nan"), "who knows")
        return holds(context)

    batch = Batch()
    batch.start(prepared(work, 4))
    assert holds.started.wait(10)
    assert batch.wait(time.monotonic() + 10) == [Progress(4, 0.0, "who knows")]
    holds.released.set()
    assert [report.key for report in batch.wait(time.monotonic() + 10)] == [4]


def test_a_delayed_progress_report_is_sent_when_it_is_due() -> None:
    holds, first_seen = Holding(), threading.Event()

    def work(context: ToolContext) -> ToolResult:
        context.progress(0.1, "first")
        assert first_seen.wait(10)
        context.progress(0.5, "second")
        return holds(context)

    batch = Batch()
    batch.start(prepared(work))
    assert batch.wait(time.monotonic() + 10) == [Progress(0, 0.1, "first")]
    first_seen_at = time.monotonic()
    first_seen.set()
    assert batch.wait(time.monotonic() + 10) == [Progress(0, 0.5, "second")]
    assert time.monotonic() - first_seen_at > 0.9 * PROGRESS_INTERVAL_S
    holds.released.set()
    assert len(finished(batch)) == 1


def test_two_calls_with_the_same_key_cannot_be_started() -> None:
    batch = Batch()
    batch.start(prepared(Echo(), 1))
    with pytest.raises(ValueError, match="1 was already started"):
        batch.start(prepared(Echo(), 1))
    finished(batch)


def test_the_tool_sees_the_context_variables_of_the_starting_thread() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("run 7")
    batch = Batch()
    batch.start(prepared(lambda _: ToolResult.ok(variable.get())))
    assert finished(batch)[0].result.data == "run 7"


def test_idle_threads_are_reused() -> None:
    names: set[int] = set()

    def note(context: ToolContext) -> ToolResult:
        names.add(threading.get_ident())
        return ToolResult.ok()

    for _ in range(20):
        batch = Batch()
        batch.start(prepared(note))
        finished(batch)
    assert len(names) < 20


def test_no_report_is_lost_when_calls_end_at_their_timeout() -> None:
    for _ in range(30):
        batch = Batch()
        for key in range(8):
            batch.start(
                prepared(
                    lambda _: ToolResult.ok(threading.Event().wait(0.002)), key, timeout_s=0.002
                )
            )
        assert len(finished(batch)) == 8
    until_true(lambda: count_abandoned_threads() == 0)
