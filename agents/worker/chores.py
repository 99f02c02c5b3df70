"""Work that each sweeper repeats every 30 to 60 seconds, in addition to the work whose due times
are in the database."""

from __future__ import annotations

import time
from collections.abc import Callable

from agents.platform.error_boundary import log_and_continue
from agents.policy.shadow import compare_all
from agents.runs.language_learning import LanguageLearner
from agents.runs.schedule_watch import correct_times
from agents.standing_grants.changes import end_changed
from agents.worker.clock_watch import correct_waits


class Chore:
    """A periodic piece of work, and the time of its next run in this sweeper."""

    def __init__(self, name: str, act: Callable[[], object], every_s: float) -> None:
        self._name, self._act, self._every_s = name, act, every_s
        self._due_at = 0.0

    def do_if_due(self) -> None:
        """Do the work if it is due; a failure is logged and does not delay anything else."""
        if time.monotonic() >= self._due_at:
            self._due_at = time.monotonic() + self._every_s
            with log_and_continue(self._name):
                self._act()


def build_chores() -> list[Chore]:
    """Build the chores of one sweeper; all chores are due immediately."""
    return [
        Chore("comparing drafts in shadow mode", compare_all, 30),
        Chore("correcting late schedules", correct_times, 60),
        Chore("correcting late waits", correct_waits, 60),
        Chore("learning languages", LanguageLearner().learn, 60),
        Chore("ending changed standing grants", end_changed, 30),
    ]
