"""The spans of a run's timeline, found from its events alone: one segment for each pass, including
its waits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import count

from agents.runs.models import EventType
from agents.runs.queries.runs import TimelineEvent
from tools.contract.outside_text import OutsideText

DELEGATE = "employee.delegate"
ENDS_WAIT = frozenset(
    {EventType.APPROVAL_DECIDED, EventType.QUESTION_ANSWERED, EventType.CALL_RESOLVED}
)


class SpanKind(StrEnum):
    """The kinds of spans; the kind of an executing call is its level."""

    MODEL = "model"
    READ = "read"
    DRAFT = "draft"
    WRITE = "write"
    DESTRUCTIVE = "destructive"
    COLLEAGUE = "colleague"
    WAIT = "wait"


@dataclass
class Span:
    """A span of time with one activity.

    Attributes:
        lane: the row, 0 for the model.
        end: None as long as it lasts.
        call_id: the call of a delegated task; 0 for other spans.
        inner: the spans of a colleague's run.
    """

    kind: SpanKind
    title: str
    lane: int
    start: datetime
    end: datetime | None = None
    call_id: int = 0
    inner: list[Span] = field(default_factory=list)

    @property
    def is_busy(self) -> bool:
        """True for work; False for a wait, and for a colleague's whole run, which may contain
        waits."""
        return self.kind not in (SpanKind.WAIT, SpanKind.COLLEAGUE)


@dataclass
class Segment:
    """One pass of the run, until the next pass starts.

    Attributes:
        end: None while the pass is the current one.
    """

    pass_number: int
    start: datetime
    end: datetime | None = None
    spans: list[Span] = field(default_factory=list)
    lane_count: int = 1


def find_segments(events: Iterable[TimelineEvent], until: datetime | None = None) -> list[Segment]:
    """Find the segments of a run from its events in order; the events may begin with any pass.

    Args:
        until: the end of open spans; None if they continue.
    """
    finder = _SegmentFinder()
    for event in events:
        finder.add(event)
    if until is not None:
        finder.end_pass(until)
    return finder.segments


def find_delegations(segments: Iterable[Segment]) -> dict[int, Span]:
    """Find the spans of delegated tasks, by the id of their call."""
    return {span.call_id: span for segment in segments for span in segment.spans if span.call_id}


class _SegmentFinder:
    """Reads events in order, and keeps the open spans: the model's response, calls and waits."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self._segment: Segment | None = None
        self._open: dict[str, Span] = {}
        self._lanes: dict[str, int] = {}
        self._titles: dict[str, str] = {}

    def add(self, event: TimelineEvent) -> None:
        if event.type == EventType.PASS_STARTED:
            self._begin_pass(event)
        elif self._segment is None:
            return
        elif event.type == EventType.RUN_FINISHED:
            self.end_pass(event.created_at)
        else:
            self._end_span("model", event.created_at)
            self._end_span("run", event.created_at)
            self._add_call_event(event)

    def _begin_pass(self, event: TimelineEvent) -> None:
        self.end_pass(event.created_at)
        self._segment = Segment(int(event.pass_number or 0), event.created_at)
        self._lanes = {}
        self.segments.append(self._segment)
        self._begin_span("model", SpanKind.MODEL, "Model", event.created_at)

    def end_pass(self, at: datetime) -> None:
        """End the current pass, if there is one, and everything in it."""
        for key in list(self._open):
            self._end_span(key, at)
        if self._segment is not None:
            self._segment.end = at
            self._segment = None

    def _add_call_event(self, event: TimelineEvent) -> None:
        call, at = event.call_id or "", event.created_at
        if event.type == EventType.TOOL_START:
            self._titles[call] = OutsideText(event.display_name or event.tool or "Call")
            self._begin_call(event, at)
        elif (
            event.type in (EventType.TOOL_RESULT, EventType.TOOL_REJECTED)
            or event.type in ENDS_WAIT
        ):
            self._end_span(call, at)
        elif event.type == EventType.APPROVAL_REQUESTED:
            self._begin_span(call, SpanKind.WAIT, "Waiting for approval", at)
        elif event.type == EventType.QUESTION_ASKED:
            self._begin_span(call, SpanKind.WAIT, "Waiting for an answer", at)
        elif event.type == EventType.RUN_NEEDS_ATTENTION:
            self._begin_span("run", SpanKind.WAIT, "Waiting for an outcome check", at)
        elif event.type == EventType.PROVIDER_DELAYED:
            self._begin_span("run", SpanKind.WAIT, "Waiting for the model", at)

    def _begin_call(self, event: TimelineEvent, at: datetime) -> None:
        call = event.call_id or ""
        if event.tool == DELEGATE:
            span = self._begin_span(
                call, SpanKind.COLLEAGUE, f"Task for {event.employee or 'a colleague'}", at
            )
            span.call_id = int(call)
        else:
            self._begin_span(call, SpanKind(event.level or SpanKind.READ), self._titles[call], at)

    def _begin_span(self, key: str, kind: SpanKind, title: str, at: datetime) -> Span:
        assert self._segment is not None
        self._end_span(key, at)
        lane = 0 if key in ("model", "run") else self._find_lane(key)
        span = Span(kind, title, lane, at)
        self._open[key] = span
        self._segment.spans.append(span)
        self._segment.lane_count = max(self._segment.lane_count, lane + 1)
        return span

    def _find_lane(self, call: str) -> int:
        """Find the call's earlier lane, or else the first free lane."""
        used = {span.lane for span in self._open.values()}
        lane = self._lanes.get(call, 0)
        if lane == 0 or lane in used:
            lane = next(number for number in count(1) if number not in used)
        self._lanes[call] = lane
        return lane

    def _end_span(self, key: str, at: datetime) -> None:
        span = self._open.pop(key, None)
        if span is not None:
            span.end = at
