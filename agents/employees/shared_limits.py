"""The result cache and the rate limits of tools. They are in Redis, so that all workers share them.

While Redis is unavailable, nothing is cached, and each worker counts alone.
"""

import json
from functools import lru_cache
from typing import Any

import redis
from django.conf import settings

from agents.platform.rate_limits import SharedRateLimiter
from tools.contract import canonical_json
from tools.toolbox import MAX_CACHED_CHARACTERS, Guards

SOCKET_TIMEOUT_S = 2.0


def get_shared_guards() -> Guards:
    """Return this process's result cache and rate limits; every call returns the same instance."""
    return _get_guards(settings.REDIS_URL)


@lru_cache(maxsize=1)
def _get_guards(url: str) -> Guards:
    return connect_guards(url)


def connect_guards(url: str) -> Guards:
    """Build guards with their own connection to the Redis at this address."""
    client = redis.Redis.from_url(
        url, socket_timeout=SOCKET_TIMEOUT_S, socket_connect_timeout=SOCKET_TIMEOUT_S
    )
    return Guards(_RedisCache(client), SharedRateLimiter(client))


class _RedisCache:
    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def get(self, key: str) -> dict[str, Any] | None:
        try:
            stored = self._client.get(_build_key(key))
        except redis.RedisError:
            return None
        found: dict[str, Any] | None = json.loads(stored) if stored else None
        return found

    def put(self, key: str, result: dict[str, Any], seconds: float) -> None:
        text = canonical_json(result)
        if len(text) > MAX_CACHED_CHARACTERS:
            return
        try:
            self._client.set(_build_key(key), text, px=max(1, round(seconds * 1000)))
        except redis.RedisError:
            return


def _build_key(key: str) -> str:
    return f"{settings.GADGET_QUEUE}:result:{key}"
