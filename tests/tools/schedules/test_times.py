"""Times of a schedule: valid and refused expressions, and both sides of every clock change."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.features import feature
from tools.contract import ErrorCode, ToolError
from tools.schedules.cron_times import (
    LONGEST_CRON,
    CronTimes,
    list_common_time_zones,
    list_time_zones,
    parse_cron,
)
from tools.schedules.descriptions import describe_times, format_moment

pytestmark = pytest.mark.once  # does not depend on the database

MINUTE = timedelta(minutes=1)
CHANGES = {  # zone: days on which its clocks are changed, forward and back
    "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "Australia/Lord_Howe": ("2026-10-04", "2026-04-05"),
    "Africa/Cairo": ("2026-04-24", "2026-10-29"),
    "America/Havana": ("2026-03-08", "2026-11-01"),
    "Asia/Beirut": ("2026-03-29", "2026-10-24"),
    "America/Santiago": ("2026-09-06", "2026-04-05"),
    "Asia/Kolkata": ("2026-03-29", "2026-10-25"),
    "UTC": ("2026-03-29", "2026-10-25"),
}


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def shown(times: list[datetime]) -> list[str]:
    return [f"{time:%m-%d %H:%M %Z}" for time in times]


# Both sides of a clock change, with expected times written by hand


@pytest.mark.parametrize(
    ("cron", "zone", "after", "expected"),
    [
        # Berlin springs from 02:00 to 03:00 on 29 March, and falls from 03:00 to 02:00 on 25
        # October.
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28",
            ["03-28 02:30 CET", "03-29 03:00 CEST", "03-30 02:30 CEST"],
        ),
        (
            "0 9 * * *",
            "Europe/Berlin",
            "2026-03-28",
            ["03-28 09:00 CET", "03-29 09:00 CEST", "03-30 09:00 CEST"],
        ),
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-24",
            ["10-24 02:30 CEST", "10-25 02:30 CEST", "10-26 02:30 CET"],
        ),
        (
            "0 2,3 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00",
            ["03-29 03:00 CEST", "03-30 02:00 CEST"],
        ),
        (
            "0 */2 * * *",
            "Europe/Berlin",
            "2026-10-24T22:30",
            ["10-25 02:00 CEST", "10-25 04:00 CET"],
        ),
        (
            "0 * * * *",
            "Europe/Berlin",
            "2026-03-29T00:00",
            ["03-29 03:00 CEST", "03-29 04:00 CEST"],
        ),
        (
            "0 * * * *",
            "Europe/Berlin",
            "2026-10-24T23:30",
            ["10-25 02:00 CEST", "10-25 02:00 CET", "10-25 03:00 CET"],
        ),
        (
            "*/30 * * * *",
            "Europe/Berlin",
            "2026-10-25T00:10",
            ["10-25 02:30 CEST", "10-25 02:00 CET", "10-25 02:30 CET"],
        ),
        # Cairo's clock change skips midnight; Lord Howe's is half an hour.
        ("0 0 * * *", "Africa/Cairo", "2026-04-22T23:00", ["04-24 01:00 EEST", "04-25 00:00 EEST"]),
        (
            "15 * * * *",
            "Australia/Lord_Howe",
            "2026-10-03T14:40",
            ["10-04 01:15 +1030", "10-04 03:15 +11"],
        ),
    ],
)
def test_the_next_times_around_a_clock_change_match_a_list_written_by_hand(
    cron: str, zone: str, after: str, expected: list[str]
) -> None:
    assert shown(parse_cron(cron, zone).upcoming(at(after), len(expected))) == expected


def test_a_daily_time_occurs_once_in_a_repeated_hour() -> None:
    times = parse_cron("30 2 * * *", "Europe/Berlin")
    # When clocks show 02:05, 02:30 and 02:45 for the second time.
    for again in (
        "2026-10-25T01:05",
        "2026-10-25T01:30",
        "2026-10-25T01:45",
    ):
        assert times.next_after(at(again)) == at("2026-10-26T01:30")


def test_a_time_is_never_followed_by_itself() -> None:
    time = at("2026-06-01T07:00")
    times = parse_cron("0 9 * * *", "Europe/Berlin")
    assert times.next_after(time) == time + timedelta(days=1)
    assert times.next_after(time - timedelta(microseconds=1)) == time
    assert times.next_after(time + timedelta(microseconds=1)) == time + timedelta(days=1)


# Comparison with a scan of every minute


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    lists = st.lists(number, min_size=1, max_size=4).map(lambda many: ",".join(map(str, many)))
    ranges = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    return st.one_of(
        st.just("*"), lists, ranges, st.integers(1, high).map(lambda step: f"*/{step}")
    )


CRONS = st.tuples(
    field(0, 59), field(0, 23), st.just("*"), st.just("*"), st.one_of(st.just("*"), field(0, 7))
).map(" ".join)


def numbers(text: str, low: int, high: int) -> set[int]:
    """Return the numbers that a field of a cron expression matches, computed by a simple second
    parser."""
    if text.startswith("*"):
        return set(range(low, high + 1, int(text[2:] or 1)))
    if "-" in text:
        first, last = map(int, text.split("-"))
        return set(range(first, last + 1))
    return {int(part) for part in text.split(",")}


def scanned(times: CronTimes, first: datetime, last: datetime) -> list[datetime]:
    """Return the schedule's times after `first` and until `last`, found by testing every minute."""
    minutes, hours, _, _, weekdays = times.cron.split()
    in_minutes, in_hours = numbers(minutes, 0, 59), numbers(hours, 0, 23)
    on_days = {number % 7 for number in numbers(weekdays, 0, 7)}

    def fits(clock: datetime) -> bool:
        return (
            clock.minute in in_minutes
            and clock.hour in in_hours
            and clock.isoweekday() % 7 in on_days
        )

    found, moment, latest = [], first - timedelta(days=1), datetime.min  # noqa: DTZ901 - what a clock shows
    while moment <= last:
        clock = moment.astimezone(ZoneInfo(times.time_zone)).replace(tzinfo=None, fold=0)
        if len(in_hours) == 24:
            is_due = fits(clock)
        else:
            begin = clock if latest == datetime.min else latest + MINUTE  # noqa: DTZ901
            passed = [begin + n * MINUTE for n in range(int((clock - begin) / MINUTE) + 1)]
            is_due = any(map(fits, passed))
        latest = max(latest, clock)
        found += [moment] if is_due and moment > first else []
        moment += MINUTE
    return found


