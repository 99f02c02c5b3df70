"""The entries of a playback. They are built from the descriptions of events, without current rows,
so that each entry shows the state at that time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from agents.approvals.warnings.marks import Mark, name_marks
from agents.runs.described import Description
from agents.runs.descriptions import describe
from agents.runs.models import Event, EventType
from agents.runs.redaction import NOTHING_REDACTED, EventRedaction
from agents.web.panel.event_marks import load_event_marks

WAITS_AFTER = frozenset(
    {
        EventType.RUN_WAITING,
        EventType.RUN_NEEDS_ATTENTION,
        EventType.PROVIDER_DELAYED,
        EventType.RUN_FINISHED,
    }
)
"""Events followed by idle time, which a playback may skip."""
STILL_WAITING = frozenset(
    {
        EventType.APPROVAL_REQUESTED,
        EventType.APPROVAL_VOTED,
        EventType.APPROVAL_DECIDED,
        EventType.QUESTION_ANSWERED,
        EventType.CALL_RESOLVED,
    }
)
"""Events that people cause during a wait; they do not end the wait, because other cards may be
open."""


@dataclass(frozen=True)
class PlaybackEntry:
    """One event prepared for the playback.

    Attributes:
        at_ms: the time since the run's first event.
        slot: the entry replaces the earlier entry with the same slot; empty if it replaces none.
        look: `good`, `bad`, `wait`, `pass` or empty.
        note: plain text in the head's line.
        sentence: a card's sentence, with its bold parts.
        marked: the labels of the marks of the card or call that the event introduces.
        text, markdown: long texts, plain or formatted.
        values, data: the inputs by name, and the data of a result.
        waits_after: True if the run is idle until the next event.
        left_out: the number of events between the previous entry and this one, which the playback
            leaves out.
    """

    seq: int
    at_ms: int
    created_at: datetime
    slot: str
    head: str
    note: str
    icon: str
    look: str
    level: str
    sentence: str
    marked: str
    text: str
    markdown: str
    values: dict[str, Any] | None
    data: Any
    pass_number: int
    waits_after: bool
    left_out: int

    @property
    def clock(self) -> str:
        """The time since the first event: `0:03`, `1:02:03`."""
        minutes, seconds = divmod(self.at_ms // 1000, 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def build_entries(
    events: Iterable[Event], redaction: EventRedaction = NOTHING_REDACTED
) -> list[PlaybackEntry]:
    """Build an entry for each event. The events begin with the run's first event, and may leave out
    later events."""
    events = list(events)
    builder = _EntryBuilder(redaction, load_event_marks(events))
    return [builder.build(event) for event in events]


def find_title(events: Iterable[Event]) -> str:
    """Find the last title that the run was given; empty if there is none."""
    titles = [
        event.payload.get("title") or "" for event in events if event.type == EventType.RUN_TITLED
    ]
    return next(filter(None, reversed(titles)), "")


class _EntryBuilder:
    """Builds entries in order, and remembers the titles of calls, which only their first events
    have."""

    def __init__(self, redaction: EventRedaction, marks: Mapping[int, Sequence[Mark]]) -> None:
        self._redaction, self._marks = redaction, marks
        self._first: datetime | None = None
        self._last_seq = 0
        self._is_waiting = False
        self._titles: dict[str, str] = {}

    def build(self, event: Event) -> PlaybackEntry:
        self._first = self._first or event.created_at
        left_out, self._last_seq = event.seq - self._last_seq - 1, event.seq
        self._is_waiting = event.type in WAITS_AFTER or (
            self._is_waiting and event.type in STILL_WAITING
        )
        description = describe(event, self._redaction)
        head, note = self._find_head(event, description)
        return PlaybackEntry(
            seq=event.seq,
            at_ms=max(0, round((event.created_at - self._first) / timedelta(milliseconds=1))),
            created_at=event.created_at,
            slot=_name_slot(event),
            head=head,
            note=note,
            icon=description.icon,
            look=description.look,
            level=description.level,
            sentence=description.sentence,
            marked=name_marks(self._marks.get(event.pk, ())),
            text=description.text,
            markdown=description.markdown,
            values=description.values,
            data=description.data,
            pass_number=description.pass_number,
            waits_after=self._is_waiting,
            left_out=left_out,
        )

    def _find_head(self, event: Event, description: Description) -> tuple[str, str]:
        """Find the head and the note of an event's entry. If the event is about a call, these are
        the call's title and its status."""
        if not description.call_id:
            return description.short, ""
        if event.type == EventType.TOOL_START:
            self._titles[description.call_id] = description.title
        return self._titles.get(description.call_id, description.title), description.short


def _name_slot(event: Event) -> str:
    """Name the slot of a call's progress; the next report, and then the result, replace the entry
    in it."""
    has_slot = event.type in (EventType.TOOL_PROGRESS, EventType.TOOL_RESULT)
    return f"progress-{event.payload['call_id']}" if has_slot else ""
