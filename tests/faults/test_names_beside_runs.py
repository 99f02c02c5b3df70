"""Runs are named beside the runs: however many names are asked for and however slowly, runs go on."""

from __future__ import annotations

from agents.platform.notify import TITLE_JOB
from agents.runs.models import Run, RunStatus
from agents.worker.jobs import TITLES_AT_ONCE
from tests.faults.awaiting import await_that
from tests.faults.site import Site, fresh, leaving
from tests.model_server import Answer

VARIABLES = {"WORKER_THREADS": "1"}
TASK = "Look through all companies.\nQualify those with a score above 80."
NAME = "Qualify companies"


def _unnamed_runs(site: Site) -> list[Run]:
    """Runs that have ended, of which as many as can be at once are being named by a model that does not answer."""
    site.have_workers(1)
    site.model.title = Answer(text=NAME, hold="start")
    runs = [site.submit_to_model(TASK) for _ in range(TITLES_AT_ONCE + 2)]
    site.send(TITLE_JOB, *runs)
    site.model.wait_for_held(TITLES_AT_ONCE, timeout=30)
    for run in runs:
        assert site.await_status(run, RunStatus.SUCCEEDED).title != NAME
    return runs


def _have_the_model_answer(site: Site) -> None:
    site.model.title = Answer(text=NAME)
    site.model.release()


def _are_named(runs: list[Run]) -> bool:
    return {fresh(run).title for run in runs} == {NAME}


def test_a_worker_with_one_thread_drives_runs_while_it_waits_for_names(site: Site) -> None:
    runs = _unnamed_runs(site)
    _have_the_model_answer(site)
    await_that(lambda: _are_named(runs), "all are named", 20)
    assert len(site.workers()) == 1


def test_a_worker_that_leaves_leaves_its_names_to_the_next_one(site: Site) -> None:
    runs = _unnamed_runs(site)
    (worker,) = site.workers()
    with leaving(worker):
        await_that(lambda: not worker.is_alive, "the worker has left", 10)
    assert worker.exit_code == 0
    assert not any(fresh(run).title == NAME for run in runs)
    _have_the_model_answer(site)
    site.have_workers(1)
    await_that(lambda: _are_named(runs), "the next one has named all", 20)
