"""Count people's decisions into a row for each day, so that a page about 90 days reads only the
newest cards.

Decisions that are more than half an hour old no longer change: by then, their transactions have
been committed, and their bulk decisions have ended. A sweeper counts these decisions; a page adds
the newer decisions.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from agents.accounts.models import Organization
from agents.insight.decision_spans import Data, DaySums, merge, select_decisions, sum_decisions
from agents.insight.figures import get_today
from agents.insight.models import DecisionFigures, DecisionHead
from agents.runs.models import Approval

KEPT_DAYS = 92
"""The number of days for which rows are kept: more than any page shows."""
UNSETTLED = timedelta(minutes=30)
EVERY = timedelta(minutes=5)
AT_ONCE_S = 0.3
"""The longest time, in seconds, for which counting may block the sweeper's other work. A span that
was already started is completed anyway."""
MAX_SPAN = timedelta(hours=6)
MAX_TIMES = 100
"""The maximum number of different times in a day's row. If there are more, the times are rounded to
two digits, so that the row stays small."""
TIMES = "times"


class DecisionCounting:
    """Counts decisions every few minutes; each sweeper has its own instance."""

    def __init__(self) -> None:
        self._due_at = 0.0

    def count_if_due(self) -> None:
        """Count due decisions for a short time; if some are left, the next call continues with
        them."""
        if time.monotonic() >= self._due_at and not count_decisions(time.monotonic() + AT_ONCE_S):
            self._due_at = time.monotonic() + EVERY.total_seconds()


def count_decisions(until: float | None = None, now: datetime | None = None) -> bool:
    """Count the settled decisions of every organization; return True if the time ran out first.

    Args:
        until: the deadline by the monotonic clock; None for no deadline.
    """
    settled = (now or timezone.now()) - UNSETTLED
    for organization_id in Organization.objects.order_by("pk").values_list("pk", flat=True):
        while _count_span(organization_id, settled):
            if until is not None and time.monotonic() >= until:
                return True
    return False


def load_sums(organization_id: int, days: int, subject: str) -> dict[date, Data]:
    """Load the sums of a subject for each of the last `days` days that has decisions."""
    return load_all_sums(organization_id, days, (subject,)).get(subject, {})


def load_all_sums(
    organization_id: int, days: int, subjects: Iterable[str]
) -> dict[str, dict[date, Data]]:
    """Load the sums of several subjects for each of the last `days` days that has decisions, by
    subject and day."""
    first = get_today() - timedelta(days=days - 1)
    found: dict[str, dict[date, Data]] = {subject: {} for subject in subjects}
    counted_to = read_counted_to(organization_id)
    rows = DecisionFigures.objects.filter(
        organization_id=organization_id, day__gte=first, subject__in=found
    )
    stored = list(rows.values_list("subject", "day", "data")) if counted_to else []
    # Read again if decisions were counted in the meantime; otherwise they would be counted twice.
    while counted_to != (now := read_counted_to(organization_id)):
        counted_to, stored = now, list(rows.values_list("subject", "day", "data"))
    for subject, day, data in stored:
        found[subject][day] = data
    newest = sum_decisions(
        organization_id, max(counted_to or get_midnight(first), get_midnight(first))
    )
    for (day, subject), data in newest.items():
        if subject in found and day >= first:
            merge(found[subject].setdefault(day, {}), data)
    return found


def read_counted_to(organization_id: int) -> datetime | None:
    """Return the time before which the organization's decisions are counted; None if no decisions
    are counted yet."""
    heads = DecisionHead.objects.filter(organization_id=organization_id)
    return heads.values_list("until", flat=True).first()


def get_midnight(day: date) -> datetime:
    """Return the beginning of the day in UTC."""
    return datetime.combine(day, datetime.min.time(), UTC)


def compute_median(times: Mapping[str, int]) -> int:
    """Return the median of times in ms, given the number of each."""
    ordered = sorted((int(ms), many) for ms, many in times.items())
    total = sum(many for _, many in ordered)
    wanted, passed, middle = ((total - 1) // 2, total // 2), 0, Counter[int]()
    for ms, many in ordered:
        middle[ms] += sum(passed <= place < passed + many for place in wanted)
        passed += many
    return round(sum(ms * many for ms, many in middle.items()) / 2)


def _count_span(organization_id: int, settled: datetime) -> bool:
    """Count the next span of an organization's decisions; the span ends no later than its day.
    Return True if more is left."""
    with transaction.atomic():
        head = _lock_head(organization_id)
        if head is None:
            return False
        is_ahead = head.until > settled + UNSETTLED  # the clock was ahead at the last count
        if not is_ahead and settled - head.until < EVERY:
            return False
        _begin_again_if_late(head, is_ahead=is_ahead)
        next_at = select_decisions(organization_id).filter(
            decided_at__gte=head.until, decided_at__lt=settled
        )
        start = next_at.order_by("decided_at").values_list("decided_at", flat=True).first()
        if start is None:
            head.until = settled
        else:
            midnight = get_midnight(start.astimezone(UTC).date() + timedelta(days=1))
            until = min(settled, midnight, start + MAX_SPAN)
            _store(organization_id, sum_decisions(organization_id, head.until, until))
            head.until = until
        newest = Approval.objects.filter(organization_id=organization_id).aggregate(
            newest=Max("pk")
        )["newest"]
        head.newest_id = newest or 0
        head.save()
        return head.until < settled


def _lock_head(organization_id: int) -> DecisionHead | None:
    """Lock an organization's row, or create it; return None while another process counts."""
    first = get_midnight(get_today() - timedelta(days=KEPT_DAYS))
    heads = DecisionHead.objects.select_for_update(skip_locked=True).filter(
        organization_id=organization_id
    )
    head = heads.first()
    if head is None and not DecisionHead.objects.filter(organization_id=organization_id).exists():
        DecisionHead.objects.get_or_create(
            organization_id=organization_id, defaults={"until": first}
        )
        head = heads.first()
    return head


