"""Shows which processes are alive: workers and sweepers leave expiring signs in Redis; all beat for a supervisor."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import redis
import structlog
from django.conf import settings

from agents.platform.redis_client import connect_redis

log = structlog.get_logger(__name__)

BEAT_S = 3.0
FADES_AFTER_S = 12
LATELY_S = 600
"""The time for which a vanished process counts as missing."""
REDIS = "redis"
WORKER = "worker"
SWEEPER = "sweeper"
HEARTBEAT_FILE = "HEARTBEAT_FILE"
"""The variable that names the file a process touches while its threads run."""
HEARTBEAT_S = 0.5


def beat_for_supervisor() -> None:
    """Show a supervisor that this process's threads still run, if it named a file for that."""
    if name := os.environ.get(HEARTBEAT_FILE):
        threading.Thread(target=_beat, args=(Path(name),), name="heartbeat", daemon=True).start()


def _beat(file: Path) -> None:
    while True:
        try:
            file.touch()
        except OSError as error:
            log.warning("no heartbeat", file=str(file), error=str(error))
        time.sleep(HEARTBEAT_S)


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
            with connect_redis() as client:
                client.delete(_key(self.part, self.name))
                client.zrem(_key("seen", self.part), self.name)
        except redis.RedisError:
            log.info("sign of life left to fade", part=self.part, name=self.name)

    def _beat(self) -> None:
        while not self._stopped.wait(BEAT_S):
            self._leave_sign()

    def _leave_sign(self) -> None:
        try:
            with connect_redis() as client:
                client.set(_key(self.part, self.name), "alive", ex=FADES_AFTER_S)
                client.zadd(_key("seen", self.part), {self.name: time.time()})
                client.zremrangebyscore(_key("seen", self.part), 0, time.time() - LATELY_S)
        except redis.RedisError:
            log.debug("no sign of life: Redis is away", part=self.part)


def living(part: str) -> list[str]:
    """The names of the workers or sweepers that are alive; redis.RedisError when Redis is away."""
    prefix = _key(part, "")
    with connect_redis() as client:
        return sorted(key.decode().removeprefix(prefix) for key in client.scan_iter(match=f"{prefix}*", count=1000))


@dataclass(frozen=True)
class Presence:
    """The processes that are alive; numbers of workers are None while Redis, which knows them, is unavailable.

    Attributes:
        workers_alive: workers that left a sign in the last seconds.
        workers_seen: these, plus workers that vanished in the last ten minutes without shutting down in order.
        missing: any of redis, worker and sweeper that is not there.
        names: the names of those that are alive, by part.
    """

    workers_alive: int | None
    workers_seen: int | None
    missing: tuple[str, ...]
    names: Mapping[str, list[str]] = field(default_factory=dict)


def look_around() -> Presence:
    """Look which processes are alive now."""
    try:
        names = {part: living(part) for part in (WORKER, SWEEPER)}
        with connect_redis() as client:
            seen = {name.decode() for name in client.zrange(_key("seen", WORKER), 0, -1)}
    except redis.RedisError:
        return Presence(None, None, (REDIS,))
    alive = set(names[WORKER])
    missing = tuple(part for part, found in names.items() if not found)
    return Presence(len(alive), len(alive | seen), missing, names)


def _key(part: str, name: str) -> str:
    return f"{settings.GADGET_QUEUE}:alive:{part}:{name}"
