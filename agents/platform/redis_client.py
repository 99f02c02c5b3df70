"""Connects to Redis for short questions: signs of life, and whether it answers."""

import redis
from django.conf import settings

TIMEOUT_S = 2.0


def connect_redis() -> redis.Redis:
    """Return a client that waits at most two seconds for each answer. Use it with `with`."""
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S)
