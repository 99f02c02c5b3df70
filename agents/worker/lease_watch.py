"""Finds leases that nobody renews, by this process's own clock: the database's may have been set back."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from agents.platform.statements import Prepared
from agents.runs.engine.timing import timing
from agents.runs.models import Run, RunStatus

MOST_WATCHED = 10_000

_HELD = Prepared(
    lambda: (
        Run.objects.filter(status=RunStatus.RUNNING)
        .order_by("-lease_expires_at")  # those of a clock that was set back end last
        .values_list("pk", "lease_owner", "lease_epoch", "lease_expires_at")[:MOST_WATCHED]
    ),
    slots=(),
)


class ObservedLease(NamedTuple):
    """A lease as of one renewal; the next renewal makes a different one."""

    run_id: int
    owner: str
    epoch: int
    expires_at: datetime

    def is_of(self, run: Run) -> bool:
        """Return True if the run still has this lease, unrenewed."""
        mine = (run.pk, run.lease_owner, run.lease_epoch, run.lease_expires_at)
        return run.status == RunStatus.RUNNING and mine == tuple(self)


def read_held_leases() -> list[ObservedLease]:
    """Read the leases of all driven runs, at most MOST_WATCHED."""
    return [ObservedLease(*row) for row in _HELD.rows()]


class LeaseWatch:
    """Remembers how long each lease has gone without renewal, and forgets leases that are gone."""

    def __init__(self) -> None:
        self._since: dict[ObservedLease, float] = {}

    def see(self, leases: Iterable[ObservedLease], now: float) -> list[ObservedLease]:
        """Return the leases that were seen unrenewed for longer than a lease lasts.

        Args:
            now: the time of `clock` when they were read.
        """
        self._since = {lease: self._since.get(lease, now) for lease in leases}
        lasts = timing().lease.total_seconds()
        return [lease for lease, since in self._since.items() if now - since > lasts]
