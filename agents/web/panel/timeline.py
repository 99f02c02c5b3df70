"""The timeline of a run: a row of segments, one for each pass, so that a live message replaces only
the segments that changed.

The page's layout makes the widths of segments proportional to their durations. Idle time is
shortened: otherwise a night of waiting for an approval would hide all work.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from django.db.models import QuerySet
from django.utils import timezone

from agents.runs.models import Event
from agents.runs.queries.runs import (
    LATER_TIMELINE_EVENTS,
    MAX_TIMELINE_EVENTS,
    TIMELINE_COLUMNS,
    TIMELINE_TYPES,
    TimelineEvent,
    list_timeline_events,
)
from agents.web.panel.timeline_spans import Segment, Span, SpanKind, find_delegations, find_segments
from agents.web.text.durations import format_duration

WIDTH = 1000
LANE_HEIGHT = 10
BAR_HEIGHT = 7
INNER_HEIGHT = 3
MIN_BAR_WIDTH = 8
MIN_LANES = 4
MAX_LANES = 9
MAX_WORDS = 12
PX_PER_MS = 4
MAX_WEIGHT = 1_000_000
"""The largest weight. Weights are widths that the page's layout shrinks, and browsers do not
support widths beyond 30 million."""
MIN_IDLE_MS = 1_000
"""The minimum length of shortened idle time, in milliseconds, even if there is less work."""


@dataclass(frozen=True)
class TimeBar:
    """A bar of a segment, in the segment's own units."""

    kind: SpanKind
    title: str
    x: int
    y: int
    width: int
    height: int
    is_running: bool


@dataclass(frozen=True)
class DrawnSegment:
    """A segment as the page draws it.

    Attributes:
        weight: its width, relative to other segments.
        waited: the time spent waiting for people, in words; empty if under a second.
        description: the whole segment in words.
    """

    pass_number: int
    bars: list[TimeBar]
    height: int
    weight: int
    waited: str
    description: str

    @property
    def width(self) -> int:
        return WIDTH


def load_timeline(run_id: int) -> list[DrawnSegment]:
    """Load the timeline of a run's newest events, with one query, and one more if it has delegated
    tasks."""
    newest = list_timeline_events(run_id).order_by("-seq")
    return _draw(find_segments(_read_timeline_events(newest, "run_id")[::-1]))


def build_timeline(events: Iterable[Event]) -> list[DrawnSegment]:
    """Build the timeline of these events, in order; open spans end where events are left out."""
    parts: list[list[Event]] = []
    for event in events:
        if not parts or event.seq != parts[-1][-1].seq + 1:
            parts.append([])
        parts[-1].append(event)
    segments: list[Segment] = []
    for part in parts:
        shown = [_read_timeline_event(event) for event in part if event.type in TIMELINE_TYPES]
        segments += find_segments(shown, until=None if part is parts[-1] else part[-1].created_at)
    return _draw(segments)


def _read_timeline_event(event: Event) -> TimelineEvent:
    payload, params = event.payload, event.payload.get("params") or {}
    return TimelineEvent(
        event.run_id,
        event.seq,
        event.type,
        event.created_at,
        payload.get("pass_number"),
        payload.get("call_id"),
        payload.get("tool"),
        payload.get("level"),
        payload.get("display_name"),
        params.get("employee"),
    )


def load_timeline_from(run_id: int, seq: int) -> list[DrawnSegment]:
    """Load the segments that may have changed since the event with this number: the segment of the
    pass that contains the event, and all later segments."""
    return _draw(find_segments(LATER_TIMELINE_EVENTS.fetch_all(run_id, seq)))


def _draw(segments: list[Segment]) -> list[DrawnSegment]:
    _load_inner_spans(segments)
    now = timezone.now()
    return [_SegmentDrawer(segment, now).draw() for segment in segments]


def _load_inner_spans(segments: list[Segment]) -> None:
    """Add the colleagues' work to the spans of delegated tasks."""
    delegations = find_delegations(segments)
    if not delegations:
        return
    rows = Event.objects.filter(
        run__parent_call_id__in=delegations, type__in=TIMELINE_TYPES
    ).order_by("run_id", "seq")
    for call_id, of_call in groupby(
        _read_timeline_events(rows, "run__parent_call_id"), lambda event: event.run_id
    ):
        delegations[call_id].inner = [
            span for segment in find_segments(of_call) for span in segment.spans
        ]


def _read_timeline_events(rows: QuerySet[Event], owner: str) -> list[TimelineEvent]:
    """Read at most MAX_TIMELINE_EVENTS events; `owner` is the column to use instead of the run's
    id."""
    fields = rows.annotate(**{f"the_{name}": path for name, path in TIMELINE_COLUMNS.items()})
    columns = (owner, "seq", "type", "created_at", *(f"the_{name}" for name in TIMELINE_COLUMNS))
    return [TimelineEvent(*row) for row in fields.values_list(*columns)[:MAX_TIMELINE_EVENTS]]


