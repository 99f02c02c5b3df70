"""A clock for leases: it never goes back, and it runs on while the machine sleeps."""

import time

_RUNS_IN_SLEEP: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
"""Linux has the first; the second runs on in sleep on macOS. A paused virtual machine may stop either."""


def now_s() -> float:
    """Return the seconds since some moment in the past."""
    return time.monotonic() if _RUNS_IN_SLEEP is None else time.clock_gettime(_RUNS_IN_SLEEP)
