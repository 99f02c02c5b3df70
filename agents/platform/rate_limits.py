"""Rate limits: within this process, or in Redis, where all workers count together."""

from __future__ import annotations

import math
import uuid

import redis
from django.conf import settings

from tools.contract import RateLimit
from tools.toolbox import ProcessRateLimiter

# Each call within the window is a member of a sorted set; its score is the time in ms by Redis's
# clock.
_TAKE_SCRIPT = """
local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local window = tonumber(ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
if redis.call('ZCARD', KEYS[1]) < tonumber(ARGV[2]) then
    redis.call('ZADD', KEYS[1], now, ARGV[3])
    redis.call('PEXPIRE', KEYS[1], window)
    return 0
end
local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return math.max(1, oldest[2] + window - now)
"""


class SharedRateLimiter:
    """Counts the calls of all processes; while Redis is unavailable, each process counts alone."""

    def __init__(self, client: redis.Redis) -> None:
        self._take = client.register_script(_TAKE_SCRIPT)
        self._fallback = ProcessRateLimiter()

    def seconds_to_wait(self, key: str, limit: RateLimit) -> float:
        """Count this call and return 0 if it may run; otherwise return the number of seconds until
        a call may run."""
        arguments: list[str | int] = [round(limit.seconds * 1000), limit.calls, uuid.uuid4().hex]
        try:
            return (
                float(self._take(keys=[f"{settings.GADGET_QUEUE}:rate:{key}"], args=arguments))
                / 1000
            )
        except redis.RedisError:
            return self._fallback.seconds_to_wait(key, limit)


_limiter = ProcessRateLimiter()


def count_or_wait(key: str, most: int, seconds: float = 60.0) -> int:
    """Count an event of this key in this process. Return 0 if it is within the limit; otherwise
    return the seconds to wait, rounded up.

    The limit is `most` events in `seconds`.
    """
    return math.ceil(_limiter.seconds_to_wait(key, RateLimit(most, seconds)))
