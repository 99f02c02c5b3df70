"""The benchmark of 100 simultaneous runs on two workers. Each run waits for its model and its
tools, with or without a browser that watches it."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from agents.runs.models import Run
from tests.bench.browser import Browser, Watched, browsing
from tests.bench.crowd_by_hand import crowd_by_hand
from tests.bench.figures import Figure, figure, rounds, say
from tests.bench.site import Worksite, succeeded, worksite
from tests.processes import Installation

RUNS = 100
PASSES = 5
CALLS = 3
TOOL_MS = 50
MODEL_MS = 200
AIM_TIMES = 2.5
WARM_UP = 10
PATIENCE_S = 12.0
PATIENCE_OF_ALL_S = 240.0


def at_once(installation: Installation, repeats: int) -> list[Figure]:
    """Measure the seconds from the first of 100 submissions to the end of the last run; the waits
    of one run alone take 1.45 s."""
    with worksite(_answers()) as site, browsing(installation.url, site.token) as browser:
        alone = [
            seconds_for_all(site, None, RUNS if number else WARM_UP)
            for number in rounds(repeats, PATIENCE_S)
        ][1:]
        say(f"  nobody watching: {', '.join(f'{each:.2f}' for each in alone)} s")
        watched = [
            seconds_for_all(site, browser, RUNS if number else WARM_UP)
            for number in rounds(repeats, PATIENCE_S)
        ][1:]
        by_hand = [
            crowd_by_hand(site.model_url, RUNS, PASSES, CALLS) for _ in rounds(repeats, PATIENCE_S)
        ][1:]
    times = median(watched) / median(by_hand)
    return [
        figure("100 runs at once: each watched by a browser", "s", watched),
        figure("100 runs at once: nobody watching", "s", alone),
        figure("100 runs at once: loops by hand", "s", by_hand),
        figure("100 runs at once: ratio to loops by hand", "×", [times], AIM_TIMES),  # noqa: RUF001
    ]


def _answers() -> list[dict[str, Any]]:
    passes = [
        [
            {"tool": "probe.sleep", "params": {"ms": TOOL_MS, "tag": f"{number}-{index}"}}
            for index in range(CALLS)
        ]
        for number in range(PASSES)
    ]
    return [
        *({"calls": calls, "delay_ms": MODEL_MS} for calls in passes),
        {"text": "Done.", "delay_ms": MODEL_MS},
    ]


def seconds_for_all(site: Worksite, browser: Browser | None, count: int) -> float:
    """Submit runs, let the browser watch them if there is one, and wait until all have ended.
    Return the seconds from the first submission to the last end."""
    sockets: list[Watched] = []
    began, ids = time.time(), []
    for _ in range(count):
        ids.append(site.submit().pk)
        if browser is not None:
            sockets.append(browser.watch(ids[-1]))
    _await_ends(ids)
    runs = [succeeded(pk) for pk in ids]
    lost = 0
    for watched in sockets:
        watched.first("run_finished")
        lost += watched.losses
        watched.assert_whole(
            Run.objects.values_list("next_event_seq", flat=True).get(pk=watched.run_id)
        )
    if lost:
        say(f"  sockets that were lost and opened again: {lost}")
    return max(run.finished_at.timestamp() for run in runs if run.finished_at is not None) - began


def _await_ends(ids: list[int]) -> None:
    """Wait until all runs have ended; poll rarely, because the times themselves are read from the
    runs."""
    deadline = time.monotonic() + PATIENCE_OF_ALL_S
    while Run.objects.filter(pk__in=ids, finished_at=None).exists():
        assert time.monotonic() < deadline, (
            f"{Run.objects.filter(pk__in=ids, finished_at=None).count()} never ended"
        )
        time.sleep(0.25)
