"""Count what comes in a minute, to refuse a flood. The count is this process's own, so it costs no query."""

import math
import time

from django.core.cache import cache

MINUTE_S = 60


def count_in_minute(subject: str) -> tuple[int, int]:
    """Count one more of this subject; return its number in the current minute, and the seconds until the next."""
    now = time.time()
    key = f"{subject}:{math.floor(now / MINUTE_S)}"
    cache.add(key, 0, MINUTE_S)
    return cache.incr(key), math.ceil(MINUTE_S - now % MINUTE_S)
