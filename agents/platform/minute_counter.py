"""Count what comes in a minute, to refuse a flood. Each process counts for itself, so a count costs no query."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from threading import Lock

from tools.caches import register

MINUTE_S = 60.0


class MinuteCounter:
    """Counts subjects over the last 60 seconds, which move on with the clock, so that no minute's turn allows more."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._times: dict[str, deque[float]] = {}
        self._pruned_at = 0.0
        register(self)

    def count_or_wait(self, subject: str, most: int) -> int:
        """Count one more of this subject, unless `most` were counted in the last minute.

        Return 0 if it was counted, else the seconds until the next one can be.
        """
        now = self._clock()
        with self._lock:
            self._prune(now)
            times = self._times.setdefault(subject, deque())
            while times and times[0] <= now - MINUTE_S:
                times.popleft()
            if len(times) < most:
                times.append(now)
                return 0
            return max(1, math.ceil(times[0] + MINUTE_S - now)) if times else math.ceil(MINUTE_S)

    def clear(self) -> None:
        """Forget all counts."""
        with self._lock:
            self._times.clear()

    def _prune(self, now: float) -> None:
        """Forget once a minute the subjects that were not counted since: strangers may send any number of them."""
        if now - self._pruned_at >= MINUTE_S:
            self._pruned_at = now
            self._times = {name: times for name, times in self._times.items() if times and times[-1] > now - MINUTE_S}


_counter = MinuteCounter()
count_or_wait = _counter.count_or_wait