@feature(
    "Schedules", "Correct times on days when the clocks change", "tools/schedules/cron_times.py"
)
@settings(max_examples=60)
@given(
    cron=CRONS,
    zone=st.sampled_from(sorted(CHANGES)),
    in_spring=st.booleans(),
    start=st.integers(-900, 600),
)
@example(cron="0 2,3 * * *", zone="Europe/Berlin", in_spring=True, start=-60)
@example(cron="*/10 0-22 * * *", zone="Australia/Lord_Howe", in_spring=False, start=-300)
@example(cron="*/20 * * * 0", zone="America/Havana", in_spring=False, start=-900)
def test_the_times_match_a_scan_of_every_minute(
    cron: str, zone: str, in_spring: bool, start: int
) -> None:
    times = CronTimes(cron, zone)
    day = at(CHANGES[zone][0 if in_spring else 1])
    first = day + start * MINUTE
    last = first + timedelta(hours=20)
    found, moment = [], first
    while (following := times.next_after(moment)) is not None and following <= last:
        found.append(following)
        moment = following
    assert found == scanned(times, first, last)
    assert all(earlier < later for earlier, later in pairwise(found))


@settings(max_examples=200)
@given(
    minute=st.integers(0, 59),
    hour=st.integers(0, 23),
    zone=st.sampled_from(sorted(CHANGES)),
    minutes=st.integers(0, 525_600),
)
def test_a_daily_time_occurs_once_every_day(
    minute: int, hour: int, zone: str, minutes: int
) -> None:
    moment = at("2026-01-01") + minutes * MINUTE
    days = [time.date() for time in CronTimes(f"{minute} {hour} * * *", zone).upcoming(moment, 4)]
    assert days == [days[0] + timedelta(days=n) for n in range(4)]


# Unusable expressions


@feature(
    "Schedules",
    "Cron expressions in any time zone; one that never occurs is refused",
    "tools/schedules/cron_times.py",
)
@feature(
    "Schedules",
    "An invalid cron expression names the faulty field and its allowed values",
    "tools/schedules/cron_faults.py",
)
@pytest.mark.parametrize(
    ("cron", "why"),
    [
        ("", "five fields"),
        ("* * * *", "five fields"),
        ("0 0 9 * * *", "five fields"),
        ("@daily", "five fields: minute hour day-of-month month day-of-week, but has 1"),
        ("60 * * * *", "the minute is '60'. Allowed: 0 to 59"),
        ("0 24 * * *", "the hour is '24'. Allowed: 0 to 23"),
        ("0 9 0 * *", "the day of the month is '0'. Allowed: 1 to 31"),
        ("0 9 * 13 *", "the month is '13'. Allowed: 1 to 12 or JAN to DEC"),
        ("0 9 * * 8", "the day of the week is '8'. Allowed: 0 to 7 or SUN to SAT"),
        ("0 9 * * FUNDAY", "For example: MON-FRI"),
        ("0 9 * * MON-", "the day of the week is 'MON-'"),
        ("*/0 * * * *", "the minute is '*/0'"),
        ("-5 9 * * *", "the minute is '-5'"),
        ("0 0 31 2 *", "month 2 has no day 31"),
        ("0 0 30 FEB *", "month FEB has no day 30"),
        ("0 0 31 4,6,9,11 *", "month 4,6,9,11 has no day 31"),
        ("* * * * *", "1 min apart"),
        ("*/4 * * * *", "4 min apart"),
        ("0,1 9 * * *", "1 min apart"),
        ("0,58 0,23 * * *", "2 min apart"),
        ("0 9 * * ٣", "the day of the week is '٣'"),
        ("0 9 * * fr\u0131", "the day of the week is 'fr\u0131'"),
        ("0 9 * * MON\0", "the day of the week is 'MON\\x00'"),
        (f"0 9 * * {'1,' * 50}1", "109 characters; the limit is 100"),
        (f"{'9' * 90} 9 * * *", "the minute is '999"),
    ],
)
def test_an_unusable_expression_is_refused_with_the_reason(cron: str, why: str) -> None:
    with pytest.raises(ToolError) as refused:
        parse_cron(cron, "UTC")
    assert (refused.value.code, refused.value.parameter) == (ErrorCode.INVALID_CRON_SPEC, "cron")
    assert why in refused.value.message
    assert refused.value.expected
    assert refused.value.example
    assert refused.value.recovery_hint
    assert len(refused.value.message) < 500


