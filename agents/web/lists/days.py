"""Days that people type into filters."""

from __future__ import annotations

from datetime import date

FIRST_DAY, LAST_DAY = date(1900, 1, 1), date(9000, 1, 1)
"""Bounds for all days; every database and time zone can compare them."""


def parse_day(text: str) -> date | None:
    """Return the day, limited to the time from `FIRST_DAY` to `LAST_DAY`; None if the text is not a
    day."""
    try:
        return min(max(date.fromisoformat(text), FIRST_DAY), LAST_DAY)
    except ValueError:
        return None
