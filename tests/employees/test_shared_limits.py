"""Cached results and rate limits in a real Redis, shared by all workers."""

from __future__ import annotations

import threading
import time

import pytest

from agents.employees.shared_limits import connect_guards
from tests.features import feature
from tools.contract import RateLimit
from tools.toolbox import MAX_CACHED_CHARACTERS, Guards

pytestmark = pytest.mark.once


@pytest.fixture
def workers(redis_url: str) -> list[Guards]:
    """Two workers' views of the same Redis."""
    return [connect_guards(redis_url) for _ in range(2)]


def waits(guards: Guards, key: str, limit: RateLimit) -> float:
    assert guards.limiter is not None
    return guards.limiter.seconds_to_wait(key, limit)


@feature("Execution", "Rate limits are counted over all workers", "agents/platform/rate_limits.py")
def test_all_workers_together_allow_exactly_the_limited_number_of_calls(
    workers: list[Guards],
) -> None:
    limit, passed = RateLimit(10, 60), []
    start = threading.Barrier(20)

    def take(guards: Guards) -> None:
        start.wait()
        passed.extend([waits(guards, "1:sample", limit) == 0 for _ in range(3)])

    threads = [threading.Thread(target=take, args=(workers[number % 2],)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(passed), sum(passed)) == (60, 10)
    assert 55 < waits(workers[0], "1:sample", limit) <= 60
    assert waits(workers[0], "2:sample", limit) == 0


def test_the_next_call_is_allowed_exactly_after_the_returned_wait(workers: list[Guards]) -> None:
    limit = RateLimit(1, 0.3)
    assert waits(workers[0], "1:soon", limit) == 0
    wait_s = waits(workers[1], "1:soon", limit)
    assert 0 < wait_s <= 0.3
    time.sleep(wait_s)
    assert waits(workers[1], "1:soon", limit) == 0


def test_workers_share_a_result_until_it_expires_unless_it_is_too_large(
    workers: list[Guards],
) -> None:
    first, second = (guards.cache for guards in workers)
    assert first is not None
    assert second is not None
    result = {
        "success": True,
        "data": {"ü": [1.5, None]},
        "summary": "S",
        "markdown": "",
        "metadata": {},
    }
    first.put("a", result, 60)
    first.put("soon", result, 0.05)
    assert second.get("a") == result
    deadline = time.monotonic() + 5
    while second.get("soon") is not None:
        assert time.monotonic() < deadline
    first.put("huge", {**result, "data": "x" * MAX_CACHED_CHARACTERS}, 60)
    assert second.get("huge") is None


def test_without_redis_results_are_not_cached_and_each_worker_counts_only_its_own_calls() -> None:
    guards = connect_guards("redis://127.0.0.1:9/0")
    assert guards.cache is not None
    guards.cache.put("a", {"data": 1}, 60)
    assert guards.cache.get("a") is None
    assert waits(guards, "1:alone", RateLimit(1, 60)) == 0
    assert 59 < waits(guards, "1:alone", RateLimit(1, 60)) <= 60
