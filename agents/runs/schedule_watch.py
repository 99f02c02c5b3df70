"""Correct schedules whose next time is later than their expression allows: the database's clock was
ahead for a while.

Without this they would stay silent for as long as the clock was ahead, unnoticed.
"""

from datetime import datetime
from zoneinfo import ZoneInfoNotFoundError

from django.db.models.functions import Now

from agents.runs import schedules
from tools.contract import ToolError
from tools.schedules.cron_times import CronTimes
from tools.schedules.models import Schedule


def correct_times() -> int:
    """Recompute the next time of each late schedule; return their number. Costs one query and one
    for each."""
    rows = Schedule.objects.filter(is_active=True, next_at__gt=Now()).annotate(now=Now())
    late = [
        row.pk
        for row in rows.iterator()
        if row.next_at and _is_late(row.times, row.next_at, row.now)
    ]
    return sum(map(schedules.correct_time, late))


def _is_late(times: CronTimes, next_at: datetime, now: datetime) -> bool:
    try:
        expected = times.next_after(now)
    except (ToolError, ZoneInfoNotFoundError):
        return False  # the schedule is switched off at its next time
    return expected is not None and next_at > expected
