"""When a schedule is due: a cron expression in a time zone, on both sides of a change of the clocks.

Two kinds of expression, two rules. One that names hours names times of the day: each of them comes once a day, at the
first moment at which the clock shows it or has jumped over it. One for every hour ("every 15 minutes") goes by what
the clock shows, so it goes on evenly through an hour that comes twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from tools.contract import ErrorCode, ToolError

from .faults import fault_in

LONGEST_CRON = 100
SMALLEST_MINUTES = 5
"""Between two times: a run takes longer than a minute, and each one costs what its model costs."""
EXAMPLE = "0 9 * * MON-FRI"

_FIELDS = "five fields: minute hour day-of-month month day-of-week"
_SOME_DAY = datetime(2000, 1, 1)  # noqa: DTZ001 - what a clock shows, without a zone
_MINUTE = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)
_STEP_S = 12 * 3600
"""No zone changes its clocks twice within this."""


@dataclass(frozen=True)
class Times:
    """A cron expression in a time zone, both known to be good: `times_of` makes it from what somebody wrote."""

    cron: str
    time_zone: str

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)

    def next_after(self, moment: datetime) -> datetime | None:
        """The first time strictly after the moment, in UTC; None if there is none within 50 years."""
        if len(CronSim(self.cron, _SOME_DAY).hours) == 24:
            return self._by_the_clock(moment)
        return next((time for time in self._of_the_day(moment) if time > moment), None)

    def upcoming(self, moment: datetime, count: int = 5) -> list[datetime]:
        """The next times after the moment, in the schedule's zone."""
        found: list[datetime] = []
        while len(found) < count and (time := self.next_after(found[-1] if found else moment)):
            found.append(time)
        return [time.astimezone(self.zone) for time in found]

    def _of_the_day(self, moment: datetime) -> Iterator[datetime]:
        """Times of the day from about the moment on; equal ones where the clock jumps over several."""
        for shown in CronSim(self.cron, _shown(moment, self.zone)):
            while not _is_shown(shown, self.zone):
                shown += _MINUTE  # noqa: PLW2901
            yield shown.replace(tzinfo=self.zone).astimezone(UTC)

    def _by_the_clock(self, moment: datetime) -> datetime | None:
        """Until the clocks change, what they show moves on with the time; from the change on, it is counted anew."""
        since, shown = moment.astimezone(UTC), _shown(moment, self.zone)
        begin = shown
        while (found := next(CronSim(self.cron, begin), None)) is not None:
            time = since + (found - shown)
            change = _change_of_clocks(self.zone, since, time)
            if change is None:
                return time
            since, shown = change, _shown(change, self.zone)
            begin = shown - _SECOND
        return None


def times_of(cron: str, time_zone: str) -> Times:
    """What somebody wrote, checked; blanks between the fields do not count.

    Raises:
        ToolError: INVALID_CRON_SPEC, INVALID_PARAMETER
    """
    if time_zone not in time_zones():
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
        raise _invalid(cron, f"it has to have {_FIELDS}, and not {len(fields)}. For example: {EXAMPLE}")
    if len(cron) > LONGEST_CRON:
        raise _invalid(cron, f"it has {len(cron)} characters; at most {LONGEST_CRON} are allowed.")
    if fault := fault_in(fields):
        raise _invalid(cron, fault)
    times = Times(" ".join(fields), time_zone)
    try:
        parsed = CronSim(times.cron, _SOME_DAY)
    except CronSimError as error:
        raise _invalid(cron, f"month {fields[3]} has no day {fields[2]}.") from error
    if (apart := _least_apart(parsed)) < SMALLEST_MINUTES:
        raise _invalid(cron, f"its times are {apart} min apart, but have to be at least {SMALLEST_MINUTES}.")
    if times.next_after(datetime.now(UTC)) is None:
        raise _invalid(cron, "no day of the next 50 years fits it.")
    return times


@cache
def time_zones() -> frozenset[str]:
    """The names of all time zones."""
    return frozenset(available_timezones() - {"Factory", "localtime", "posixrules"})


@cache
def usual_time_zones() -> tuple[str, ...]:
    """Those that are places, and UTC, in order."""
    places = sorted(name for name in time_zones() if "/" in name and not name.startswith(("Etc/", "US/", "SystemV/")))
    return ("UTC", *places)


def _invalid(cron: str, why: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_CRON_SPEC,
        f"The cron expression {cron[:LONGEST_CRON]!r} cannot be used: {why}",
        parameter="cron",
        expected=f"{_FIELDS}; times at least {SMALLEST_MINUTES} minutes apart, on days that exist",
        example=EXAMPLE,
        recovery_hint="For example '0 9 * * MON-FRI' is 09:00 on weekdays, '*/30 * * * *' every half hour.",
        attempted=False,
    )


def _least_apart(parsed: CronSim) -> int:
    """Minutes between the two nearest times of a day and the first of the next one."""
    of_day = sorted(60 * hour + minute for hour in parsed.hours for minute in parsed.minutes)
    return min(later - earlier for earlier, later in pairwise([*of_day, of_day[0] + 24 * 60]))


def _shown(moment: datetime, zone: ZoneInfo) -> datetime:
    """What a clock of the zone shows."""
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _is_shown(shown: datetime, zone: ZoneInfo) -> bool:
    """Whether a clock of the zone ever shows this."""
    return _shown(shown.replace(tzinfo=zone).astimezone(UTC), zone) == shown


def _change_of_clocks(zone: ZoneInfo, first: datetime, last: datetime) -> datetime | None:
    """When the clocks change after the first and not after the last moment, to the second; None if they do not."""
    low, end = int(first.timestamp()), int(last.timestamp())
    before = _offset(zone, low)
    while low < end:
        high = min(low + _STEP_S, end)
        if _offset(zone, high) != before:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
            return datetime.fromtimestamp(high, UTC)
        low = high
    return None


def _offset(zone: ZoneInfo, timestamp: int) -> timedelta | None:
    return datetime.fromtimestamp(timestamp, zone).utcoffset()
