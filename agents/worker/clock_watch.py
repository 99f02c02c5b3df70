"""Correct waits that are longer than the code allows: the database's clock was ahead when they were
set.

Without this, work would wait for as long as the clock was ahead, unnoticed.
`runs/schedule_watch.py` does the same for schedules, `LeaseWatch` for leases.
"""

import logging

from agents.approvals import due as approvals
from agents.approvals.start_times import correct_starts
from agents.employees import sources
from agents.gateway import due as gateway
from agents.insight import counting as insight
from agents.notices.due_times import correct_due_times
from agents.platform.bounded_waits import BoundedWait
from agents.platform.error_boundary import log_and_continue
from agents.runs.queries import due as runs
from agents.webhooks import sending as webhooks

logger = logging.getLogger(__name__)

BOUNDED_WAITS: tuple[BoundedWait, ...] = tuple(
    wait
    for subject in (runs, gateway, sources, approvals, insight, webhooks)
    for wait in subject.BOUNDED_WAITS
)


def correct_waits() -> int:
    """Correct every wait that is too long, and log how many of each kind; return their number."""
    found = {wait.name: wait.correct for wait in BOUNDED_WAITS}
    found |= {"messages": correct_due_times, "approved calls": correct_starts}
    total = 0
    for name, correct in found.items():
        with log_and_continue(f"correcting waits of {name}"):
            if count := correct():
                logger.warning("the clock was ahead: corrected the wait of %d %s", count, name)
                total += count
    return total
