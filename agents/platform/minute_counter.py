"""Count what comes in a minute, to refuse a flood. The count is this process's own, so it costs no query."""

import math
import time
from collections import Counter
from threading import Lock

MINUTE_S = 60
_lock = Lock()
_counts: Counter[str] = Counter()
"""The counts of the minute `_minute`; those of earlier minutes are forgotten."""
_minute = 0


def count_in_minute(subject: str) -> tuple[int, int]:
    """Count one more of this subject; return its number in the current minute, and the seconds until the next."""
    global _minute  # noqa: PLW0603 - the counts of one process, like those of a cache
    now = time.time()
    with _lock:
        if _minute != math.floor(now / MINUTE_S):
            _minute = math.floor(now / MINUTE_S)
            _counts.clear()
        _counts[subject] += 1
        return _counts[subject], math.ceil(MINUTE_S - now % MINUTE_S)


def forget_counts() -> None:
    """Forget all counts, so that a test does not see those of another one."""
    with _lock:
        _counts.clear()
