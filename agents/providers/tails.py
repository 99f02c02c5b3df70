"""Reads the rest of a stream in the background, because some servers report usage seconds after the answer."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import httpx2

from agents.providers.base import ProviderError, ProviderStopped, Usage
from agents.providers.transport import Watch, watching

GRACE_S = 0.25
"""The time that an answer waits for its ending; nearly every server sends both at once."""
LONGEST_GRACE_S = 2.0
"""For servers that send a finish reason early and continue."""
DRAIN_S = 0.2
MOST_TAILS = 128
_places = threading.BoundedSemaphore(MOST_TAILS)


class Tail:
    """The rest of a stream, read in its own thread once the answer is complete.

    Args:
        chunks: one step for each event that is read; each gives the usage that is known by then, and whether the
            server has said that nothing follows.
        watch: until when it may be read.
        close: closes the stream.
    """

    def __init__(self, chunks: Iterator[tuple[Usage | None, bool]], watch: Watch, close: Callable[[], None]) -> None:
        self._chunks = chunks
        self._watch = watch
        self._close = close
        self._usage: Usage | None = None
        self._steps = 0
        self._take: Callable[[Usage], None] | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()

    def read(self) -> bool:
        """Read on, and return after a moment at the latest: True if the stream is over by then."""
        if not _places.acquire(blocking=False):
            self._watch.shorten(GRACE_S)
            self._read_all()
            return True
        threading.Thread(target=self._read_in_place, name="tail", daemon=True).start()
        seen, until = 0, time.monotonic() + LONGEST_GRACE_S
        while not self._over.wait(GRACE_S) and self._steps != seen and time.monotonic() < until:
            seen = self._steps
        return self._over.is_set()

    def leave(self) -> None:
        """Stop after the current read: nobody waits for more."""
        self._watch.shorten(DRAIN_S)

    def then(self, take: Callable[[Usage], None]) -> None:
        with self._lock:
            if not self._over.is_set():
                self._take = take
                return
        if self._usage is not None:
            take(self._usage)

    def wait(self) -> Usage | None:
        self._over.wait()
        return self._usage

    def _read_in_place(self) -> None:
        try:
            self._read_all()
        finally:
            _places.release()

    def _read_all(self) -> None:
        try:
            with watching(self._watch), contextlib.suppress(ProviderError, ProviderStopped, httpx2.HTTPError):
                for usage, is_done in self._chunks:
                    self._usage = usage
                    self._steps += 1
                    if is_done:
                        self._watch.shorten(DRAIN_S)
        finally:
            self._close()
            with self._lock:
                self._over.set()
                take = self._take
            if take is not None and self._usage is not None:
                take(self._usage)
