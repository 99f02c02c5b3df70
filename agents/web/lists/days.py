"""Days that people type into filters."""

from __future__ import annotations

from datetime import date

FIRST_DAY, LAST_DAY = date(1900, 1, 1), date(9000, 1, 1)
"""Nothing here is older or newer, and every database and time zone can compare these."""


def parse_day(text: str) -> date | None:
    """Return the day, moved to the first or last one that can be compared; None for what is no day."""
    try:
        return min(max(date.fromisoformat(text), FIRST_DAY), LAST_DAY)
    except ValueError:
        return None
