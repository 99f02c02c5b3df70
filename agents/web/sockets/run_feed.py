"""What a run's sockets send: its events by number, in order, without gaps or doubles, however slow the reader."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from typing import Any

from agents.platform.queries.runs import EVENTS_PER_PAGE, LATER_EVENTS, NEXT_EVENT
from agents.runs.models import Run
from agents.web.panel.panel import Line, lines_of
from agents.web.panel.run_state import RunState, read_state
from agents.web.sockets.feeds import Feed, Seat, Viewer, in_thread, still_allowed

KEPT = 300
MOST_DELTAS = 200


@dataclass
class Sendable:
    """A line as it goes out; stale once a later line has taken its place, because its HTML is not true any more."""

    seq: int
    slot: str
    text: str
    is_stale: bool = False


class RunSeat(Seat):
    """A socket's place in the run.

    Attributes:
        last: the number of the last event that it was sent.
        resume: the number after which the browser wants to have the events again.
        follows: whether it also wants to hear of a status that has changed without an event.
        told: the state that it was told last.
    """

    def __init__(self, viewer: Viewer, last: int, *, follows: bool = False) -> None:
        super().__init__(viewer)
        self.last = last
        self.follows = follows
        self.told: RunState | None = None
        self.resume: int | None = None
        self.deltas: deque[str] = deque(maxlen=MOST_DELTAS)

    def hear(self, message: dict[str, Any]) -> None:
        """Streamed text; dropped rather than held for a reader that is too slow."""
        if message["type"] == "delta":
            payload = {name: message[name] for name in ("pass_number", "epoch", "text")}
            self.deltas.append(_as_text(None, "assistant_delta", payload, ""))
            self.woken.set()


class RunFeed(Feed):
    """Reads the run's new events once for all seats and keeps the last 300 for those that are a little behind."""

    def __init__(self, group: str, run_id: int) -> None:
        super().__init__(group)
        self.run_id = run_id
        self.state: RunState | None = None
        self._last: int | None = None
        self._kept: deque[Sendable] = deque(maxlen=KEPT)

    async def read(self) -> None:
        viewers = {seat.viewer for seat in self.seats}
        if self._last is None:
            self._last = await _newest_seq(self.run_id)
            self._wake()
            return
        more, before = True, self._last
        while more:
            allowed, page = await read_page(self.run_id, self._last, viewers)
            self.expel_others(viewers, allowed)
            if page:
                self._keep(page)
                self._wake()
            more = len(page) == EVENTS_PER_PAGE
        if self._last == before and any(seat.follows for seat in self.seats if isinstance(seat, RunSeat)):
            await self._look_at_state()

    async def _look_at_state(self) -> None:
        """Nothing has happened lately: what events do not tell is told now."""
        known, self.state = self.state, await read_state(self.run_id)
        if self.state != known:
            self._wake()

    def untold(self, seat: RunSeat) -> RunState | None:
        """The state, if the seat follows it, was not told it, and has all events that came before it."""
        if not seat.follows or self.state is None or self.state == seat.told or self.state.after != seat.last:
            return None
        return self.state

    def since(self, last: int) -> list[Sendable] | None:
        """What a seat lacks, at most one page; None if it has to read the database itself."""
        if self._last is None or last >= self._last:
            return []
        if not self._kept or self._kept[0].seq > last + 1:
            return None
        page = [one for one in self._kept if one.seq > last][:EVENTS_PER_PAGE]
        return None if any(one.is_stale for one in page) else page

    def _keep(self, page: list[Sendable]) -> None:
        """Lines of one page are all made from the same rows, so only those of earlier pages grow stale by it."""
        taken = {sendable.slot for sendable in page if sendable.slot}
        for earlier in self._kept:
            earlier.is_stale = earlier.is_stale or earlier.slot in taken
        self._kept.extend(page)
        self._last = page[-1].seq

    def _wake(self) -> None:
        for seat in self.seats:
            seat.woken.set()


@in_thread
def read_page(run_id: int, after: int, viewers: set[Viewer]) -> tuple[set[Viewer], list[Sendable]]:
    """Who of them may still look, and up to 200 events after that number as the rows are now."""
    allowed = still_allowed(viewers)
    if not allowed:
        return allowed, []
    events = [row.event for row in LATER_EVENTS.rows(run_id, after)]
    return allowed, [_sendable(line) for line in lines_of(run_id, events)] if events else []


@in_thread
def _newest_seq(run_id: int) -> int:
    row = NEXT_EVENT.row(run_id)
    if row is None:
        raise Run.DoesNotExist(f"run {run_id}")
    return row.next_event_seq - 1


def _sendable(line: Line) -> Sendable:
    return Sendable(line.seq, line.slot, _as_text(line.seq, line.type, line.payload, line.html))


def _as_text(seq: int | None, type_: str, payload: dict[str, Any], html: str) -> str:
    return json.dumps({"seq": seq, "type": type_, "payload": payload, "html": html}, ensure_ascii=False)
