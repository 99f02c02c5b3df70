"""Read the rest of a stream in the background, because some servers report the usage seconds after
the response."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import httpx2

from agents.providers.base import ProviderError, ProviderStopped, Usage
from agents.providers.transport import CancelScope
from tools.network.transport import within

GRACE_S = 0.25
"""The number of seconds to wait for the end of a stream after its response. Nearly all servers send
both at the same time."""
LONGEST_GRACE_S = 2.0
"""The maximum number of seconds to wait for a server that sends a finish reason early and then
continues."""
DRAIN_S = 0.2
MAX_THREADS = 128
_slots = threading.BoundedSemaphore(MAX_THREADS)


class StreamRest:
    """The rest of a stream. A separate thread reads it once the response is complete.

    Args:
        chunks: yields a pair for each event: the usage so far, and True if the server has announced
            the end.
        scope: limits the time for reading.
        close: closes the stream.
    """

    def __init__(
        self,
        chunks: Iterator[tuple[Usage | None, bool]],
        scope: CancelScope,
        close: Callable[[], None],
    ) -> None:
        self._chunks = chunks
        self._scope = scope
        self._close = close
        self._usage: Usage | None = None
        self._event_count = 0
        self._callback: Callable[[Usage], None] | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def start(self) -> bool:
        """Start reading, and wait briefly for the end of the stream; return True if it has
        ended."""
        if not _slots.acquire(blocking=False):
            self._scope.shorten(GRACE_S)
            self._read_all()
            return True
        threading.Thread(target=self._read_in_thread, name="late-usage", daemon=True).start()
        seen, until = 0, time.monotonic() + LONGEST_GRACE_S
        while (
            not self._ended.wait(GRACE_S) and self._event_count != seen and time.monotonic() < until
        ):
            seen = self._event_count
        return self._ended.is_set()

    def abandon(self) -> None:
        """Stop reading soon, because the rest is not needed."""
        self._scope.shorten(DRAIN_S)

    def then(self, take: Callable[[Usage], None]) -> None:
        """Call `take` with the usage once it arrives, as `LateUsage.then` specifies."""
        with self._lock:
            if not self._ended.is_set():
                self._callback = take
                return
        if self._usage is not None:
            take(self._usage)

    def wait(self) -> Usage | None:
        """Wait for the end of the stream; return the usage, or None if no usage arrived."""
        self._ended.wait()
        return self._usage

    def _read_in_thread(self) -> None:
        try:
            self._read_all()
        finally:
            _slots.release()

    def _read_all(self) -> None:
        try:
            with (
                within(self._scope),
                contextlib.suppress(ProviderError, ProviderStopped, httpx2.HTTPError),
            ):
                for usage, is_done in self._chunks:
                    self._usage = usage
                    self._event_count += 1
                    if is_done:
                        self._scope.shorten(DRAIN_S)
        finally:
            self._close()
            with self._lock:
                self._ended.set()
                take = self._callback
            if take is not None and self._usage is not None:
                take(self._usage)
