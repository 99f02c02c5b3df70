"""Rate limits: a period never contains more calls than the limit, no matter when the period
begins."""

from __future__ import annotations

from agents.platform.rate_limits import count_or_wait
from tools.caches import clear_caches
from tools.contract import RateLimit
from tools.toolbox import ProcessRateLimiter

THREE, ONE = RateLimit(3, 60), RateLimit(1, 60)


class Clock:
    """A clock that a test sets."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_the_start_of_a_new_minute_allows_no_extra_calls() -> None:
    clock = Clock(59.0)
    limiter = ProcessRateLimiter(clock)
    assert [limiter.seconds_to_wait("key", THREE) for _ in range(3)] == [0, 0, 0]
    clock.now = 61.0
    assert limiter.seconds_to_wait("key", THREE) == 58, (
        "a new minute of the clock, but only 2 s later"
    )
    assert limiter.seconds_to_wait("other key", THREE) == 0
    clock.now = 119.0
    assert limiter.seconds_to_wait("key", THREE) == 0


def test_each_call_counts_for_a_minute_from_its_start() -> None:
    clock = Clock(0.0)
    limiter = ProcessRateLimiter(clock)
    for clock.now in (0.0, 10.0, 20.0):
        assert limiter.seconds_to_wait("key", THREE) == 0
    clock.now = 30.0
    assert limiter.seconds_to_wait("key", THREE) == 30, "until the first one's minute is over"
    clock.now = 60.0
    assert limiter.seconds_to_wait("key", THREE) == 0
    assert limiter.seconds_to_wait("key", THREE) == 10, "until the second one's is"


def test_a_refused_call_does_not_delay_later_ones() -> None:
    clock = Clock(0.0)
    limiter = ProcessRateLimiter(clock)
    limiter.seconds_to_wait("key", ONE)
    for clock.now in (10.0, 30.0, 59.5):
        assert limiter.seconds_to_wait("key", ONE) > 0
    clock.now = 60.0
    assert limiter.seconds_to_wait("key", ONE) == 0


def test_keys_without_recent_calls_are_forgotten_after_a_minute() -> None:
    clock = Clock(0.0)
    limiter = ProcessRateLimiter(clock)
    for number in range(100):
        limiter.seconds_to_wait(f"address {number}", THREE)
    clock.now = 61.0
    limiter.seconds_to_wait("key", THREE)
    assert [key for key, _ in limiter._times] == ["key"]


def test_each_limit_of_a_key_has_its_own_period() -> None:
    clock = Clock(0.0)
    limiter = ProcessRateLimiter(clock)
    hourly = RateLimit(1, 3600)
    assert [limiter.seconds_to_wait("key", limit) for limit in (ONE, hourly)] == [0, 0]
    clock.now = 61.0
    assert limiter.seconds_to_wait("key", ONE) == 0, "its minute is over"
    assert limiter.seconds_to_wait("key", hourly) == 3539, (
        "an hour is remembered for longer than a minute"
    )


def test_the_counts_of_every_limiter_are_cleared_with_the_caches() -> None:
    limiter = ProcessRateLimiter(Clock(0.0))
    assert limiter.seconds_to_wait("key", ONE) == 0
    assert limiter.seconds_to_wait("key", ONE) > 0
    clear_caches()
    assert limiter.seconds_to_wait("key", ONE) == 0


def test_a_wait_is_returned_in_whole_seconds() -> None:
    assert [count_or_wait("a test's key", 1) for _ in range(2)] == [0, 60]
    assert [count_or_wait("a test's key", 1, 3600) for _ in range(2)] == [0, 3600]
