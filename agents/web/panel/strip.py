"""The strip of a pass: its calls as bars side by side in time, drawn by the server and, for live lines, by strip.js.

It is given no call that waited for a person: its bar would lie hours away from the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.runs.models import CallStatus, ToolCall

MOST_BARS = 12
WIDTH = 1000
LANE = 6
THINNEST = 8


@dataclass(frozen=True)
class Bar:
    """One call, in units of the strip's own space."""

    x: int
    y: int
    width: int
    level: str
    is_running: bool


@dataclass(frozen=True)
class Strip:
    """Bars from top to bottom in the order of the calls; `left_out` calls have none."""

    bars: list[Bar]
    took_ms: int
    left_out: int

    @property
    def height(self) -> int:
        return LANE * len(self.bars)

    @property
    def count(self) -> int:
        return len(self.bars) + self.left_out


def strip_of(calls: Iterable[ToolCall]) -> Strip | None:
    """The strip of one pass' calls; None if fewer than two have started."""
    spans = [(call, *_span(call, call.started_at)) for call in calls if call.started_at]
    if len(spans) < 2:
        return None
    spans.sort(key=lambda span: span[0].index)
    begin, end = min(span[1] for span in spans), max(span[2] for span in spans)
    whole = max(end - begin, timedelta(milliseconds=1))
    bars = []
    for lane, (call, start, stop) in enumerate(spans[:MOST_BARS]):
        is_running = call.status == CallStatus.EXECUTING
        x = min(round(WIDTH * ((start - begin) / whole)), WIDTH - THINNEST)
        right = WIDTH if is_running else round(WIDTH * ((stop - begin) / whole))
        bars.append(Bar(x, lane * LANE, max(right - x, THINNEST), call.level, is_running))
    return Strip(bars, round(whole / timedelta(milliseconds=1)), len(spans) - len(bars))


def _span(call: ToolCall, started_at: datetime) -> tuple[datetime, datetime]:
    return started_at, started_at + timedelta(milliseconds=call.duration_ms or 0)
