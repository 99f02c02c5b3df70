"""A figure: what was measured, how often, and what is aimed at."""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LEAST = 2
"""Repetitions that are made however slow the machine is."""


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Attributes:
        values: one for each repetition, in `unit`.
        aim: the median that we want to stay below; None where there is none.
        is_latency: many single samples, so that their 95th percentile says something.
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
        """Median, smallest and largest, the 95th percentile where it means something, and how many values there are."""
        if len(self.values) == 1:
            return short(self.median)
        if min(self.values) == max(self.values):
            return f"{self.median:g} (always; n={len(self.values)})"
        middle = f"; p95 {short(self.p95)}" if self.is_latency else ""
        spread = f"{short(min(self.values))} to {short(max(self.values))}"
        return f"{short(self.median)} ({spread}{middle}; n={len(self.values)})"


def figure(name: str, unit: str, values: Sequence[float], aim: float | None = None) -> Figure:
    """A figure of a few repetitions."""
    return Figure(name, unit, tuple(values), aim)


def latency(name: str, seconds: Sequence[float], aim: float | None = None) -> Figure:
    """A figure of many samples, given in seconds and shown in ms."""
    return Figure(name, "ms", tuple(1000 * each for each in seconds), aim, is_latency=True)


def short(value: float) -> str:
    """Three digits are enough for what varies by several percent."""
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}" if abs(value) >= 0.1 else f"{value:.2f}"


def rounds(most: int, seconds: float) -> Iterator[int]:
    """Numbers for repetitions: 0, which only warms up, then 1 to `most`, or fewer (at least 2) when time runs out."""
    began = time.monotonic()
    for number in range(most + 1):
        if number > LEAST and time.monotonic() - began > seconds:
            return
        yield number


def say(text: str) -> None:
    """Tell whoever waits how far we are."""
    print(text, file=sys.stderr, flush=True)
