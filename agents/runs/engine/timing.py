"""The engine's durations and limits, and the clock of leases; tests scale the durations."""

import time
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from django.conf import settings

MAX_PROVIDER_TRIES = 6
MAX_CRASHES = 5
MAX_ATTEMPTS = 3
"""Attempts at a read or a draft whose workers are lost."""
MAX_DRIFTS = 3
"""Cards that a call's guards may send back before the call fails."""
MAX_OPEN_CARDS = 20
MAX_OPEN_TICKETS = 100
"""Open cards of one run of an agent that runs elsewhere."""
MAX_DENIED_PASSES = 3
"""Passes in a row that a person may deny before the run ends."""
MAX_GRACE_S = 60
"""Longest time for which an approval can be undone."""
_CLOCK_ID: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
"""A clock that includes sleep: the first on Linux, the second on macOS. A paused virtual machine
may stop either."""


def clock_s() -> float:
    """Return the seconds since some moment in the past."""
    return time.monotonic() if _CLOCK_ID is None else time.clock_gettime(_CLOCK_ID)


@dataclass(frozen=True)
class Timing:
    """Seconds, unless the name says otherwise; `scale` multiplies the machine's waiting times, not
    those of people."""

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
    def poll_s(self) -> float:
        """Seconds between a worker's polls for due runs that the queue has not delivered."""
        return 1 * self.scale

    @property
    def restart_spread(self) -> timedelta:
        """Time over which runs that lost their worker more than once restart, each at a random
        moment."""
        return timedelta(seconds=30 * self.scale)

    @property
    def hint_interval(self) -> timedelta:
        """Shortest time between two hints for one run."""
        return timedelta(seconds=10 * self.scale)

    @property
    def count_pause(self) -> timedelta:
        """Pause in counting the figures once everything was counted."""
        return timedelta(seconds=10 * self.scale)

    @property
    def slice_s(self) -> float:
        """Longest time that one job drives one run before it yields to others."""
        return 60 * self.scale

    @property
    def slack_s(self) -> float:
        """Time that a step may take beyond its own timeouts before its lease is no longer
        renewed."""
        return 30 * self.scale

    @property
    def approval_validity(self) -> timedelta:
        """Validity of an approval after its grace period; a call that has not started by then needs
        another one."""
        return timedelta(seconds=15 * 60 * self.scale)

    def get_validity(self, origin: str) -> timedelta:
        """Return the validity of an approval in a run of this origin: the receipt of an ask must
        reach its agent."""
        return timedelta(hours=1) if origin == "ask" else self.approval_validity

    @property
    def session_idle(self) -> timedelta:
        """Time without a request after which the run of an agent that runs elsewhere ends, if
        nothing of it is open."""
        return timedelta(minutes=30)

    @property
    def preview_s(self) -> float:
        return 10.0

    @property
    def patience(self) -> timedelta:
        """Longest time over which a failing provider is tried again."""
        return timedelta(seconds=15 * 60 * self.scale)

    def backoff(self, tries: int, retry_after_s: float | None) -> timedelta:
        """Return the pause after `tries` consecutive failures."""
        own = min(2.0**tries, 60.0)
        return timedelta(seconds=max(own, retry_after_s or 0.0) * self.scale)


@lru_cache(maxsize=1)
def timing() -> Timing:
    """Return the installation's timing, from the setting GADGET_TIMING_SCALE."""
    return Timing(settings.GADGET_TIMING_SCALE)
