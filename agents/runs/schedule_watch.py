"""Correct schedules whose next time is later than their expression allows, because the database's
clock was ahead.

Without the correction, these schedules would not start any run until the real time reaches the
wrong time, and nobody would notice.
"""

from datetime import datetime
from zoneinfo import ZoneInfoNotFoundError

from django.db.models.functions import Now

from agents.runs import schedules
from tools.contract import ToolError
from tools.schedules.cron_times import CronTimes
from tools.schedules.models import Schedule


def correct_times() -> int:
    """Recompute the next time of schedules that would fire too late; return their number."""
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
        return False  # not late: once due, the schedule is switched off
    return expected is not None and next_at > expected
