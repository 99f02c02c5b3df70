"""The cost of a pass of five calls: in a real worker while a browser watches, and in this
process."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import mean, median

from agents.runs.engine.loop import advance
from agents.runs.models import Pass, Run
from tests.bench.browser import browsing
from tests.bench.by_hand import by_hand
from tests.bench.figures import Figure, figure, rounds
from tests.bench.site import Worksite, passes_of_calls, seconds_of, succeeded, worksite
from tests.bench.statements import Statement, listened, split_passes, usual_pass
from tests.processes import Installation

PASSES = 20
CALLS = 5
PATIENCE_S = 8.0
AIM_TIMES = 4.0
WATCHED = f"pass of {CALLS} calls: worker, browser watching"
BY_HAND = f"pass of {CALLS} calls: a loop by hand"


@dataclass(frozen=True)
class Anatomy:
    """A usual pass in this process: its statements and times.

    Attributes:
        statements: the statements sent to the database, in order; each duration is a median.
        model_ms: the time until the model's response arrived: the mean of each run, and the median
            of these means.
        wall_ms: the median time of a pass while statements are recorded.
    """

    statements: list[Statement]
    model_ms: float
    wall_ms: float


def in_worker(installation: Installation, repeats: int) -> list[Figure]:
    """Measure 20 passes of 5 calls, from the lease to the end, while a browser receives every
    event."""
    with (
        worksite(passes_of_calls(PASSES, CALLS)) as site,
        browsing(installation.url, site.token) as browser,
    ):
        seconds = []
        for number in rounds(repeats, PATIENCE_S):
            watched = browser.watch(browser.start_run(site.employee.pk))
            watched.first("run_finished")
            run = succeeded(watched.run_id)
            watched.assert_whole(run.next_event_seq)
            if number:
                seconds.append(seconds_of(run))
    return [
        figure(WATCHED, "ms", [1000 * each / PASSES for each in seconds]),
        figure(
            f"pass of {CALLS} calls: each call",
            "ms",
            [1000 * each / PASSES / CALLS for each in seconds],
        ),
    ]


def compared_with_by_hand(figures: list[Figure]) -> list[Figure]:
    """Return the ratio of a watched pass's time to that of the hand-written loop; return an empty
    list unless both were measured."""
    medians = {each.name: each.median for each in figures}
    if WATCHED not in medians or BY_HAND not in medians:
        return []
    return [
        figure(
            "pass of 5 calls: ratio to a loop by hand",
            "×",  # noqa: RUF001
            [medians[WATCHED] / medians[BY_HAND]],
            AIM_TIMES,
        )
    ]


def in_process(repeats: int) -> tuple[list[Figure], Anatomy]:
    """Measure the same run in this process, where its processor time and its statements can be
    counted."""
    with worksite(passes_of_calls(PASSES, CALLS)) as site:
        compared = by_hand(site, PASSES, CALLS, repeats, PATIENCE_S)
        driven = [_drive(site) for _ in rounds(repeats, PATIENCE_S)][1:]
        heard = [_listen(site) for _ in rounds(repeats, PATIENCE_S)][1:]
    usual = [usual_pass(split_passes(statements)) for _, statements, _ in heard]
    anatomy = Anatomy(
        usual[0],
        median(_model_ms(run) for run, _, _ in heard),
        median(1000 * seconds / PASSES for _, _, seconds in heard),
    )
    queries = [sum(one.is_query for one in each) for each in usual]
    transactions = [sum(one.shape == "COMMIT" for one in each) for each in usual]
    return [
        figure(
            "pass of 5 calls: in one process, unwatched",
            "ms",
            [1000 * wall / PASSES for wall, _ in driven],
        ),
        figure(
            "pass of 5 calls: processor time, in one process",
            "ms",
            [1000 * cpu / PASSES for _, cpu in driven],
        ),
        compared,
        figure("queries per pass", "", queries),
        figure("queries per call", "", [each / CALLS for each in queries]),
        figure("commits per pass", "", transactions),
    ], anatomy


def _drive(site: Worksite) -> tuple[float, float]:
    """Drive a run; return its seconds of wall-clock time and of processor time."""
    run = site.submit()
    wall, cpu = time.perf_counter(), time.process_time()
    advance(run.pk)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    succeeded(run.pk)
    return wall, cpu


def _listen(site: Worksite) -> tuple[Run, list[Statement], float]:
    run = site.submit()
    began = time.perf_counter()
    with listened() as statements:
        advance(run.pk)
    seconds = time.perf_counter() - began
    return succeeded(run.pk), statements, seconds


def _model_ms(run: Run) -> float:
    return mean(Pass.objects.filter(run=run).values_list("duration_ms", flat=True))
