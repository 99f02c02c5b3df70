"""Lets workers look for due runs themselves, so that work continues while the queue does not."""

import logging
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import connection

from agents.platform.boundaries import surviving
from agents.platform.queries.sweeps import DUE_RUNS
from agents.runs.engine import lease
from agents.runs.engine.timing import timing

logger = logging.getLogger(__name__)


class Lookout(threading.Thread):
    """Drives runs that are due at two looks in a row: no worker got them from the queue.

    Args:
        slots: how many runs this worker drives at a time.
        drive: drives one run, if it is still free.
    """

    def __init__(self, slots: int, drive: Callable[[int], None]) -> None:
        super().__init__(name="gadget-lookout", daemon=True)
        self._slots = slots
        self._drive = drive
        self._seen: frozenset[int] = frozenset()
        self._taken: set[int] = set()
        self._drivers = ThreadPoolExecutor(slots, thread_name_prefix="driver")
        self._left = threading.Event()

    def run(self) -> None:
        while not self._left.wait(timing().look_s):
            with surviving("looking for due runs"):
                self.look()
            connection.close()

    def look(self) -> int:
        """Start to drive the runs left behind, as free slots allow; return how many."""
        free = 0 if lease.is_going_down() else self._slots - lease.count_held_runs()
        due = frozenset(row.pk for row in DUE_RUNS.rows()) if free > 0 else frozenset()
        stayed = (due & self._seen) - self._taken
        self._seen = due
        chosen = random.sample(sorted(stayed), min(len(stayed), max(free, 0)))  # other workers look as well
        self._taken.update(chosen)
        for pk in chosen:
            self._drivers.submit(self._drive_once, pk)
        return len(chosen)

    def _drive_once(self, run_id: int) -> None:
        """Drive a run that no look chooses again meanwhile: a slow database must not make a queue of the same runs."""
        try:
            self._drive(run_id)
        finally:
            self._taken.discard(run_id)

    def stop(self) -> None:
        """Start nothing more, and wait for the runs in progress."""
        self._left.set()
        self._drivers.shutdown(cancel_futures=True)
