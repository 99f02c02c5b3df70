"""300 simultaneous runs on a model that takes 5 s: they only wait for the model, so no run delays
another."""

from __future__ import annotations

from typing import Any

from tests.bench.crowd import seconds_for_all
from tests.bench.figures import Figure, figure
from tests.bench.site import passes_of_calls, worksite
from tests.processes import Installation

RUNS = 300
PASSES = 5
MODEL_S = 5
LEAST_S = (PASSES + 1) * MODEL_S
"""The minimum time: one response of the model for each pass and one for the answer."""
AIM = 1.4


def on_a_slow_model(installation: Installation) -> list[Figure]:
    """Measure the seconds from the first submission to the end of the last run, and their ratio to
    the minimum time."""
    with worksite(_answers()) as site:
        seconds = seconds_for_all(site, None, RUNS)
    return [
        figure("300 runs on a slow model", "s", [seconds]),
        figure(
            "300 runs on a slow model: ratio to the least possible",
            "×",  # noqa: RUF001
            [seconds / LEAST_S],
            AIM,
        ),
    ]


def _answers() -> list[dict[str, Any]]:
    return [{**answer, "delay_ms": 1000 * MODEL_S} for answer in passes_of_calls(PASSES, 1)]
