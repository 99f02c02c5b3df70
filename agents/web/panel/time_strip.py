"""The time strip of a pass, which shows its calls as bars, so that people see which calls ran at the same time.

It omits calls that waited for a person, because their bars could lie hours away from the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.runs.models import CallStatus, ToolCall

MAX_BARS = 12
WIDTH = 1000
BAR_DISTANCE = 6
MIN_BAR_WIDTH = 8


@dataclass(frozen=True)
class CallBar:
    """The bar of one call, in the strip's own units."""

    x: int
    y: int
    width: int
    level: str
    is_running: bool


@dataclass(frozen=True)
class TimeStrip:
    """The bars from top to bottom, in the order of the calls; `left_out` more calls have no bar."""

    bars: list[CallBar]
    duration_ms: int
    left_out: int

    @property
    def width(self) -> int:
        return WIDTH

    @property
    def height(self) -> int:
        return BAR_DISTANCE * len(self.bars)

    @property
    def call_count(self) -> int:
        return len(self.bars) + self.left_out


def build_time_strip(calls: Iterable[ToolCall]) -> TimeStrip | None:
    """Build the strip for the calls of one pass; None if fewer than two have started."""
    spans = [(call, *_measure_span(call, call.started_at)) for call in calls if call.started_at]
    if len(spans) < 2:
        return None
    spans.sort(key=lambda span: span[0].index)
    begin, end = min(span[1] for span in spans), max(span[2] for span in spans)
    duration = max(end - begin, timedelta(milliseconds=1))
    bars = []
    for index, (call, start, stop) in enumerate(spans[:MAX_BARS]):
        is_running = call.status == CallStatus.EXECUTING
        x = min(round(WIDTH * ((start - begin) / duration)), WIDTH - MIN_BAR_WIDTH)
        right = WIDTH if is_running else round(WIDTH * ((stop - begin) / duration))
        bars.append(CallBar(x, index * BAR_DISTANCE, max(right - x, MIN_BAR_WIDTH), call.level, is_running))
    return TimeStrip(bars, round(duration / timedelta(milliseconds=1)), len(spans) - len(bars))


def _measure_span(call: ToolCall, started_at: datetime) -> tuple[datetime, datetime]:
    return started_at, started_at + timedelta(milliseconds=call.duration_ms or 0)