@pytest.mark.parametrize(
    "zone",
    ["", "Mars/Olympus", "../../etc/passwd", "europe/berlin", "Europe/Berlin\0", "localtime"],
)
def test_an_unknown_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(ToolError) as refused:
        parse_cron("0 9 * * *", zone)
    assert (refused.value.code, refused.value.parameter) == (
        ErrorCode.INVALID_PARAMETER,
        "time_zone",
    )


@settings(max_examples=400)
@given(st.text(st.sampled_from("0123456789*/-,#LW MONJAN\0é"), max_size=LONGEST_CRON + 5))
def test_any_expression_is_either_described_and_used_or_refused(text: str) -> None:
    try:
        times = parse_cron(text, "Europe/Berlin")
    except ToolError:
        return
    assert times.next_after(at("2026-01-01")) is not None
    assert describe_times(times)


@settings(max_examples=300)
@given(CRONS)
def test_every_random_expression_has_a_description(cron: str) -> None:
    assert describe_times(CronTimes(cron, "UTC")).endswith(" (UTC)")


def test_leap_days_last_days_and_numbered_weekdays_are_found() -> None:
    assert parse_cron("0 0 29 2 *", "UTC").next_after(at("2026-03-01")) == at("2028-02-29")
    assert parse_cron("0 * 29 2 *", "Europe/Berlin").next_after(at("2026-03-01")) == at(
        "2028-02-28T23:00"
    )
    assert parse_cron("0 9 L * *", "UTC").next_after(at("2026-02-03")) == at("2026-02-28T09:00")
    assert parse_cron(" 0  9 * *  MON#2 ", "UTC") == CronTimes("0 9 * * MON#2", "UTC")


def test_every_offered_zone_can_be_used() -> None:
    assert list_common_time_zones()[0] == "UTC"
    assert set(list_common_time_zones()) <= list_time_zones()
    assert len(list_common_time_zones()) > 300
    for zone in list_common_time_zones():
        assert parse_cron("0 9 * * *", zone).next_after(at("2026-01-01")) is not None


# Descriptions in words


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("0 9 * * 1", "every Monday at 09:00"),
        ("0 9 * * MON-FRI", "every weekday at 09:00"),
        ("30 8,17 * * *", "every day at 08:30 and 17:30"),
        ("0 10 * * SAT,SUN", "every Saturday and Sunday at 10:00"),
        ("0 9 * * 2,4,7", "every Sunday, Tuesday and Thursday at 09:00"),
        ("0 9 1 * *", "every month on day 1 at 09:00"),
        ("0 * * * *", "every hour"),
        ("15 * * * *", "every hour at minute 15"),
        ("*/15 * * * *", "every 15 minutes"),
        ("*/30 * * * MON-FRI", "every 30 minutes on weekdays"),
        ("0 * * * MON", "every hour on Mondays"),
        ("15 * * * SAT,SUN", "every hour at minute 15 on Saturdays and Sundays"),
        ("*/10 * * * 2,4,7", "every 10 minutes on Sundays, Tuesdays and Thursdays"),
        ("*/15 * 1 * *", "every 15 minutes on day 1 of every month"),
        ("0 9 L * *", "at 09:00 on the last day of every month"),
        ("0 9 * * 5#2", "at 09:00 on the second Friday of the month"),
        ("0 9 24 12 *", "at 09:00 on December 24"),
        ("0 8-18 * * *", "at minute 0 past every hour from 8 through 18"),
    ],
)
def test_the_times_are_described_in_words(cron: str, words: str) -> None:
    assert describe_times(CronTimes(cron, "Europe/Berlin")) == f"{words} (Europe/Berlin)"


def test_a_moment_is_formatted_in_words() -> None:
    assert format_moment(datetime(2026, 11, 3, 9, 5, tzinfo=UTC)) == "Tue 3 Nov 2026, 09:05"
