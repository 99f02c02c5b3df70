"""The job that drives a run: it catches every failure, and a worker full of hanging tools shuts
down."""

import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from agents.employees.models import Grant
from agents.runs.engine import lease
from agents.runs.engine.timing import MAX_CRASHES
from agents.runs.models import CallStatus, ExitReason, RunStatus
from agents.worker.jobs import MAX_ABANDONED, advance_run
from tests.workshop import (
    Workshop,
    again,
    asking,
    call,
    calls,
    error_code,
    eventually,
    make_due,
    statuses,
)
from tools.contract import Level, Tool, ToolContext, ToolResult
from tools.toolbox.threads import count_abandoned_threads
from tools.toolbox.toolbox import Toolbox

pytestmark = pytest.mark.django_db(transaction=True)


class Stubborn(Tool):
    """A read that ignores its timeout until it is released."""

    name = "probe.stubborn"
    description = "Does not listen."
    level = Level.READ
    timeout_s = 0.05
    volatile = True
    released = threading.Event()

    def execute(self, params: Any, context: ToolContext) -> ToolResult:
        self.released.wait(60)
        return ToolResult.ok()


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Record and ignore the signals that ask this process to shut down."""
    received: list[int] = []
    monkeypatch.setattr(lease, "_shutting_down", False)
    before = signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    yield received
    signal.signal(signal.SIGTERM, before)


def test_a_job_drives_its_run(workshop: Workshop) -> None:
    workshop.play(asking(call("probe.sleep", ms=0)))
    run = workshop.submit()
    advance_run(run.pk)
    assert again(run).status == RunStatus.SUCCEEDED


def test_a_job_for_a_missing_run_does_nothing(
    workshop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    run = workshop.submit()
    advance_run(run.pk + 1)
    assert (again(run).status, again(run).lease_epoch) == (RunStatus.QUEUED, 0)
    assert not caplog.records


def test_a_failure_of_the_engine_is_caught_and_ends_the_run_after_five_crashes(
    workshop: Workshop,
) -> None:
    """The engine fails because the stored conditions of the grants have an unknown form, so that no
    call can be judged."""
    run = workshop.submit()
    Grant.objects.update(conditions=[{"of": "another version"}])
    for crashes in range(1, MAX_CRASHES + 1):
        advance_run(run.pk)
        assert (again(run).status, again(run).crash_count) == (RunStatus.QUEUED, crashes)
        make_due(run)
    advance_run(run.pk)
    run = again(run)
    assert (run.status, run.exit_reason) == (RunStatus.FAILED, ExitReason.INTERNAL_ERROR)
    assert run.problem
    assert run.answer


def test_a_worker_with_eight_hanging_tools_shuts_down(
    workshop: Workshop, toolbox: Toolbox, signals: list[int]
) -> None:
    toolbox.register(Stubborn())
    workshop.employee.grants.create(tool=Stubborn.name)
    workshop.play(asking(*[call(Stubborn.name)] * MAX_ABANDONED))
    run = workshop.submit()
    try:
        advance_run(run.pk)
        assert {error_code(row) for row in calls(run)} == {"TIMEOUT"}
        assert statuses(run) == [CallStatus.FAILED] * MAX_ABANDONED
        eventually(lambda: signals == [signal.SIGTERM])
        assert lease.is_shutting_down()
    finally:
        Stubborn.released.set()
        eventually(lambda: count_abandoned_threads() == 0)
    assert again(run).status == RunStatus.SUCCEEDED, "it finishes its run before it shuts down"
