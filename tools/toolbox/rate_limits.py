"""Rate limits: a maximum number of calls in any sliding period."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Protocol

from tools.caches import register
from tools.contract import RateLimit

FORGOTTEN_EVERY_S = 60.0


class RateLimiter(Protocol):
    """A limiter that counts calls by key."""

    def seconds_to_wait(self, key: str, limit: RateLimit) -> float:
        """Count this call and return 0 if it may run, else the seconds until a call may run."""


class ProcessRateLimiter:
    """A limiter that counts the calls of one process, so that counting does not need a query."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._times: dict[tuple[str, RateLimit], deque[float]] = {}
        self._forgotten_at = 0.0
        register(self)

    def seconds_to_wait(self, key: str, limit: RateLimit) -> float:
        """Count this call and return 0 if it may run, else the seconds until a call may run."""
        now = self._clock()
        with self._lock:
            self._forget_old(now)
            times = self._times.setdefault((key, limit), deque(maxlen=limit.calls))
            if len(times) == limit.calls and (wait_s := times[0] + limit.seconds - now) > 0:
                return wait_s
            times.append(now)
            return 0.0

    def clear(self) -> None:
        """Forget all counts."""
        with self._lock:
            self._times.clear()

    def _forget_old(self, now: float) -> None:
        """Remove expired keys once a minute, because strangers may send any number of keys."""
        if now - self._forgotten_at >= FORGOTTEN_EVERY_S:
            self._forgotten_at = now
            self._times = {
                key: times for key, times in self._times.items() if times[-1] + key[1].seconds > now
            }
