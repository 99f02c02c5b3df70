"""Waiting for a condition, never for a time."""

import time
from collections.abc import Callable

LOOK_EVERY_S = 0.03


def await_that(condition: Callable[[], object], what: str | Callable[[], str], seconds: float = 60) -> float:
    """Seconds until the condition held; AssertionError with `what` should have been if it does not in time."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise AssertionError(f"not within {seconds:g} s: {what() if callable(what) else what}")
        time.sleep(LOOK_EVERY_S)
    return time.monotonic() - began
