"""Wait for a condition, never for a fixed time."""

import time
from collections.abc import Callable

POLL_S = 0.03


def await_that(
    condition: Callable[[], object], what: str | Callable[[], str], seconds: float = 60
) -> float:
    """Wait for the condition, and return the seconds that it took.

    Raises:
        AssertionError: the condition did not become true in time; the error text includes `what`.
    """
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise AssertionError(
                f"timed out after {seconds:g} s: {what() if callable(what) else what}"
            )
        time.sleep(POLL_S)
    return time.monotonic() - began
