"""Which workers and sweepers are alive: each leaves a sign of life in Redis that fades by itself."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import redis
import structlog
from django.conf import settings

log = structlog.get_logger(__name__)

BEAT_S = 3.0
FADES_AFTER_S = 12
SOCKET_TIMEOUT_S = 2.0
WORKER = "worker"
SWEEPER = "sweeper"


@dataclass
class Pulse:
    """The signs of life of one process: `start()` them once it is ready, `stop()` takes the last one away."""

    part: str
    name: str
    _stopped: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Leaves the first sign at once and more from a thread of its own, until `stop()`."""
        self._leave_sign()
        threading.Thread(target=self._beat, name=f"pulse-{self.part}", daemon=True).start()

    def stop(self) -> None:
        """Ends the thread and takes the sign away, so that nobody counts on this process any more."""
        self._stopped.set()
        try:
            with _redis() as client:
                client.delete(_key(self.part, self.name))
        except redis.RedisError:
            log.info("sign of life left to fade", part=self.part, name=self.name)

    def _beat(self) -> None:
        while not self._stopped.wait(BEAT_S):
            self._leave_sign()

    def _leave_sign(self) -> None:
        try:
            with _redis() as client:
                client.set(_key(self.part, self.name), "alive", ex=FADES_AFTER_S)
        except redis.RedisError:
            log.debug("no sign of life: Redis is away", part=self.part)


def living(part: str) -> list[str]:
    """The names of the workers or sweepers that are alive; redis.RedisError when Redis is away."""
    prefix = _key(part, "")
    with _redis() as client:
        return sorted(key.decode().removeprefix(prefix) for key in client.scan_iter(match=f"{prefix}*", count=1000))


def _key(part: str, name: str) -> str:
    return f"{settings.GADGET_QUEUE}:alive:{part}:{name}"


def _redis() -> redis.Redis:
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=SOCKET_TIMEOUT_S, socket_connect_timeout=SOCKET_TIMEOUT_S
    )
