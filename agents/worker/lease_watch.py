"""Find leases that are no longer renewed, measured by this process's own clock, because the
database's clock may be set back."""

from collections.abc import Iterable

from agents.runs.engine.timing import timing
from agents.runs.queries.due import ObservedLease


class LeaseWatch:
    """Remembers when each lease was first seen; a renewed lease is treated as a new lease."""

    def __init__(self) -> None:
        self._since: dict[ObservedLease, float] = {}

    def update(self, leases: Iterable[ObservedLease], now: float) -> list[ObservedLease]:
        """Record the current leases, and return the leases that have not been renewed for longer
        than a lease is valid.

        Args:
            now: the time of `clock_s` before the leases were read.
        """
        self._since = {lease: self._since.get(lease, now) for lease in leases}
        duration = timing().lease.total_seconds()
        return [lease for lease, since in self._since.items() if now - since > duration]
