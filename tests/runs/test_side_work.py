"""Side work for a run, such as finding a title, does not need a lease, and is stopped when its run
no longer needs it."""

import pytest

from agents.runs import stops
from agents.runs.engine import lease
from agents.runs.models import Run
from tests.workshop import Workshop, build_workshop
from tools.contract import Level

pytestmark = pytest.mark.django_db(transaction=True)


def test_side_work_is_stopped_when_its_run_is_cancelled_in_a_process_without_drivers(
    workshop: Workshop,
) -> None:
    run = workshop.submit()
    with lease.watch_side_work(run.pk, "system.titleRun") as stopped:
        workshop.cancel(run)
        assert stopped.wait(10)


def test_stopping_a_tool_stops_only_side_work_of_that_tool_and_organization(
    workshop: Workshop,
) -> None:
    run, elsewhere = workshop.submit(), build_workshop("globex").submit()
    stops.stop_tool(workshop.operator, "probe.sleep")
    assert is_stopped(run, "probe.sleep")
    assert not is_stopped(run, "probe.gate")
    assert not is_stopped(elsewhere, "probe.sleep")


def test_side_work_continues_under_a_rule_that_does_not_stop_the_tool(workshop: Workshop) -> None:
    workshop.raise_for_all("probe.sleep", Level.WRITE)
    assert not is_stopped(workshop.submit(), "probe.sleep")


def is_stopped(run: Run, tool: str) -> bool:
    """Return True if the heartbeat stops this tool's side work for the run."""
    work = lease.SideWork(run.pk, tool)
    lease._stop_matching([work], lease._MUST_STOP | lease._match_useless_runs(tool))
    return work.stopped.is_set()
