"""Limits per minute: no span of 60 seconds has more than the limit, wherever it begins."""

from __future__ import annotations

from agents.platform.minute_counter import MinuteCounter


class Clock:
    """A clock that a test sets."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_the_turn_of_a_minute_allows_nothing_more() -> None:
    clock = Clock(59.0)
    counter = MinuteCounter(clock)
    assert [counter.count_or_wait("key", 3) for _ in range(3)] == [0, 0, 0]
    clock.now = 61.0
    assert counter.count_or_wait("key", 3) == 58, "a new minute of the clock, but only 2 s later"
    assert counter.count_or_wait("other key", 3) == 0
    clock.now = 119.0
    assert counter.count_or_wait("key", 3) == 0


def test_what_was_refused_does_not_delay_what_comes_later() -> None:
    clock = Clock(0.0)
    counter = MinuteCounter(clock)
    counter.count_or_wait("key", 1)
    for clock.now in (10.0, 30.0, 59.5):
        assert counter.count_or_wait("key", 1) > 0
    clock.now = 60.0
    assert counter.count_or_wait("key", 1) == 0


def test_subjects_of_strangers_are_forgotten_after_a_minute() -> None:
    clock = Clock(0.0)
    counter = MinuteCounter(clock)
    for number in range(100):
        counter.count_or_wait(f"address {number}", 3)
    clock.now = 61.0
    counter.count_or_wait("key", 3)
    assert list(counter._times) == ["key"]
