"""How much happened on each of the last 14 days: runs started, calls made, cards decided.

What lies further back than a few minutes does not change, so each process counts it once and remembers it. A page
asks one statement for what came since, whose cost does not depend on how much there is altogether.
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
"""Younger than that, a transaction may still commit with an earlier time, and an approval may be undone, or asked anew
because its call could not start for a quarter of an hour."""
MOST_REMEMBERED = 1000


class Figures(NamedTuple):
    """What happened in a span of time."""

    runs: int = 0
    calls: int = 0
    approved: int = 0
    denied: int = 0

    def plus(self, more: Figures) -> Figures:
        """Both together."""
        return Figures(*(one + other for one, other in zip(self, more, strict=True)))


@dataclass(frozen=True)
class Day:
    """One day, from midnight to midnight of the installation's own time zone."""

    date: date
    figures: Figures


@dataclass(frozen=True)
class _Span:
    """From `start` up to, but without, `end`; both on the same day."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class _Tally:
    """What was counted already: everything before `until`."""

    until: datetime
    days: dict[date, Figures]


_remembered: dict[int, _Tally] = {}


def last_days(organization_id: int, now: datetime | None = None) -> list[Day]:
    """The last 14 days of an organization, today last."""
    now = timezone.localtime(now, timezone.get_default_timezone())
    midnights = [_midnight(now.date() - timedelta(days=back)) for back in range(DAYS - 1, -2, -1)]
    first, end = midnights[0], midnights[-1]
    tally = _remembered.get(organization_id) or _Tally(first, {})
    settled = max(now - UNSETTLED, tally.until, first)
    old = list(_spans(max(tally.until, first), settled, midnights))
    new = list(_spans(settled, end, midnights))
    counted = _counted(organization_id, [*old, *new])
    kept = _sum({day: each for day, each in tally.days.items() if day >= first.date()}, old, counted)
    _remember(organization_id, _Tally(settled, kept))
    whole = _sum(kept, new, counted[len(old) :])
    return [Day(at.date(), whole.get(at.date(), Figures())) for at in midnights[:-1]]


def forget() -> None:
    """Everything is counted anew."""
    _remembered.clear()


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), timezone.get_default_timezone())


def _spans(start: datetime, end: datetime, midnights: list[datetime]) -> Iterator[_Span]:
    """The time between the two, cut at the midnights."""
    cuts = [start, *(at for at in midnights if start < at < end), end]
    return (_Span(*pair) for pair in pairwise(cuts) if pair[0] < pair[1])


def _sum(days: dict[date, Figures], spans: list[_Span], counted: list[Figures]) -> dict[date, Figures]:
    whole = dict(days)
    for span, figures in zip(spans, counted, strict=False):
        day = timezone.localtime(span.start, timezone.get_default_timezone()).date()
        whole[day] = whole.get(day, Figures()).plus(figures)
    return whole


def _counted(organization_id: int, spans: list[_Span]) -> list[Figures]:
    """One statement: a count over a range of an index for each figure of each span."""
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
    return [Figures(*four) for four in zip(values, values, values, values, strict=True)]


def _within(column: str, span: _Span) -> dict[str, Any]:
    return {f"{column}__gte": span.start, f"{column}__lt": span.end}


def _count(model: type[Model], organization_id: int, conditions: dict[str, Any]) -> Subquery:
    """How many rows; of none, NULL."""
    rows = model._default_manager.filter(organization_id=organization_id, **conditions).order_by()
    return Subquery(rows.values("organization_id").annotate(many=Count("*")).values("many"))


def _remember(organization_id: int, tally: _Tally) -> None:
    _remembered[organization_id] = tally
    if len(_remembered) > MOST_REMEMBERED:
        _remembered.pop(next(iter(_remembered)), None)
