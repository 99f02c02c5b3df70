"""Times are shown relative to now for up to a day, and then as dates; the exact time appears on
hover."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agents.web.template_filters import date_time, moment
from agents.web.text.durations import format_age
from tests.features import feature

NOW = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)


@feature(
    "Pages",
    "Times are relative up to a day, with the exact time on hover",
    "agents/web/text/durations.py",
)
@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(0), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(seconds=60), "1 min ago"),
        (timedelta(minutes=59, seconds=59), "59 min ago"),
        (timedelta(hours=1), "1 h ago"),
        (timedelta(hours=23, minutes=59), "23 h ago"),
        (timedelta(hours=24), "23 Nov 2026, 12:00 UTC"),
        (timedelta(days=400), "20 Oct 2025, 12:00 UTC"),
        (-timedelta(seconds=30), "in less than a minute"),
        (-timedelta(minutes=5), "in 5 min"),
        (-timedelta(hours=3), "in 3 h"),
        (-timedelta(hours=24), "25 Nov 2026, 12:00 UTC"),
    ],
)
def test_an_age_of_less_than_a_day_is_shown_in_words(age: timedelta, words: str) -> None:
    assert format_age(NOW - age, NOW) == words


def test_the_exact_time_is_shown_on_hover() -> None:
    exact = 'datetime="2026-11-24T12:00:00+00:00" title="24 Nov 2026, 12:00:00 UTC"'
    assert exact in moment(NOW)
    assert "data-ago" in moment(NOW)
    assert exact in date_time(NOW)
    assert ">24 Nov 2026, 12:00 UTC</time>" in date_time(NOW)
    assert moment(None) == date_time(None) == ""
