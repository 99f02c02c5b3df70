"""The result cache and the rate limits of tools, in Redis, so that all workers share them.

While Redis is unavailable, nothing is cached, and each worker counts alone.
"""

import json
import threading
import time
import uuid
from collections import deque
from functools import lru_cache
from typing import Any

import redis
from django.conf import settings

from tools.contract import RateLimit, canonical_json
from tools.toolbox import MAX_CACHED_CHARACTERS, Guards

SOCKET_TIMEOUT_S = 2.0

# Each call within the window is a member of a sorted set; its score is the time in ms by Redis's clock.
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


def get_shared_guards() -> Guards:
    """Return the guards of this process, always the same instance."""
    return _get_guards(settings.REDIS_URL)


@lru_cache(maxsize=1)
def _get_guards(url: str) -> Guards:
    return connect_guards(url)


def connect_guards(url: str) -> Guards:
    """Build guards with a client of their own for the Redis at this address."""
    client = redis.Redis.from_url(url, socket_timeout=SOCKET_TIMEOUT_S, socket_connect_timeout=SOCKET_TIMEOUT_S)
    return Guards(_RedisCache(client), _RedisLimiter(client))


class _RedisCache:
    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def get(self, key: str) -> dict[str, Any] | None:
        try:
            stored = self._client.get(_build_redis_key("result", key))
        except redis.RedisError:
            return None
        found: dict[str, Any] | None = json.loads(stored) if stored else None
        return found

    def put(self, key: str, result: dict[str, Any], seconds: float) -> None:
        text = canonical_json(result)
        if len(text) > MAX_CACHED_CHARACTERS:
            return
        try:
            self._client.set(_build_redis_key("result", key), text, px=max(1, round(seconds * 1000)))
        except redis.RedisError:
            return


class _RedisLimiter:
    def __init__(self, client: redis.Redis) -> None:
        self._take = client.register_script(_TAKE_SCRIPT)
        self._fallback = _ProcessLimiter()

    def seconds_to_wait(self, key: str, limit: RateLimit) -> float:
        try:
            arguments: list[str | int] = [round(limit.seconds * 1000), limit.calls, uuid.uuid4().hex]
            return float(self._take(keys=[_build_redis_key("rate", key)], args=arguments)) / 1000
        except redis.RedisError:
            return self._fallback.seconds_to_wait(key, limit)


class _ProcessLimiter:
    """Counts the calls of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[str, deque[float]] = {}

    def seconds_to_wait(self, key: str, limit: RateLimit) -> float:
        now = time.monotonic()
        with self._lock:
            calls = self._calls.setdefault(key, deque())
            while calls and calls[0] <= now - limit.seconds:
                calls.popleft()
            if len(calls) < limit.calls:
                calls.append(now)
                return 0.0
            return calls[0] + limit.seconds - now


def _build_redis_key(kind: str, key: str) -> str:
    return f"{settings.GADGET_QUEUE}:{kind}:{key}"
