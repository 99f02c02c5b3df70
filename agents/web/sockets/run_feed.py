"""The feed of a run, which sends every event once and in order, even to a slow browser."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from typing import Any

from redis.exceptions import RedisError

from agents.platform.redis_client import connect_redis
from agents.platform.streamed_text import StreamedText, read_text
from agents.runs.models import EventType, Run, RunStatus
from agents.runs.queries.runs import EVENTS_PER_PAGE, LATER_EVENTS
from agents.web.panel.lines import PanelLine, render_lines
from agents.web.panel.run_state import RunState, read_state
from agents.web.sockets.database import database_to_async
from agents.web.sockets.feeds import Feed, Subscriber
from agents.web.sockets.viewers import Viewer, filter_allowed

MAX_KEPT = 300
END_OF_TEXT = frozenset(
    {
        EventType.ASSISTANT_MESSAGE,
        EventType.TOOL_START,
        EventType.TOOL_REJECTED,
        EventType.APPROVAL_REQUESTED,
        EventType.PROVIDER_DELAYED,
        EventType.RUN_WAITING,
        EventType.RUN_RESUMED,
        EventType.RUN_NEEDS_ATTENTION,
        EventType.RUN_FINISHED,
    }
)
"""Events that end the text that the model is writing: the text is recorded as a message, or
dropped."""


@dataclass
class SocketMessage:
    """An event as sockets send it.

    Attributes:
        ends_text: True if the event ends the text that the model is writing.
        is_stale: True if a later line has replaced the event's line, so that the HTML is outdated.
    """

    seq: int
    slot: str
    text: str
    ends_text: bool = False
    is_stale: bool = False


class RunSubscriber(Subscriber):
    """A socket that watches a run.

    Attributes:
        cursor: the number of the last sent event.
        wants_state: True if it also wants status changes that have no event.
        sent_state: the last sent state.
        sent_text: the key of the text that it has begun to send, and the number of characters sent.
    """

    def __init__(self, viewer: Viewer, cursor: int, *, wants_state: bool = False) -> None:
        super().__init__(viewer)
        self.cursor = cursor
        self.wants_state = wants_state
        self.sent_state: RunState | None = None
        self.sent_text: tuple[tuple[int, int], int] = ((0, 0), 0)
        self._requested_cursor: int | None = None

    def request_events_after(self, seq: int) -> None:
        """Request the events after this number again."""
        self._requested_cursor = seq
        self.news.set()

    def apply_request(self) -> None:
        """Move the cursor to the position that the browser requested, between two batches of
        messages."""
        if self._requested_cursor is not None:
            self.cursor, self._requested_cursor = self._requested_cursor, None


class RunFeed(Feed):
    """The feed that reads a run's new events once for all subscribers, and keeps the newest 300 for
    subscribers that are slightly behind."""

    def __init__(self, group: str, run_id: int) -> None:
        super().__init__(group)
        self.run_id = run_id
        self.state: RunState | None = None
        self.text: StreamedText | None = None
        self._last_text = (0, 0)
        self._lacks_text = True
        self._last: int | None = None
        self._kept: deque[SocketMessage] = deque(maxlen=MAX_KEPT)

    async def read(self) -> None:
        viewers = {subscriber.viewer for subscriber in self.subscribers}
        if self._last is None:
            self._last = await _read_newest_seq(self.run_id)
            await self._read_text()
            self.wake_subscribers()
            return
        if self._lacks_text:
            await self._read_text()
        has_more = True
        while has_more:
            allowed, messages = await read_messages(self.run_id, self._last, viewers)
            self.revoke_lost_access(viewers, allowed)
            if messages:
                self._keep(messages)
                self.wake_subscribers()
            has_more = len(messages) == EVENTS_PER_PAGE
        if any(isinstance(each, RunSubscriber) and each.wants_state for each in self.subscribers):
            await self._read_state()

    async def _read_state(self) -> None:
        """Read the run's state, which changes with most events, and may change without one."""
        previous, self.state = self.state, await _read_state(self.run_id)
        if self.state != previous:
            self.wake_subscribers()

    def receive(self, message: dict[str, Any]) -> None:
        """Add a piece to the text that the model is writing; read the text again if the piece
        before it is missing."""
        if message["type"] != "delta":
            return
        key, text, start = (
            (message["epoch"], message["pass_number"]),
            message["text"],
            message["start"],
        )
        if key <= self._last_text or (self.text is not None and key < self.text.key):
            return
        known = self.text.text if self.text is not None and self.text.key == key else ""
        if start > len(known):
            self._lacks_text = True
            self._bell.set()
            return
        self.text = StreamedText(*key, known + text[len(known) - start :])
        self.wake_subscribers()

    async def _read_text(self) -> None:
        """Read the beginning of the text that the model is writing, because this process has not
        received it."""
        self._lacks_text = False
        text = await _read_text(self.run_id)
        if (
            text is not None
            and text.key > self._last_text
            and (self.text is None or text.key >= self.text.key)
        ):
            known = self.text.text if self.text is not None and self.text.key == text.key else ""
            self.text = text if len(text.text) > len(known) else self.text
            self.wake_subscribers()

    def _end_text(self) -> None:
        """Forget the text of a recorded or abandoned pass, and ignore late pieces of it."""
        if self.text is not None:
            self._last_text, self.text = self.text.key, None

    def take_unsent_text(self, subscriber: RunSubscriber) -> str | None:
        """Return a message with the part of the text that the subscriber has not sent; None if
        there is none.

        `start` is the number of characters before this part. A text that starts at 0 replaces what
        a page shows.
        """
        if self.text is None:
            return None
        key, length = subscriber.sent_text
        start = length if key == self.text.key else 0
        if start >= len(self.text.text):
            return None
        subscriber.sent_text = self.text.key, len(self.text.text)
        place = {"pass_number": self.text.pass_number, "epoch": self.text.epoch, "start": start}
        return _build_message(
            None, "assistant_delta", {**place, "text": self.text.text[start:]}, ""
        )

    def find_unsent_state(self, subscriber: RunSubscriber) -> RunState | None:
        """Return the state if the subscriber wants it, has not received it, and has received every
        event before it."""
        state = self.state if subscriber.wants_state else None
        if state is None or state == subscriber.sent_state or state.after != subscriber.cursor:
            return None
        return state

    def find_messages(self, cursor: int) -> list[SocketMessage] | None:
        """Find at most one page of messages after the cursor; None if the subscriber must read them
        itself."""
        if self._last is None or cursor >= self._last:
            return []
        if not self._kept or self._kept[0].seq > cursor + 1:
            return None
        page = [message for message in self._kept if message.seq > cursor][:EVENTS_PER_PAGE]
        return None if any(message.is_stale for message in page) else page

    def _keep(self, messages: list[SocketMessage]) -> None:
        """Keep the messages, and mark earlier messages stale if a new message takes their slot.

        Messages that are read together show the same rows, so they do not make each other stale.
        """
        if any(message.ends_text for message in messages):
            self._end_text()
        slots = {message.slot for message in messages if message.slot}
        for earlier in self._kept:
            earlier.is_stale = earlier.is_stale or earlier.slot in slots
        self._kept.extend(messages)
        self._last = messages[-1].seq


