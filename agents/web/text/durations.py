"""Durations and times as text for people."""

from datetime import UTC, datetime

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def format_duration(milliseconds: int) -> str:
    """Format a duration: `340 ms`, `1.2 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`."""
    if milliseconds < SECOND:
        return f"{milliseconds} ms"
    if milliseconds < MINUTE:
        return f"{milliseconds / SECOND:.1f} s"
    if milliseconds < HOUR:
        return f"{milliseconds // MINUTE} min {milliseconds % MINUTE // SECOND} s"
    if milliseconds < DAY:
        return f"{milliseconds // HOUR} h {milliseconds % HOUR // MINUTE} min"
    return f"{milliseconds // DAY} d {milliseconds % DAY // HOUR} h"


def format_whole_duration(seconds: int) -> str:
    """Format a duration that grows while people watch: `12 s`, `3 min`, `2 h 5 min`, `4 d 1 h`."""
    seconds = max(0, seconds)
    if seconds < MINUTE // SECOND:
        return f"{seconds} s"
    minutes = seconds * SECOND // MINUTE
    return f"{minutes} min" if minutes < HOUR // MINUTE else format_duration(seconds * SECOND)


def format_time(at: datetime, clock: str = "%H:%M") -> str:
    """Format a time in UTC: `24 Nov 2026, 09:05 UTC`."""
    return at.astimezone(UTC).strftime(f"%-d %b %Y, {clock} UTC")


def format_age(at: datetime, now: datetime) -> str:
    """Format a time as people say it: `just now`, `5 min ago`, `in 3 h`, or as a date if it is a
    day or more away.

    static/js/page/times.js uses the same words.
    """
    seconds = round((now - at).total_seconds())
    distance = abs(seconds) * SECOND
    if distance >= DAY:
        return format_time(at)
    if distance < MINUTE:
        return "just now" if seconds >= 0 else "in less than a minute"
    words = f"{distance // HOUR} h" if distance >= HOUR else f"{distance // MINUTE} min"
    return f"{words} ago" if seconds > 0 else f"in {words}"