class _SegmentDrawer:
    """The drawing of one segment: work is drawn to scale, and idle time is shortened to the length
    of the work, but never below MIN_IDLE_MS."""

    def __init__(self, segment: Segment, now: datetime) -> None:
        self.segment = segment
        self.end = max(segment.end or now, segment.start + timedelta(milliseconds=1))
        self._build_axis()

    def draw(self) -> DrawnSegment:
        segment = self.segment
        bars = [
            bar for span in segment.spans if span.lane < MAX_LANES for bar in self._draw_span(span)
        ]
        waits = [self._measure(span) for span in segment.spans if span.kind == SpanKind.WAIT]
        waited = format_duration(max(waits)) if waits and max(waits) >= MIN_IDLE_MS else ""
        height = LANE_HEIGHT * min(max(segment.lane_count, MIN_LANES), MAX_LANES)
        return DrawnSegment(
            segment.pass_number,
            bars,
            height,
            min(round(self._length * PX_PER_MS), MAX_WEIGHT),
            waited,
            self._describe(),
        )

    def _build_axis(self) -> None:
        """Find the points where work begins or ends, and their places on the shortened axis in
        milliseconds."""
        busy = _join_stretches(
            (max(span.start, self.segment.start), min(span.end or self.end, self.end))
            for outer in self.segment.spans
            for span in (outer, *outer.inner)
            if span.is_busy
        )
        total, work = (
            _to_ms(self.end - self.segment.start),
            sum(_to_ms(end - start) for start, end in busy),
        )
        idle = total - work
        scale = min(1.0, max(work, MIN_IDLE_MS) / idle) if idle > 0 else 1.0
        self._points, self._places = [self.segment.start], [0.0]
        for start, end in busy:
            self._add_point(start, scale)
            self._add_point(end, 1.0)
        self._add_point(self.end, scale)
        self._length = max(self._places[-1], 1.0)

    def _add_point(self, at: datetime, scale: float) -> None:
        self._places.append(self._places[-1] + _to_ms(at - self._points[-1]) * scale)
        self._points.append(at)

    def _place(self, at: datetime) -> int:
        """Return the place of a moment, from 0 to WIDTH."""
        at = min(max(at, self.segment.start), self.end)
        index = min(bisect_right(self._points, at) - 1, len(self._points) - 2)
        begin, stop = self._points[index], self._points[index + 1]
        share = (at - begin) / (stop - begin) if stop > begin else 1.0
        place = self._places[index] + (self._places[index + 1] - self._places[index]) * share
        return round(WIDTH * place / self._length)

    def _draw_span(self, span: Span) -> list[TimeBar]:
        y = span.lane * LANE_HEIGHT + 1
        inner = [
            self._draw_bar(each, y + BAR_HEIGHT - INNER_HEIGHT, INNER_HEIGHT)
            for each in span.inner
            if each.is_busy
        ]
        return [self._draw_bar(span, y, BAR_HEIGHT), *inner]

    def _draw_bar(self, span: Span, y: int, height: int) -> TimeBar:
        x = min(self._place(span.start), WIDTH - MIN_BAR_WIDTH)
        right = self._place(span.end or self.end)
        title = f"{span.title}, {self._format_span(span)}"
        return TimeBar(
            span.kind, title, x, y, max(right - x, MIN_BAR_WIDTH), height, span.end is None
        )

    def _measure(self, span: Span) -> int:
        return round(_to_ms((span.end or self.end) - span.start))

    def _format_span(self, span: Span) -> str:
        return f"{format_duration(self._measure(span))}{' so far' if span.end is None else ''}"

    def _describe(self) -> str:
        """Describe the segment: `Model 2.1 s; Search records 340 ms; Waiting for approval 3 min 5
        s`."""
        spans = self.segment.spans
        words = [f"{span.title} {self._format_span(span)}" for span in spans[:MAX_WORDS]]
        return "; ".join(
            [*words, f"{len(spans) - MAX_WORDS:,} more"] if len(spans) > MAX_WORDS else words
        )


def _join_stretches(
    stretches: Iterable[tuple[datetime, datetime]],
) -> list[tuple[datetime, datetime]]:
    """Join stretches of time that overlap; the result is in order."""
    joined: list[tuple[datetime, datetime]] = []
    for start, end in sorted(stretches):
        if end <= start:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _to_ms(duration: timedelta) -> float:
    return duration / timedelta(milliseconds=1)
