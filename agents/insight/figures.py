"""Figures of the last 30 days by tool and by employee. They are summed from the counted rows, never
from the calls."""

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
_EMPTY_HISTOGRAM = (0,) * len(_HISTOGRAM)


class DayCalls(NamedTuple):
    """The calls of one day."""

    succeeded: int = 0
    failed: int = 0
    cost_micros: int = 0

    def add(self, other: DayCalls) -> DayCalls:
        """Return the sum of both days' calls."""
        return DayCalls(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class ModelUse(NamedTuple):
    """The usage of a model in some passes."""

    passes: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int = 0


@dataclass(frozen=True)
class LastError:
    """The newest failure of a tool; `message` has at most 200 characters."""

    code: str
    message: str
    at: datetime


@dataclass(frozen=True)
class Figures:
    """The figures of calls; refused, denied and duplicate calls do not count.

    Attributes:
        asked, approved, denied: cards that were shown, and the decisions about them.
        cost_micros: the cost that results reported.
        histogram: the number of calls in each of `BUCKETS`; the last number counts longer calls.
        days: the calls of each day that has figures.
    """

    succeeded: int = 0
    failed: int = 0
    asked: int = 0
    approved: int = 0
    denied: int = 0
    cost_micros: int = 0
    slowest_ms: int = 0
    histogram: tuple[int, ...] = _EMPTY_HISTOGRAM
    last_error: LastError | None = None
    days: dict[date, DayCalls] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        return self.succeeded + self.failed

    @property
    def success_rate(self) -> float | None:
        """The share of calls that succeeded, from 0 to 1; None if there are no calls."""
        return self.succeeded / self.calls if self.calls else None

    @property
    def success_percent(self) -> int | None:
        """The success rate in percent, rounded, but 100 only if no call failed, and 0 only if all
        calls failed; None if there are no calls."""
        if not self.calls:
            return None
        if not self.failed or not self.succeeded:
            return 100 if self.succeeded else 0
        return min(99, max(1, round(100 * self.succeeded / self.calls)))

    @property
    def p50_ms(self) -> int | None:
        return estimate_percentile(self.histogram, 0.50, self.slowest_ms)

    @property
    def p95_ms(self) -> int | None:
        return estimate_percentile(self.histogram, 0.95, self.slowest_ms)


def estimate_percentile(histogram: Sequence[int], share: float, slowest_ms: int) -> int | None:
    """Estimate a percentile of the durations in ms; it is as precise as the histogram's bucket.
    Return None if there are no calls."""
    total = sum(histogram)
    if not total:
        return None
    rank = share * total
    ends = [*BUCKETS.values(), max(slowest_ms, *BUCKETS.values())]
    starts = [0, *BUCKETS.values()]
    for count, upto, start, end in zip(histogram, accumulate(histogram), starts, ends, strict=True):
        if count and upto >= rank:
            inside = max(0.0, rank - (upto - count)) / count
            return round(start + inside * (max(start, min(end, slowest_ms)) - start))
    return slowest_ms


def get_first_day() -> date:
    """Return the first of the last 30 days."""
    return get_today() - timedelta(days=DAYS - 1)


def get_today() -> date:
    """Return the current day in UTC."""
    return timezone.now().astimezone(UTC).date()


def load_tool_figures(organization_id: int) -> dict[str, Figures]:
    """Load the figures of each tool in an organization; tools that nobody called are left out."""
    rows = ToolFigures.objects.filter(organization_id=organization_id)
    return _sum_by_tool(rows.filter(day__gte=get_first_day()))


def load_employee_figures(employee_id: int) -> dict[str, Figures]:
    """Load the figures of each tool for one employee; tools that the employee did not call are left
    out."""
    rows = EmployeeFigures.objects.filter(employee_id=employee_id)
    return _sum_by_tool(rows.filter(day__gte=get_first_day()))


def combine_figures(figures: Iterable[Figures]) -> Figures:
    """Combine the figures of several tools or days into one."""
    every = list(figures)
    days: defaultdict[date, DayCalls] = defaultdict(DayCalls)
    for each in every:
        for day, calls in each.days.items():
            days[day] = days[day].add(calls)
    errors = [each.last_error for each in every if each.last_error]
    return Figures(
        **{name: sum(getattr(each, name) for each in every) for name in _SUMS},
        slowest_ms=max((each.slowest_ms for each in every), default=0),
        histogram=tuple(map(sum, zip(*(each.histogram for each in every), strict=True)))
        or _EMPTY_HISTOGRAM,
        last_error=max(errors, key=lambda error: error.at, default=None),
        days=dict(days),
    )


def load_employee_use(employee_id: int) -> dict[date, ModelUse]:
    """Load the usage of an employee's passes, for each day on which the employee worked."""
    rows = EmployeeUse.objects.filter(employee_id=employee_id, day__gte=get_first_day()).order_by(
        "day"
    )
    days = rows.values_list("day", *ModelUse._fields, named=True)
    return {row.day: ModelUse(*(getattr(row, name) for name in ModelUse._fields)) for row in days}


def load_counted_at() -> datetime | None:
    """Return the time when a sweeper last counted; None if no sweeper has counted yet."""
    return (
        FiguresHead.objects.filter(pk=FiguresHead.ONLY).values_list("looked_at", flat=True).first()
    )


def _sum_by_tool(rows: QuerySet[ToolFigures] | QuerySet[EmployeeFigures]) -> dict[str, Figures]:
    found: defaultdict[str, list[Figures]] = defaultdict(list)
    fields = (
        "tool",
        "day",
        "last_error_code",
        "last_error",
        "last_error_at",
        "slowest_ms",
        *_SUMS,
        *_HISTOGRAM,
    )
    for tool, day, code, message, at, slowest, *numbers in rows.order_by("day").values_list(
        *fields
    ):
        sums, histogram = dict(zip(_SUMS, numbers, strict=False)), tuple(numbers[len(_SUMS) :])
        calls = DayCalls(sums["succeeded"], sums["failed"], sums["cost_micros"])
        error = LastError(code, message, at) if at else None
        one_day = Figures(
            **sums, slowest_ms=slowest, histogram=histogram, last_error=error, days={day: calls}
        )
        found[tool].append(one_day)
    return {tool: combine_figures(days) for tool, days in found.items()}
