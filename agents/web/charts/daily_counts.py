"""Counts of each of the last 14 days: runs started, calls made, cards decided.

Counts that are more than half an hour old no longer change, so each process caches them. A page runs one statement for
the time since, whose cost does not depend on the number of rows in all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from django.db.models import Count, Model, Subquery
from django.utils import timezone

from agents.accounts.models import Organization
from agents.approvals.models import Approval, ApprovalStatus
from agents.runs.models import Run, ToolCall

DAYS = 14
UNSETTLED = timedelta(minutes=30)
"""Until then, a transaction may still commit with an earlier time, and an approval may be undone or asked again."""
MAX_CACHED = 1000


class DailyCounts(NamedTuple):
    """The counts of a span of time."""

    runs: int = 0
    calls: int = 0
    approved: int = 0
    denied: int = 0

    def plus(self, more: DailyCounts) -> DailyCounts:
        """Return the sum of both."""
        return DailyCounts(*(one + other for one, other in zip(self, more, strict=True)))


@dataclass(frozen=True)
class Day:
    """One day, from midnight to midnight of the installation's own time zone."""

    date: date
    figures: DailyCounts


@dataclass(frozen=True)
class _Span:
    """A span of time within one day, from `start` up to and without `end`."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class _Tally:
    """The cached counts of everything before `until`."""

    until: datetime
    days: dict[date, DailyCounts]


_cached: dict[int, _Tally] = {}


def load_last_days(organization_id: int, now: datetime | None = None) -> list[Day]:
    """Return the last 14 days of an organization, today last."""
    now = timezone.localtime(now, timezone.get_default_timezone())
    midnights = [_get_midnight(now.date() - timedelta(days=back)) for back in range(DAYS - 1, -2, -1)]
    first, end = midnights[0], midnights[-1]
    tally = _cached.get(organization_id) or _Tally(first, {})
    settled = max(now - UNSETTLED, tally.until, first)
    old = list(_split_at_midnights(max(tally.until, first), settled, midnights))
    new = list(_split_at_midnights(settled, end, midnights))
    counted = _load_counts(organization_id, [*old, *new])
    kept = _sum({day: each for day, each in tally.days.items() if day >= first.date()}, old, counted)
    _cache(organization_id, _Tally(settled, kept))
    whole = _sum(kept, new, counted[len(old) :])
    return [Day(at.date(), whole.get(at.date(), DailyCounts())) for at in midnights[:-1]]


def clear_cache() -> None:
    """Clear the cached counts."""
    _cached.clear()


def _get_midnight(day: date) -> datetime:
    return datetime.combine(day, time(), timezone.get_default_timezone())


def _split_at_midnights(start: datetime, end: datetime, midnights: list[datetime]) -> Iterator[_Span]:
    """Split the time between the two at the midnights."""
    cuts = [start, *(at for at in midnights if start < at < end), end]
    return (_Span(*pair) for pair in pairwise(cuts) if pair[0] < pair[1])


def _sum(days: dict[date, DailyCounts], spans: list[_Span], counted: list[DailyCounts]) -> dict[date, DailyCounts]:
    whole = dict(days)
    for span, figures in zip(spans, counted, strict=False):
        day = timezone.localtime(span.start, timezone.get_default_timezone()).date()
        whole[day] = whole.get(day, DailyCounts()).plus(figures)
    return whole


def _load_counts(organization_id: int, spans: list[_Span]) -> list[DailyCounts]:
    """Load all counts in one statement: one index range per count and span."""
    given = {"status__in": (ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED)}
    refused = {"status": ApprovalStatus.DENIED}
    columns = [
        column
        for span in spans
        for column in (
            _count(Run, organization_id, _within("created_at", span)),
            _count(ToolCall, organization_id, _within("created_at", span)),
            _count(Approval, organization_id, _within("decided_at", span) | given),
            _count(Approval, organization_id, _within("decided_at", span) | refused),
        )
    ]
    row = Organization.objects.filter(pk=organization_id).values_list(*columns).get()
    values = iter(number or 0 for number in row)
    return [DailyCounts(*four) for four in zip(values, values, values, values, strict=True)]


def _within(column: str, span: _Span) -> dict[str, Any]:
    return {f"{column}__gte": span.start, f"{column}__lt": span.end}


def _count(model: type[Model], organization_id: int, conditions: dict[str, Any]) -> Subquery:
    """Build a subquery that counts the rows; NULL for none."""
    rows = model._default_manager.filter(organization_id=organization_id, **conditions).order_by()
    return Subquery(rows.values("organization_id").annotate(many=Count("*")).values("many"))


def _cache(organization_id: int, tally: _Tally) -> None:
    _cached[organization_id] = tally
    if len(_cached) > MAX_CACHED:
        _cached.pop(next(iter(_cached)), None)
