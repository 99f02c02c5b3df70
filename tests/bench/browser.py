"""A person's browser as a program: it sends REST requests, and receives every event of a run over
the run's socket."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

PATIENCE_S = 60.0
REST_AFTER_LOSS_S = 0.5


@dataclass(frozen=True)
class Seen:
    """An event from the socket; `at` is the wall-clock time of its arrival."""

    at: float
    seq: int
    type: str
    payload: dict[str, Any]


class Watched:
    """One run's socket and everything that arrived over it."""

    def __init__(self, run_id: int) -> None:
        self.run_id = run_id
        self.events: list[Seen] = []
        self._by_type: dict[str, Seen] = {}
        self.losses = 0
        self._loss = ""
        self._changed = threading.Condition()

    def take(self, event: Seen) -> None:
        with self._changed:
            self.events.append(event)
            self._by_type.setdefault(event.type, event)
            self._changed.notify_all()

    def lose(self, why: str) -> None:
        """Record that the socket was lost, and why."""
        self.losses += 1
        self._loss = why

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self.events[-1].seq if self.events else 0

    @property
    def has_finished(self) -> bool:
        return "run_finished" in self._by_type

    def first(self, type_: str) -> Seen:
        """Wait for the first event of this type; raise AssertionError if it does not arrive."""
        return self._awaited(lambda: self._by_type.get(type_), type_)

    def number(self, seq: int) -> Seen:
        """Wait for the event with this number."""
        return self._awaited(
            lambda: self.events[seq - 1] if len(self.events) >= seq else None, f"event {seq}"
        )

    def assert_whole(self, next_event_seq: int) -> None:
        """Assert that every event of the run arrived, once and in order."""
        numbers = [event.seq for event in self.events]
        assert numbers == list(range(1, next_event_seq)), (
            f"run {self.run_id}: {numbers}, next is {next_event_seq}"
        )

    def _awaited(self, look: Any, what: str) -> Seen:
        with self._changed:
            self._changed.wait_for(lambda: look() is not None, PATIENCE_S)
            found = look()
        assert isinstance(found, Seen), (
            f"run {self.run_id}: no {what} came in {PATIENCE_S:.0f} s {self._loss}"
        )
        return found


class Browser:
    """The requests and sockets of one person, identified by a token. The sockets are served in a
    separate thread."""

    def __init__(self, url: str, token: str) -> None:
        self._socket_url = url.replace("http", "ws", 1)
        self._headers = {"Authorization": f"Bearer {token}"}
        self._client = httpx2.Client(base_url=url, headers=self._headers, timeout=PATIENCE_S)
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        threading.Thread(target=self._loop.run_forever, name="browser", daemon=True).start()

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """POST to the API and return the response's body; raise AssertionError if the request is
        refused."""
        response = self._client.post(f"/api{path}", json=body)
        assert response.is_success, f"{path}: {response.status_code} {response.text}"
        told: dict[str, Any] = response.json()
        return told

    def start_run(self, employee_id: int) -> int:
        """Start a run over REST and return its id."""
        run = self.post(
            "/runs", {"employee_id": str(employee_id), "task": "Do the work of the benchmark"}
        )
        return int(run["id"])

    def watch(self, run_id: int) -> Watched:
        """Begin to open the run's socket, which closes when the run has finished; do not wait until
        it is open."""
        watched = Watched(run_id)
        self._loop.call_soon_threadsafe(self._begin, watched)
        return watched

    def close(self) -> None:
        """End requests and sockets, and wait until all are closed."""
        self._client.close()
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _begin(self, watched: Watched) -> None:
        task = self._loop.create_task(self._follow(watched))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end(self) -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _follow(self, watched: Watched) -> None:
        """Receive events until the run has finished or the time limit is reached. If the socket is
        lost, open it again after the last event received, as a browser does."""
        deadline = time.monotonic() + PATIENCE_S
        while not watched.has_finished:
            try:
                await self._listen(watched)
            except (OSError, WebSocketException) as error:
                watched.lose(repr(error))
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(0 if watched.has_finished else REST_AFTER_LOSS_S)

    async def _listen(self, watched: Watched) -> None:
        address = f"{self._socket_url}/ws/runs/{watched.run_id}/?after={watched.last}"
        options: dict[str, Any] = {
            "additional_headers": self._headers,
            "compression": None,
            "open_timeout": PATIENCE_S,
        }
        async with connect(address, **options) as socket:
            async for text in socket:
                at = time.time()
                event = json.loads(text)
                if event["seq"] is not None:
                    watched.take(Seen(at, event["seq"], event["type"], event["payload"]))
                if watched.has_finished:
                    return


@contextmanager
def browsing(url: str, token: str) -> Iterator[Browser]:
    """Yield a browser at this address, logged in with this token."""
    browser = Browser(url, token)
    try:
        yield browser
    finally:
        browser.close()
