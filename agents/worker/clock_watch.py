"""Correct waits that are longer than the code allows because the database's clock was ahead when
they were set.

Without the correction, work would wait until the real time reaches the wrong time, and nobody would
notice. `runs/schedule_watch.py` does the same for schedules, and `LeaseWatch` for leases.
"""

import logging

from agents.approvals.due import ATTENTION_WAITS
from agents.approvals.start_times import correct_starts
from agents.employees.sources import SOURCE_WAITS
from agents.gateway.due import SESSION_WAITS
from agents.insight.counting import FIGURE_WAITS
from agents.notices.due_times import correct_due_times
from agents.platform.error_boundary import log_and_continue
from agents.runs.queries.due import RUN_WAITS
from agents.webhooks.sending import WEBHOOK_WAITS

logger = logging.getLogger(__name__)

BOUNDED_WAITS = (
    *RUN_WAITS,
    *SESSION_WAITS,
    *SOURCE_WAITS,
    *ATTENTION_WAITS,
    *FIGURE_WAITS,
    *WEBHOOK_WAITS,
)


def correct_waits() -> int:
    """Correct every wait that is too long, and log the number for each kind; return the total."""
    found = {wait.name: wait.correct for wait in BOUNDED_WAITS}
    found |= {"messages": correct_due_times, "approved calls": correct_starts}
    total = 0
    for name, correct in found.items():
        with log_and_continue(f"correcting waits of {name}"):
            if count := correct():
                logger.warning("the clock was ahead: corrected the wait of %d %s", count, name)
                total += count
    return total
