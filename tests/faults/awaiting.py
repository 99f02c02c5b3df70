"""Waiting for a condition, never for a time."""

import time
from collections.abc import Callable

LOOK_EVERY_S = 0.03


def await_that(condition: Callable[[], object], what: str, seconds: float = 60) -> float:
    """Seconds until the condition held; AssertionError naming `what` if it does not in time."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"not within {seconds:g} s: {what}"
        time.sleep(LOOK_EVERY_S)
    return time.monotonic() - began