@database_to_async
def read_messages(
    run_id: int, cursor: int, viewers: set[Viewer]
) -> tuple[set[Viewer], list[SocketMessage]]:
    """Return the viewers who still have access, and up to 200 messages after the cursor, built from
    the current rows."""
    allowed = filter_allowed(viewers)
    if not allowed:
        return allowed, []
    events = [row.event for row in LATER_EVENTS.fetch_all(run_id, cursor)]
    return allowed, [
        _render_message(line) for line in render_lines(run_id, events)
    ] if events else []


@database_to_async
def _read_newest_seq(run_id: int) -> int:
    return Run.objects.values_list("next_event_seq", flat=True).get(pk=run_id) - 1


_read_state = database_to_async(read_state)


@database_to_async
def _read_text(run_id: int) -> StreamedText | None:
    """Read the text that the run's model is writing; None if it is not writing any, or if Redis is
    unavailable."""
    run = (
        Run.objects.only("lease_epoch", "pass_number")
        .filter(pk=run_id, status=RunStatus.RUNNING)
        .first()
    )
    if run is None:
        return None
    try:
        with connect_redis() as client:
            text = read_text(client, run_id)
    except (OSError, RedisError):
        return None
    return text if text is not None and text.key == (run.lease_epoch, run.pass_number + 1) else None


def _render_message(line: PanelLine) -> SocketMessage:
    text = _build_message(line.seq, line.type, line.payload, line.html + line.parts)
    return SocketMessage(line.seq, line.slot, text, line.type in END_OF_TEXT)


def _build_message(seq: int | None, event_type: str, payload: dict[str, Any], html: str) -> str:
    return json.dumps(
        {"seq": seq, "type": event_type, "payload": payload, "html": html}, ensure_ascii=False
    )
