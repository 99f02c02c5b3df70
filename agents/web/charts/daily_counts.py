"""Counts for each of the last 14 days: started runs, tool calls and decided cards.

Counts that are more than half an hour old no longer change, so each process caches them. A page
counts only the time since then, in one statement whose cost does not grow with the tables.
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
from agents.runs.models import APPROVED_STATES, Approval, ApprovalStatus, Run, ToolCall
from tools.caches import Cache

DAYS = 14
UNSETTLED = timedelta(minutes=30)
"""The age up to which counts can still change: a transaction may commit later, and an approval may
be undone."""
MAX_CACHED = 1000


class DailyCounts(NamedTuple):
    """The counts for a span of time."""

    runs: int = 0
    calls: int = 0
    approved: int = 0
    denied: int = 0

    def add(self, other: DailyCounts) -> DailyCounts:
        """Return the sums of these counts and the other counts."""
        return DailyCounts(*map(sum, zip(self, other, strict=True)))


@dataclass(frozen=True)
class Day:
    """One day, from midnight to midnight in the installation's time zone."""

    date: date
    figures: DailyCounts


@dataclass(frozen=True)
class _Span:
    """A span of time within one day; `end` is excluded."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class _CachedCounts:
    """The counts of each day, up to the moment `until`."""

    until: datetime
    days: dict[date, DailyCounts]


_cache: Cache[int, _CachedCounts] = Cache(MAX_CACHED)


def load_last_days(organization_id: int, now: datetime | None = None) -> list[Day]:
    """Load the counts of an organization for the last 14 days, today last."""
    now = timezone.localtime(now, timezone.get_default_timezone())
    midnights = [
        _get_midnight(now.date() - timedelta(days=back)) for back in range(DAYS - 1, -2, -1)
    ]
    first, end = midnights[0], midnights[-1]
    cached = _cache.get(organization_id) or _CachedCounts(first, {})
    settled = max(now - UNSETTLED, cached.until, first)
    old_spans = list(_split_at_midnights(max(cached.until, first), settled, midnights))
    new_spans = list(_split_at_midnights(settled, end, midnights))
    loaded = _load_counts(organization_id, [*old_spans, *new_spans])
    cached_days = {day: counts for day, counts in cached.days.items() if day >= first.date()}
    final_days = _add_counts(cached_days, old_spans, loaded[: len(old_spans)])
    _cache.put(organization_id, _CachedCounts(settled, final_days))
    days = _add_counts(final_days, new_spans, loaded[len(old_spans) :])
    return [Day(at.date(), days.get(at.date(), DailyCounts())) for at in midnights[:-1]]


def _get_midnight(day: date) -> datetime:
    return datetime.combine(day, time(), timezone.get_default_timezone())


def _split_at_midnights(
    start: datetime, end: datetime, midnights: list[datetime]
) -> Iterator[_Span]:
    """Split the time from start to end at each midnight."""
    cuts = [start, *(at for at in midnights if start < at < end), end]
    return (_Span(*pair) for pair in pairwise(cuts) if pair[0] < pair[1])


def _add_counts(
    days: dict[date, DailyCounts], spans: list[_Span], counts: list[DailyCounts]
) -> dict[date, DailyCounts]:
    """Add the counts of each span to the counts of its day."""
    sums = dict(days)
    for span, span_counts in zip(spans, counts, strict=True):
        day = timezone.localtime(span.start, timezone.get_default_timezone()).date()
        sums[day] = sums.get(day, DailyCounts()).add(span_counts)
    return sums


def _load_counts(organization_id: int, spans: list[_Span]) -> list[DailyCounts]:
    """Load the counts for each span, all in one statement, which reads one index range per count
    and span."""
    approved = {"status__in": APPROVED_STATES}
    denied = {"status": ApprovalStatus.DENIED}
    columns = [
        column
        for span in spans
        for column in (
            _build_count(Run, organization_id, _build_range("created_at", span)),
            _build_count(ToolCall, organization_id, _build_range("created_at", span)),
            _build_count(Approval, organization_id, _build_range("decided_at", span) | approved),
            _build_count(Approval, organization_id, _build_range("decided_at", span) | denied),
        )
    ]
    row = Organization.objects.filter(pk=organization_id).values_list(*columns).get()
    values = iter(number or 0 for number in row)
    return [DailyCounts(*four) for four in zip(values, values, values, values, strict=True)]


def _build_range(column: str, span: _Span) -> dict[str, Any]:
    return {f"{column}__gte": span.start, f"{column}__lt": span.end}


def _build_count(model: type[Model], organization_id: int, conditions: dict[str, Any]) -> Subquery:
    """Build a subquery that counts the rows; it returns NULL if there are no rows."""
    rows = model._default_manager.filter(organization_id=organization_id, **conditions).order_by()
    return Subquery(rows.values("organization_id").annotate(many=Count("*")).values("many"))
