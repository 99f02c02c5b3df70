"""A figure: what was measured, how often, and what is aimed at."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass


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
        """Median, 95th percentile where it means something, smallest and largest."""
        middle = f"; p95 {short(self.p95)}" if self.is_latency else ""
        return f"{short(self.median)} ({short(min(self.values))} to {short(max(self.values))}{middle})"


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


def say(text: str) -> None:
    """Tell whoever waits how far we are."""
    print(text, file=sys.stderr, flush=True)
