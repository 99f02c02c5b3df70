"""The engine's durations and limits, and the clock for leases; tests shorten the durations."""

import time
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from django.conf import settings

MAX_PROVIDER_TRIES = 6
MAX_CRASHES = 5
MAX_ATTEMPTS = 3
"""The maximum number of attempts at a read or a draft if workers are lost."""
MAX_DRIFTS = 3
"""The number of cards of a call that may become outdated before the call fails."""
MAX_OPEN_CARDS = 20
MAX_OPEN_TICKETS = 100
"""The maximum number of open cards in the run of a remote agent, and of open tickets of the agent's
key."""
MAX_DENIED_PASSES = 3
"""The number of passes in a row with denied cards of one tool after which the run ends."""
MAX_GRACE_S = 60
"""The maximum number of seconds for which an approval can be undone."""
_CLOCK_ID: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
"""The id of a clock that also runs while a Linux or macOS computer sleeps; None if the system has
no such clock. In a paused virtual machine, the clock may stop."""


def clock_s() -> float:
    """Return the seconds on a clock that only moves forward, from an unspecified start."""
    return time.monotonic() if _CLOCK_ID is None else time.clock_gettime(_CLOCK_ID)


@dataclass(frozen=True)
class Timing:
    """Durations, in seconds if the name ends with `_s`; `scale` multiplies most of them, but not
    the time limits for people and agents."""

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
        """The number of seconds between a worker's polls for due runs that the queue has not
        delivered."""
        return 1 * self.scale

    @property
    def restart_spread(self) -> timedelta:
        """The period in which runs that lost their worker more than once restart, each at a random
        moment."""
        return timedelta(seconds=30 * self.scale)

    @property
    def hint_interval(self) -> timedelta:
        """The shortest time between two hints for one run."""
        return timedelta(seconds=10 * self.scale)

    @property
    def count_pause(self) -> timedelta:
        """The pause between two rounds of counting figures, once everything is counted."""
        return timedelta(seconds=10 * self.scale)

    @property
    def slice_s(self) -> float:
        """The longest time that a job drives a run before it yields to other runs."""
        return 60 * self.scale

    @property
    def slack_s(self) -> float:
        """The time that a step may take beyond its own timeouts before its lease is no longer
        renewed."""
        return 30 * self.scale

    @property
    def approval_validity(self) -> timedelta:
        """The time for which an approval is valid after its grace period; a call that has not
        started by then needs another approval."""
        return timedelta(seconds=15 * 60 * self.scale)

    def get_validity(self, origin: str) -> timedelta:
        """Return the time for which an approval in a run of this origin is valid. It is longer for
        an ask, whose receipt must reach its agent."""
        return timedelta(hours=1) if origin == "ask" else self.approval_validity

    @property
    def session_idle(self) -> timedelta:
        """The time after which a remote agent's run ends if no request has come and no call is
        open."""
        return timedelta(minutes=30)

    @property
    def preview_s(self) -> float:
        return 10.0

    @property
    def patience(self) -> timedelta:
        """The longest time for which a failing provider is tried again."""
        return timedelta(seconds=15 * 60 * self.scale)

    def backoff(self, tries: int, retry_after_s: float | None) -> timedelta:
        """Return the pause after `tries` consecutive failures, at least as long as the server asks
        for."""
        own = min(2.0**tries, 60.0)
        return timedelta(seconds=max(own, retry_after_s or 0.0) * self.scale)


@lru_cache(maxsize=1)
def timing() -> Timing:
    """Return the installation's timing, from the setting GADGET_TIMING_SCALE."""
    return Timing(settings.GADGET_TIMING_SCALE)
