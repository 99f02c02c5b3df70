"""Titles are requested in parallel with runs: many slow requests do not delay any run."""

from __future__ import annotations

from agents.platform.notify import TITLE_JOB
from agents.runs.models import Run, RunStatus
from agents.worker.jobs import TITLES_AT_ONCE
from tests.awaiting import await_that
from tests.faults.site import Site, reload, stopping
from tests.features import feature
from tests.model_server import Response

VARIABLES = {"WORKER_THREADS": "1"}
TASK = "Look through all companies.\nQualify those with a score above 80."
TITLE = "Qualify companies"


def _create_untitled_runs(site: Site) -> list[Run]:
    """Create ended runs, whose titles are requested from a model that does not respond."""
    site.have_workers(1)
    site.model.title = Response(text=TITLE, hold="start")
    runs = [site.submit_to_model(TASK) for _ in range(TITLES_AT_ONCE + 2)]
    site.send(TITLE_JOB, *runs)
    site.model.wait_for_held(TITLES_AT_ONCE, timeout=30)
    for run in runs:
        assert site.await_status(run, RunStatus.SUCCEEDED).title != TITLE
    return runs


def _let_the_model_answer(site: Site) -> None:
    site.model.title = Response(text=TITLE)
    site.model.release()


def _are_titled(runs: list[Run]) -> bool:
    return {reload(run).title for run in runs} == {TITLE}


@feature(
    "Built-in tools",
    "Runs continue while many names are requested slowly",
    "agents/worker/jobs.py",
    whole_file=True,
)
def test_a_worker_with_one_thread_drives_runs_while_titles_are_requested(site: Site) -> None:
    runs = _create_untitled_runs(site)
    _let_the_model_answer(site)
    await_that(lambda: _are_titled(runs), "all runs have titles", 20)
    assert len(site.workers()) == 1


@feature(
    "Built-in tools",
    "A worker that exits hands its pending names to the next one",
    "agents/worker/jobs.py",
)
def test_a_worker_that_shuts_down_leaves_its_titles_to_the_next_worker(site: Site) -> None:
    runs = _create_untitled_runs(site)
    (worker,) = site.workers()
    with stopping(worker):
        await_that(lambda: not worker.is_alive, "the worker has ended", 10)
    assert worker.exit_code == 0
    assert not any(reload(run).title == TITLE for run in runs)
    _let_the_model_answer(site)
    site.have_workers(1)
    await_that(lambda: _are_titled(runs), "the next worker has titled all runs", 20)
