"""Figures: measured values with their unit and their aim."""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LEAST = 2
"""The minimum number of repetitions, even on a slow machine."""


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Attributes:
        values: one value for each repetition or sample, in `unit`.
        aim: the upper limit for the median, if there is one.
        is_latency: there are enough values for a 95th percentile.
    """

    name: str
    unit: str
    values: tuple[float, ...]
    aim: float | None = None
    is_latency: bool = False

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def p95(self) -> float:
        ordered = sorted(self.values)
        return ordered[min(len(ordered) - 1, math.ceil(0.95 * len(ordered)) - 1)]

    @property
    def text(self) -> str:
        """The median, the range, the 95th percentile of a latency, and the number of values."""
        if len(self.values) == 1:
            return short(self.median) if self.unit else f"{self.median:g}"
        if min(self.values) == max(self.values):
            return f"{self.median:g} (always; n={len(self.values)})"
        middle = f"; p95 {short(self.p95)}" if self.is_latency else ""
        spread = f"{short(min(self.values))} to {short(max(self.values))}"
        return f"{short(self.median)} ({spread}{middle}; n={len(self.values)})"


def figure(name: str, unit: str, values: Sequence[float], aim: float | None = None) -> Figure:
    """Build a figure from a few repetitions."""
    return Figure(name, unit, tuple(values), aim)


def latency(name: str, seconds: Sequence[float], aim: float | None = None) -> Figure:
    """Build a figure in ms from many samples in seconds."""
    return Figure(name, "ms", tuple(1000 * each for each in seconds), aim, is_latency=True)


def short(value: float) -> str:
    """Format a value with three digits: measurements vary by several percent."""
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return (
        f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
        if abs(value) >= 0.1
        else f"{value:.2f}"
    )


def rounds(most: int, seconds: float) -> Iterator[int]:
    """Yield the number of each repetition: 0 for the warm-up, then 1 to `most`. Stop early once the
    time is used up, but not before repetition 2."""
    began = time.monotonic()
    for number in range(most + 1):
        if number > LEAST and time.monotonic() - began > seconds:
            return
        yield number


def say(text: str) -> None:
    """Report progress on the terminal."""
    print(text, file=sys.stderr, flush=True)
