"""The times of notices: immediately, in a digest or never, and not during quiet hours."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from agents.accounts.notice_facts import NoticeKind
from agents.notices.pace import Pace, PaceRules

NOON = datetime(2026, 11, 27, 12, 20, tzinfo=UTC)
ZONES = ("UTC", "Europe/London", "America/New_York", "Asia/Kathmandu", "Pacific/Apia")
NIGHT = (time(22), time(7))
MOMENTS = st.integers(0, 2 * 365 * 24 * 60).map(lambda minutes: NOON + timedelta(minutes=minutes))


def find(pace: Pace, now: datetime = NOON, **more: object) -> datetime | None:
    return PaceRules({"card": pace}, **more).find_due_time("card", now)  # type: ignore[arg-type]


def test_a_pace_of_at_once_means_immediately_and_is_the_default() -> None:
    assert find(Pace.AT_ONCE) == NOON
    assert PaceRules().find_due_time("card", NOON) == NOON


def test_the_default_pace_is_at_once_for_cards_and_a_persons_own_runs_and_daily_otherwise() -> None:
    tomorrow = datetime(2026, 11, 28, 8, tzinfo=UTC)
    at_once = {kind for kind in NoticeKind if PaceRules().find_due_time(kind, NOON) == NOON}
    assert {
        "card",
        "question",
        "unknown",
        "card_expiring",
        "run_failed",
        "run_ended",
        "break_glass",
    } <= at_once
    daily = {kind for kind in NoticeKind if PaceRules().find_due_time(kind, NOON) == tomorrow}
    assert daily == {
        "card_expired",
        "channel_lost",
        "stopped",
        "budget",
        "quarantine",
        "schedule",
        "grant_ended",
        "trigger_refused",
        "webhook_off",
    }


def test_a_pace_of_never_does_not_give_a_due_time() -> None:
    assert find(Pace.NEVER) is None


def test_an_hourly_pace_means_the_next_full_hour() -> None:
    assert find(Pace.HOURLY) == datetime(2026, 11, 27, 13, tzinfo=UTC)


def test_a_daily_pace_means_the_next_digest_in_the_persons_time_zone() -> None:
    zone = ZoneInfo("America/New_York")
    assert find(Pace.DAILY, digest_at=time(8), zone=zone) == datetime(2026, 11, 27, 13, tzinfo=UTC)
    assert find(Pace.DAILY, digest_at=time(7), zone=zone) == datetime(2026, 11, 28, 12, tzinfo=UTC)


def test_quiet_hours_over_midnight_end_in_the_morning() -> None:
    late, early = datetime(2026, 11, 27, 23, 30, tzinfo=UTC), datetime(2026, 11, 28, 3, tzinfo=UTC)
    morning = datetime(2026, 11, 28, 7, tzinfo=UTC)
    assert find(Pace.AT_ONCE, late, quiet=NIGHT) == morning
    assert find(Pace.AT_ONCE, early, quiet=NIGHT) == morning
    assert find(Pace.AT_ONCE, NOON, quiet=NIGHT) == NOON


def test_quiet_hours_within_a_day_end_on_the_same_day() -> None:
    assert find(Pace.AT_ONCE, quiet=(time(12), time(14))) == datetime(2026, 11, 27, 14, tzinfo=UTC)


@given(
    st.sampled_from([Pace.AT_ONCE, Pace.HOURLY, Pace.DAILY]),
    MOMENTS,
    st.none() | st.tuples(st.times(), st.times()).filter(lambda both: both[0] != both[1]),
    st.tuples(st.times(), st.sampled_from(ZONES)),
)
def test_every_notice_is_due_within_three_days_and_outside_quiet_hours(
    pace: Pace, now: datetime, quiet: tuple[time, time] | None, digest: tuple[time, str]
) -> None:
    zone = ZoneInfo(digest[1])
    due = find(pace, now, quiet=quiet, digest_at=digest[0], zone=zone)
    assert due is not None
    assert now <= due <= now + timedelta(days=3)
    if quiet is not None:
        begin, end = quiet
        local = due.astimezone(zone).time()
        assert not (begin <= local < end if begin <= end else local >= begin or local < end)
