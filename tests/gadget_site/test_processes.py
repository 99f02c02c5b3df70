"""The real parts start on the test database, find each other through Redis, and recover after Redis
was lost."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import redis

from tests.http import get
from tests.processes import Installation

pytestmark = pytest.mark.django_db(transaction=True)


def test_all_parts_become_ready_and_see_each_other(installation: Installation) -> None:
    installation.start_all(workers=2)
    response = get(f"{installation.url}/api/ready")
    told = {"status": "ready", "degraded": [], "workers_alive": 2, "workers_seen": 2}
    assert (response.status, response.json()) == (200, told)


def test_readiness_reports_a_missing_worker_after_the_only_worker_has_stopped(
    installation: Installation,
) -> None:
    installation.start_web()
    worker = installation.start_worker()
    assert "worker" not in degraded(installation)
    worker.stop()
    assert "worker" in degraded(installation)


def test_a_worker_receives_messages_again_within_seconds_after_redis_was_wiped(
    installation: Installation,
) -> None:
    worker = installation.start_worker()
    until(lambda: listeners(installation) == 1)
    installation.wipe_redis()
    began = time.monotonic()
    until(lambda: listeners(installation) == 1)
    assert time.monotonic() - began < 15
    assert worker.is_alive


def degraded(installation: Installation) -> list[str]:
    found: list[str] = get(f"{installation.url}/api/ready").json()["degraded"]
    return found


def listeners(installation: Installation) -> int:
    """Return the number of workers that listen to the queue."""
    with redis.Redis.from_url(installation.redis.url) as client:
        return sum(row["cmd"] == "brpop" for row in client.client_list())


def until(condition: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.02)
