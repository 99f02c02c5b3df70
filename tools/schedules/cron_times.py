"""Times of a cron expression in a time zone, including days on which the clocks change.

There are two kinds of expressions. An expression that names hours describes times of the day: each
occurs once a day, at the first moment when the clock shows it or has jumped over it. An expression
for every hour ("every 15 minutes") follows the clock, so it continues evenly through an hour that
occurs twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from tools.contract import ErrorCode, ToolError
from tools.schedules.cron_faults import find_cron_fault

LONGEST_CRON = 100
SMALLEST_MINUTES = 5
"""The minimum gap, in minutes, between two times: a run takes more than a minute, and each run
costs money."""
EXAMPLE = "0 9 * * MON-FRI"

_FIELDS = "five fields: minute hour day-of-month month day-of-week"
_SOME_DAY = datetime(2000, 1, 1)  # noqa: DTZ001 - a clock reading has no zone
_MINUTE = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)
_STEP_S = 12 * 3600
"""The interval, in seconds, at which a zone's clock is read to find a change. No time zone changes
its clocks twice in this time."""


@dataclass(frozen=True)
class CronTimes:
    """A valid cron expression in a time zone, built by `parse_cron`."""

    cron: str
    time_zone: str

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)

    def next_after(self, moment: datetime) -> datetime | None:
        """Find the first time strictly after the moment, in UTC; None if there is none within 50
        years."""
        if len(CronSim(self.cron, _SOME_DAY).hours) == 24:
            return self._find_next_on_clock(moment)
        return next((time for time in self._list_times_of_day(moment) if time > moment), None)

    def upcoming(self, moment: datetime, count: int = 5) -> list[datetime]:
        """List the next times after the moment, in the schedule's time zone."""
        found: list[datetime] = []
        while len(found) < count and (time := self.next_after(found[-1] if found else moment)):
            found.append(time)
        return [time.astimezone(self.zone) for time in found]

    def _list_times_of_day(self, moment: datetime) -> Iterator[datetime]:
        """Yield the times in UTC, starting near the moment; replace a time that the clock skips
        with the next time that exists."""
        for shown in CronSim(self.cron, _read_clock(moment, self.zone)):
            while not _exists_on_clock(shown, self.zone):
                shown += _MINUTE  # noqa: PLW2901
            yield shown.replace(tzinfo=self.zone).astimezone(UTC)

    def _find_next_on_clock(self, moment: datetime) -> datetime | None:
        """Find the next time that the clock shows; start the search again at each clock change."""
        since, shown = moment.astimezone(UTC), _read_clock(moment, self.zone)
        begin = shown
        while (found := next(CronSim(self.cron, begin), None)) is not None:
            time = since + (found - shown)
            change = _find_clock_change(self.zone, since, time)
            if change is None:
                return time
            since, shown = change, _read_clock(change, self.zone)
            begin = shown - _SECOND
        return None


def parse_cron(cron: str, time_zone: str) -> CronTimes:
    """Parse and check a cron expression; extra spaces between the fields are ignored.

    Raises:
        ToolError: INVALID_CRON_SPEC, INVALID_PARAMETER
    """
    if time_zone not in list_time_zones():
        raise ToolError(
            ErrorCode.INVALID_PARAMETER,
            f"There is no time zone {time_zone[:64]!r}.",
            parameter="time_zone",
            expected="a name of the IANA time zone database",
            example="Europe/Berlin",
            attempted=False,
        )
    fields = cron.split()
    if len(fields) != 5:
        raise _build_cron_error(
            cron, f"it needs {_FIELDS}, but has {len(fields)}. For example: {EXAMPLE}"
        )
    if len(cron) > LONGEST_CRON:
        raise _build_cron_error(
            cron, f"it has {len(cron)} characters; the limit is {LONGEST_CRON}."
        )
    if (fault := find_cron_fault(fields)) is not None:
        raise _build_cron_error(cron, fault)
    times = CronTimes(" ".join(fields), time_zone)
    try:
        parsed = CronSim(times.cron, _SOME_DAY)
    except CronSimError as error:
        raise _build_cron_error(cron, f"month {fields[3]} has no day {fields[2]}.") from error
    if (gap := _find_shortest_gap(parsed)) < SMALLEST_MINUTES:
        raise _build_cron_error(
            cron, f"its times are {gap} min apart; the minimum is {SMALLEST_MINUTES} min."
        )
    if times.next_after(datetime.now(UTC)) is None:
        raise _build_cron_error(cron, "no day of the next 50 years matches it.")
    return times


@cache
def list_time_zones() -> frozenset[str]:
    """Return the names of all time zones."""
    return frozenset(available_timezones() - {"Factory", "localtime", "posixrules"})


@cache
def list_common_time_zones() -> tuple[str, ...]:
    """List UTC and the time zones named after places, sorted."""
    places = sorted(
        name
        for name in list_time_zones()
        if "/" in name and not name.startswith(("Etc/", "US/", "SystemV/"))
    )
    return ("UTC", *places)


def _build_cron_error(cron: str, why: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_CRON_SPEC,
        f"The cron expression {cron[:LONGEST_CRON]!r} cannot be used: {why}",
        parameter="cron",
        expected=f"{_FIELDS}; times at least {SMALLEST_MINUTES} minutes apart, on days that exist",
        example=EXAMPLE,
        recovery_hint="For example '0 9 * * MON-FRI' is 09:00 on weekdays, '*/30 * * * *' every half hour.",
        attempted=False,
    )


def _find_shortest_gap(parsed: CronSim) -> int:
    """Find the shortest gap, in minutes, between two times of a day, or between a day's last time
    and the next day's first."""
    of_day = sorted(60 * hour + minute for hour in parsed.hours for minute in parsed.minutes)
    return min(later - earlier for earlier, later in pairwise([*of_day, of_day[0] + 24 * 60]))


def _read_clock(moment: datetime, zone: ZoneInfo) -> datetime:
    """Return the time that a clock in the zone shows."""
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _exists_on_clock(shown: datetime, zone: ZoneInfo) -> bool:
    """Return True if a clock in the zone ever shows this time; a clock change may skip it."""
    return _read_clock(shown.replace(tzinfo=zone).astimezone(UTC), zone) == shown


def _find_clock_change(zone: ZoneInfo, first: datetime, last: datetime) -> datetime | None:
    """Find the first clock change after `first` and up to `last`, to the second; None if there is
    none."""
    low, end = int(first.timestamp()), int(last.timestamp())
    before = _find_offset(zone, low)
    while low < end:
        high = min(low + _STEP_S, end)
        if _find_offset(zone, high) != before:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (
                    (middle, high) if _find_offset(zone, middle) == before else (low, middle)
                )
            return datetime.fromtimestamp(high, UTC)
        low = high
    return None


def _find_offset(zone: ZoneInfo, timestamp: int) -> timedelta | None:
    return datetime.fromtimestamp(timestamp, zone).utcoffset()
