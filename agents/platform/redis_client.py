"""Connections to Redis for short requests, such as signs of life."""

import redis
from django.conf import settings

TIMEOUT_S = 2.0


def connect_redis() -> redis.Redis:
    """Return a client that waits at most two seconds for each response. Use the client in a `with`
    block, which closes it."""
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S
    )
