"""Find due runs in the database, so that work continues while the queue is down."""

import logging
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import connection

from agents.platform.error_boundary import log_and_continue
from agents.runs.engine import lease
from agents.runs.engine.timing import timing
from agents.runs.queries.due import DUE_RUNS

logger = logging.getLogger(__name__)


class RunPoller(threading.Thread):
    """Drives the runs that are due at two polls in a row, which means that no worker got them from
    the queue.

    Args:
        slots: the maximum number of runs that this worker drives at a time.
        drive: drives one run if it is still free.
    """

    def __init__(self, slots: int, drive: Callable[[int], None]) -> None:
        super().__init__(name="gadget-run-poller", daemon=True)
        self._slots = slots
        self._drive = drive
        self._seen_due: frozenset[int] = frozenset()
        self._driving: set[int] = set()
        self._drivers = ThreadPoolExecutor(slots, thread_name_prefix="driver")
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.wait(timing().poll_s):
            with log_and_continue("polling for due runs"):
                self.poll()
            connection.close()

    def poll(self) -> int:
        """Start driving overlooked runs, as many as there are free slots; return their number."""
        free = 0 if lease.is_shutting_down() else self._slots - lease.count_held_runs()
        due = frozenset(row.pk for row in DUE_RUNS.fetch_all()) if free > 0 else frozenset()
        overlooked = (due & self._seen_due) - self._driving
        self._seen_due = due
        # At random, so that several workers rarely choose the same runs.
        chosen = random.sample(sorted(overlooked), min(len(overlooked), max(free, 0)))
        self._driving.update(chosen)
        for pk in chosen:
            self._drivers.submit(self._drive_run, pk)
        return len(chosen)

    def _drive_run(self, run_id: int) -> None:
        """Drive a run. No poll chooses it again before this returns: otherwise a slow database
        would make the same runs pile up."""
        try:
            self._drive(run_id)
        finally:
            self._driving.discard(run_id)

    def stop(self) -> None:
        """Start no more runs, and wait for the runs in progress."""
        self._stopping.set()
        self._drivers.shutdown(cancel_futures=True)
