"""Work that a sweeper repeats every hour or day, besides its sweeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agents.accounts import audit
from agents.accounts.logins.sessions import forget_expired_sessions
from agents.platform.error_boundary import log_and_continue
from agents.webhooks.changes import forget_old_deliveries

HOUR_S = 3600.0


@dataclass
class Upkeep:
    """Does each task when it is due; at the start, all tasks are due. A failure is logged and does
    not affect other tasks."""

    clock: Callable[[], float] = time.monotonic
    _due: dict[str, float] = field(default_factory=dict)

    def do_what_is_due(self) -> None:
        for what, every_s, act in _TASKS:
            now = self.clock()
            if now >= self._due.get(what, now):
                self._due[what] = now + every_s
                with log_and_continue(what):
                    act()


_TASKS: tuple[tuple[str, float, Callable[[], object]], ...] = (
    ("logging the audit's heads", 24 * HOUR_S, audit.log_heads),
    ("forgetting old deliveries", HOUR_S, forget_old_deliveries),
    ("forgetting expired sessions", HOUR_S, forget_expired_sessions),
)
