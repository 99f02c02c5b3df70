"""Descriptions of a schedule's times for people."""

import re
from collections.abc import Iterable
from datetime import datetime

from cronsim import CronSim

from tools.schedules.cron_times import CronTimes

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
EVERY_MONTH = "every month "
MAX_TIMES = 4
WEEKDAYS, WEEKEND = (1, 2, 3, 4, 5), (0, 6)

_ANY = datetime(2000, 1, 1)  # noqa: DTZ001 - any date, needed only to parse the expression


def describe_times(times: CronTimes) -> str:
    """Describe the times: "every Monday at 09:00 (Europe/Berlin)"; cronsim describes unusual
    times."""
    parsed = CronSim(times.cron, _ANY)
    usual = _describe_common(parsed)
    words = usual or parsed.explain()
    return f"{words if usual else words[:1].lower() + words[1:]} ({times.time_zone})"


def format_moment(time: datetime) -> str:
    """Format a time in its own zone, e.g. "Mon 23 Nov 2026, 09:00"."""
    return f"{time:%a} {time.day} {time:%b %Y, %H:%M}"


def _describe_common(parsed: CronSim) -> str:
    """Describe a common expression; return an empty string for any other."""
    day, clock = _describe_days(parsed), _describe_clock(parsed)
    if not day or not clock:
        return ""
    if clock.startswith("at "):
        return f"{day} {clock}"
    if day == "every day":
        return clock
    if day.startswith(EVERY_MONTH):
        return f"{clock} {day.removeprefix(EVERY_MONTH)} of every month"
    days = re.sub(r"(\w*day)\b", r"\1s", day.removeprefix("every "))
    return f"{clock} on {days}"


def _describe_days(parsed: CronSim) -> str:
    _, _, _, day, month, weekday = parsed.parts
    if month != "*":
        return ""
    if weekday == "*":
        if day == "*":
            return "every day"
        return f"{EVERY_MONTH}on day {day}" if day.isdigit() else ""
    return (
        _name_days(item % 7 if isinstance(item, int) else -1 for item in parsed.weekdays)
        if day == "*"
        else ""
    )


def _name_days(numbers: Iterable[int]) -> str:
    chosen = tuple(sorted(set(numbers)))
    if -1 in chosen:
        return ""
    if chosen == WEEKDAYS:
        return "every weekday"
    if chosen == WEEKEND:
        return "every Saturday and Sunday"
    return (
        f"every {_join_parts([DAYS[number] for number in chosen])}"
        if len(chosen) < len(DAYS)
        else "every day"
    )


def _describe_clock(parsed: CronSim) -> str:
    """Describe the times of day: "at 09:00 and 17:00", "every 15 minutes"; empty if they are
    unusual."""
    hours, minutes = sorted(parsed.hours), sorted(parsed.minutes)
    if len(hours) * len(minutes) <= MAX_TIMES:
        return (
            f"at {_join_parts([f'{hour:02}:{minute:02}' for hour in hours for minute in minutes])}"
        )
    if len(hours) < 24:
        return ""
    if len(minutes) == 1:
        return f"every hour at minute {minutes[0]}" if minutes[0] else "every hour"
    step = minutes[1] - minutes[0]
    return f"every {step} minutes" if minutes == list(range(0, 60, step)) and 60 % step == 0 else ""


def _join_parts(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