def _begin_again_if_late(head: DecisionHead, *, is_ahead: bool) -> None:
    """Count all decisions again if some were recorded late, for example by an import, or if the
    clock was ahead. Otherwise, delete the rows of days that are no longer kept."""
    first = get_midnight(get_today() - timedelta(days=KEPT_DAYS))
    newer = select_decisions(head.organization_id).filter(pk__gt=head.newest_id)
    late = newer.filter(decided_at__gte=first, decided_at__lt=head.until)
    rows = DecisionFigures.objects.filter(organization_id=head.organization_id)
    # Use `count`: for EXISTS or MIN, the database would read all earlier decisions in order.
    if is_ahead or late.count():
        head.until = first
        rows.delete()
    else:
        rows.filter(day__lt=first.date()).delete()


def _store(organization_id: int, sums: DaySums) -> None:
    """Add the sums to the rows of their days."""
    days, subjects = {day for day, _ in sums}, {subject for _, subject in sums}
    rows = DecisionFigures.objects.filter(
        organization_id=organization_id, day__in=days, subject__in=subjects
    )
    stored = {(row.day, row.subject): row for row in rows}
    for (day, subject), data in sums.items():
        row = stored.get((day, subject)) or DecisionFigures(
            organization_id=organization_id, day=day, subject=subject
        )
        merge(row.data, data)
        _round_times(row.data)
        row.save()


def _round_times(data: Data) -> None:
    """Round the times of a day to two digits if there are many."""
    for name, value in data.items():
        if name == TIMES and len(value) > MAX_TIMES:
            rounded = Counter[str]()
            for ms, many in value.items():
                rounded[str(round(int(ms), min(0, 2 - len(ms))))] += many
            data[name] = dict(rounded)
        elif isinstance(value, dict):
            _round_times(value)
