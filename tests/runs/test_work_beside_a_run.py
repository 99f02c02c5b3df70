"""Work beside a run, which holds no lease, is told when nobody wants it any more."""

import pytest

from agents.runs import stops
from agents.runs.engine import lease
from agents.runs.models import Run
from tests.workshop import Workshop, build_workshop
from tools.contract import Level

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_is_told_of_a_cancelled_run_by_a_process_that_drives_nothing(workshop: Workshop) -> None:
    run = workshop.submit()
    with lease.watch_side_work(run.pk, "system.titleRun") as stopped:
        workshop.cancel(run)
        assert stopped.wait(10)


def test_it_ends_with_the_stop_of_its_own_tool(workshop: Workshop) -> None:
    run, elsewhere = workshop.submit(), build_workshop("globex").submit()
    stops.stop_tool(workshop.operator, "probe.sleep")
    assert is_told(run, "probe.sleep")
    assert not is_told(run, "probe.gate")
    assert not is_told(elsewhere, "probe.sleep")


def test_it_goes_on_under_a_rule_that_stops_nothing(workshop: Workshop) -> None:
    workshop.raise_for_all("probe.sleep", Level.WRITE)
    assert not is_told(workshop.submit(), "probe.sleep")


def is_told(run: Run, tool: str) -> bool:
    """Whether the heartbeat tells this tool, at work beside the run, to stop."""
    watch = lease.SideWork(run.pk, tool)
    lease._stop_matching([watch], lease._MUST_STOP | lease._match_useless_runs(tool))
    return watch.stopped.is_set()
