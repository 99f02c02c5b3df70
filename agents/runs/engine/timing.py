"""Every duration that the engine waits for, and the clock of leases; tests scale the durations."""

import time
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from django.conf import settings

_RUNS_IN_SLEEP: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
"""Linux has the first; the second runs on in sleep on macOS. A paused virtual machine may stop either."""


def clock_s() -> float:
    """Return the seconds since some moment in the past."""
    return time.monotonic() if _RUNS_IN_SLEEP is None else time.clock_gettime(_RUNS_IN_SLEEP)


@dataclass(frozen=True)
class Timing:
    """Seconds, unless the name says otherwise; `scale` multiplies what the machine waits for, not what people do."""

    scale: float = 1.0

    @property
    def lease(self) -> timedelta:
        return timedelta(seconds=30 * self.scale)

    @property
    def heartbeat_s(self) -> float:
        return 5 * self.scale

    @property
    def cancel_poll_s(self) -> float:
        return 1 * self.scale

    @property
    def sweep_s(self) -> float:
        return 1 * self.scale

    @property
    def look_s(self) -> float:
        """Return the seconds between a worker's looks for due runs that the queue has not delivered."""
        return 1 * self.scale

    @property
    def apart(self) -> timedelta:
        """Return the time span over which runs that repeatedly lost their worker restart, each at a random moment."""
        return timedelta(seconds=30 * self.scale)

    @property
    def hint_again(self) -> timedelta:
        return timedelta(seconds=10 * self.scale)

    @property
    def count_again(self) -> timedelta:
        """How long the figures are left alone once everything was counted."""
        return timedelta(seconds=10 * self.scale)

    @property
    def slice_s(self) -> float:
        """How long one job may drive one run before others get their turn."""
        return 60 * self.scale

    @property
    def slack_s(self) -> float:
        """How much longer than its own timeouts a step may take before its lease is no longer renewed."""
        return 30 * self.scale

    @property
    def start_within(self) -> timedelta:
        """An approval that has not started so long after its grace is asked again."""
        return timedelta(seconds=15 * 60 * self.scale)

    @property
    def preview_s(self) -> float:
        return 10.0

    @property
    def patience(self) -> timedelta:
        """How long a provider may ask for patience."""
        return timedelta(seconds=15 * 60 * self.scale)

    def backoff(self, tries: int, retry_after_s: float | None) -> timedelta:
        """How long to leave a provider alone after `tries` failures in a row."""
        own = min(2.0**tries, 60.0)
        return timedelta(seconds=max(own, retry_after_s or 0.0) * self.scale)


PATIENCE_TRIES = 6
CRASHES = 5
ATTEMPTS = 3
DRIFTS = 3
OPEN_CARDS = 20
DENIED_PASSES = 3


@lru_cache(maxsize=1)
def timing() -> Timing:
    """The installation's timing, from the setting GADGET_TIMING_SCALE."""
    return Timing(settings.GADGET_TIMING_SCALE)
