"""Figures of the last 30 days by tool and by employee, added up from what `counting` counted: never from the calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from typing import NamedTuple

from django.db.models import QuerySet
from django.utils import timezone

from agents.insight.models import BUCKETS, EmployeeFigures, EmployeeUse, FiguresHead, ToolFigures

DAYS = 30
_SUMS = ("succeeded", "failed", "asked", "approved", "denied", "cost_micros")
_HISTOGRAM = (*BUCKETS, "longer")
_NOTHING = (0,) * len(_HISTOGRAM)


class Calls(NamedTuple):
    """What the calls of one day came to."""

    succeeded: int = 0
    failed: int = 0
    cost_micros: int = 0

    def plus(self, more: Calls) -> Calls:
        """Both together."""
        return Calls(*(one + other for one, other in zip(self, more, strict=True)))


class Use(NamedTuple):
    """What passes used."""

    passes: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int = 0


@dataclass(frozen=True)
class LastError:
    """The newest failure; `message` has at most 200 characters."""

    code: str
    message: str
    at: datetime


@dataclass(frozen=True)
class Figures:
    """What calls came to; one that was refused, denied or repeated is none.

    Attributes:
        asked, approved, denied: cards that were shown, and what was decided about them.
        cost_micros: what the results said.
        histogram: how many calls took so long, a number for each of `BUCKETS` and one for what took longer.
        days: the days on which there was anything.
    """

    succeeded: int = 0
    failed: int = 0
    asked: int = 0
    approved: int = 0
    denied: int = 0
    cost_micros: int = 0
    slowest_ms: int = 0
    histogram: tuple[int, ...] = _NOTHING
    last_error: LastError | None = None
    days: dict[date, Calls] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        return self.succeeded + self.failed

    @property
    def success_rate(self) -> float | None:
        """From 0 to 1; None without calls."""
        return self.succeeded / self.calls if self.calls else None

    @property
    def success_percent(self) -> int | None:
        """Rounded, but 100 only if none failed, and 0 only if all did."""
        if not self.calls:
            return None
        if not self.failed or not self.succeeded:
            return 100 if self.succeeded else 0
        return min(99, max(1, round(100 * self.succeeded / self.calls)))

    @property
    def p50_ms(self) -> int | None:
        return percentile(self.histogram, 0.50, self.slowest_ms)

    @property
    def p95_ms(self) -> int | None:
        return percentile(self.histogram, 0.95, self.slowest_ms)


def percentile(histogram: Sequence[int], share: float, slowest_ms: int) -> int | None:
    """About how many ms that share of all calls took at most: right within the width of its bucket; None of none."""
    whole = sum(histogram)
    if not whole:
        return None
    rank = share * whole
    ends = [*BUCKETS.values(), max(slowest_ms, *BUCKETS.values())]
    starts = [0, *BUCKETS.values()]
    for count, upto, start, end in zip(histogram, accumulate(histogram), starts, ends, strict=True):
        if count and upto >= rank:
            inside = max(0.0, rank - (upto - count)) / count
            return round(start + inside * (max(start, min(end, slowest_ms)) - start))
    return slowest_ms


def since() -> date:
    """The first day that counts."""
    return today() - timedelta(days=DAYS - 1)


def today() -> date:
    """The day of UTC that it is."""
    return timezone.now().astimezone(UTC).date()


def by_tool(organization_id: int) -> dict[str, Figures]:
    """How each tool did in an organisation; without those that nobody called."""
    rows = ToolFigures.objects.filter(organization_id=organization_id)
    return _added_up(rows.filter(day__gte=since()))


def of_employee(employee_id: int) -> dict[str, Figures]:
    """How each tool did for one employee; without those that it did not call."""
    rows = EmployeeFigures.objects.filter(employee_id=employee_id)
    return _added_up(rows.filter(day__gte=since()))


def together(figures: Iterable[Figures]) -> Figures:
    """Those of several tools as one."""
    every = list(figures)
    days: defaultdict[date, Calls] = defaultdict(Calls)
    for each in every:
        for day, calls in each.days.items():
            days[day] = days[day].plus(calls)
    errors = [each.last_error for each in every if each.last_error]
    return Figures(
        **{name: sum(getattr(each, name) for each in every) for name in _SUMS},
        slowest_ms=max((each.slowest_ms for each in every), default=0),
        histogram=tuple(map(sum, zip(*(each.histogram for each in every), strict=True))) or _NOTHING,
        last_error=max(errors, key=lambda error: error.at, default=None),
        days=dict(days),
    )


def use_of(employee_id: int) -> dict[date, Use]:
    """What an employee's passes used on each day on which it worked."""
    rows = EmployeeUse.objects.filter(employee_id=employee_id, day__gte=since()).order_by("day")
    return {day: Use(*used) for day, *used in rows.values_list("day", *Use._fields)}


def counted_at() -> datetime | None:
    """When a sweeper last counted; None before the first time."""
    return FiguresHead.objects.filter(pk=FiguresHead.ONLY).values_list("looked_at", flat=True).first()


def _added_up(rows: QuerySet[ToolFigures] | QuerySet[EmployeeFigures]) -> dict[str, Figures]:
    found: defaultdict[str, list[Figures]] = defaultdict(list)
    fields = ("tool", "day", "last_error_code", "last_error", "last_error_at", "slowest_ms", *_SUMS, *_HISTOGRAM)
    for tool, day, code, message, at, slowest, *numbers in rows.order_by("day").values_list(*fields):
        sums, histogram = dict(zip(_SUMS, numbers, strict=False)), tuple(numbers[len(_SUMS) :])
        calls = Calls(sums["succeeded"], sums["failed"], sums["cost_micros"])
        error = LastError(code, message, at) if at else None
        one_day = Figures(**sums, slowest_ms=slowest, histogram=histogram, last_error=error, days={day: calls})
        found[tool].append(one_day)
    return {tool: together(days) for tool, days in found.items()}
