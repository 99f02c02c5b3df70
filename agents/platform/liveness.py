"""Signs of life: workers and sweepers renew expiring keys in Redis, and each supervised process
touches a heartbeat file."""

from __future__ import annotations

import math
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

SIGN_INTERVAL_S = 3.0
SIGN_TTL_S = 12
MISSING_WINDOW_S = 600
"""The number of seconds for which a vanished process is reported as missing."""
REDIS = "redis"
WORKER = "worker"
SWEEPER = "sweeper"
HEARTBEAT_S = 0.5


def start_heartbeat() -> None:
    """Touch the heartbeat file from a thread, if the supervisor has named such a file. A process
    that hangs stops touching it."""
    if name := settings.HEARTBEAT_FILE:
        threading.Thread(target=_run, args=(Path(name),), name="heartbeat", daemon=True).start()


def _run(file: Path) -> None:
    while True:
        try:
            file.touch()
        except OSError as error:
            log.warning("no heartbeat", file=str(file), error=str(error))
        time.sleep(HEARTBEAT_S)


@dataclass
class SignOfLife:
    """The expiring key of one process in Redis. Call `start()` once the process is ready, and
    `stop()` before it ends."""

    kind: str
    name: str
    _stopped: threading.Event = field(default_factory=threading.Event)
    _since: float = field(default_factory=time.time)

    def start(self) -> None:
        """Write the first sign now, and renew it in a thread until `stop()`."""
        self._write_sign()
        threading.Thread(target=self._run, name=f"pulse-{self.kind}", daemon=True).start()

    def stop(self) -> None:
        """End the thread and remove the sign, so that the process is no longer counted as alive,
        and is not reported as missing."""
        self._stopped.set()
        try:
            with connect_redis() as client:
                client.delete(_build_key(self.kind, self.name))
                client.zrem(_build_key("lives", self.kind), self._life)
        except redis.RedisError:
            log.info("sign of life left to expire", kind=self.kind, name=self.name)

    def _run(self) -> None:
        while not self._stopped.wait(SIGN_INTERVAL_S):
            self._write_sign()

    def _write_sign(self) -> None:
        try:
            with connect_redis() as client:
                client.set(_build_key(self.kind, self.name), "alive", ex=SIGN_TTL_S)
                client.zadd(_build_key("lives", self.kind), {self._life: time.time()})
                client.zremrangebyscore(
                    _build_key("lives", self.kind), 0, time.time() - MISSING_WINDOW_S
                )
        except redis.RedisError:
            log.debug("no sign of life: Redis is unavailable", kind=self.kind)

    @property
    def _life(self) -> str:
        """The start time and name of the process, as a member of a sorted set; the member's score
        is the time of the last sign."""
        return f"{self._since} {self.name}"


def list_alive(kind: str) -> list[str]:
    """Return the names of the workers or sweepers that are alive.

    Raises:
        redis.RedisError: Redis is unavailable.
    """
    prefix = _build_key(kind, "")
    with connect_redis() as client:
        return sorted(
            key.decode().removeprefix(prefix)
            for key in client.scan_iter(match=f"{prefix}*", count=1000)
        )


@dataclass(frozen=True)
class Presence:
    """The workers and sweepers that are alive; the numbers are None while Redis is unavailable.

    Attributes:
        workers_alive: the number of workers whose sign has not expired.
        workers_seen: the maximum number of workers alive at the same time in the last ten minutes.
            Workers that shut down properly are left out, and a vanished worker and its replacement
            are counted only once.
        missing: the unavailable ones among redis, worker and sweeper.
        names: the names of the processes that are alive, by kind.
    """

    workers_alive: int | None
    workers_seen: int | None
    missing: tuple[str, ...]
    names: Mapping[str, list[str]] = field(default_factory=dict)


def load_presence() -> Presence:
    """Find the processes that are alive now."""
    try:
        names = {kind: list_alive(kind) for kind in (WORKER, SWEEPER)}
        with connect_redis() as client:
            lives = client.zrange(_build_key("lives", WORKER), 0, -1, withscores=True)
    except redis.RedisError:
        return Presence(None, None, (REDIS,))
    alive = set(names[WORKER])
    missing = tuple(kind for kind, found in names.items() if not found)
    return Presence(len(alive), max(len(alive), _count_most_at_once(lives, alive)), missing, names)


def _count_most_at_once(lives: list[tuple[bytes, float]], alive: set[str]) -> int:
    """Compute the maximum number of processes that were alive at the same time, from their start
    times and last signs.

    A process that is alive now has not ended, although its last sign is a few seconds old.
    """
    changes = []
    for life, last in lives:
        since, _, name = life.decode().partition(" ")
        changes += [(float(since), 1), (math.inf if name in alive else last, -1)]
    most = now = 0
    for _, change in sorted(changes, key=lambda each: (each[0], -each[1])):
        now += change
        most = max(most, now)
    return most


def _build_key(kind: str, name: str) -> str:
    return f"{settings.GADGET_QUEUE}:alive:{kind}:{name}"
