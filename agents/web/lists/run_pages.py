"""Pages of the list of runs, newest first, filtered by status, employee and text.

An index serves a filter by status or by employee. Other filters scan a limited number of runs, so
the cost does not grow with the number of runs, and the page says how far back it searched.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db.models import Model, Q, QuerySet

from agents.runs.models import Run
from agents.runs.queries.runs import annotate_waits

Row = TypeVar("Row", bound=Model)

PAGE_SIZE = 30
MAX_SCANNED = 10_000


@dataclass(frozen=True)
class RunListFilter:
    """A filter of runs; an empty field matches any run. `before` is the id of the last run on the
    previous page."""

    status: str = ""
    employee_id: int | None = None
    text: str = ""
    before: int | None = None

    @property
    def needs_scan(self) -> bool:
        """True if no index serves the filter."""
        return bool(self.text or (self.status and self.employee_id is not None))


@dataclass(frozen=True)
class RunPage:
    """One page of runs.

    Attributes:
        next_before: the cursor of the next page; None on the last page.
        scanned_to: the start of the oldest scanned run; None if the scan reached the end.
    """

    runs: list[Run]
    next_before: int | None
    scanned_to: datetime | None = None


def filter_by_status(rows: QuerySet[Row], status: str, then: str = "-pk") -> QuerySet[Row]:
    """Filter by status, in the order of the index, newest first by default.

    The database plans a prepared statement without knowing the status: with `=`, it could scan all
    runs for a rare status. With two bounds, it uses the index by status, because no other index has
    these rows in order.
    """
    return rows.filter(status__gte=status, status__lte=status).order_by("status", then)


def load_run_page(
    organization_id: int, criteria: RunListFilter, max_scanned: int = MAX_SCANNED
) -> RunPage:
    """Load one page of an organization's runs.

    Args:
        max_scanned: the number of runs to scan for a filter without an index.
    """
    rows = Run.objects.filter(organization_id=organization_id).order_by("-pk")
    if criteria.before is not None:
        rows = rows.filter(pk__lt=criteria.before)
    scan_end = _find_scan_end(rows, criteria, max_scanned) if criteria.needs_scan else None
    if scan_end is not None:
        rows = rows.filter(pk__gte=scan_end[0])
    rows = _apply_filter(rows, criteria).select_related("employee")
    rows = rows.defer("answer", "problem", "employee__instructions")
    runs = list(annotate_waits(rows)[: PAGE_SIZE + 1])
    if len(runs) > PAGE_SIZE:
        return RunPage(runs[:PAGE_SIZE], runs[PAGE_SIZE - 1].pk)
    return RunPage(runs, *scan_end) if scan_end is not None else RunPage(runs, None)


def _find_scan_end(
    rows: QuerySet[Run], criteria: RunListFilter, max_scanned: int
) -> tuple[int, datetime] | None:
    """Return the id and time of the last run to scan; None if there are at most
    `max_scanned` runs."""
    if criteria.employee_id is not None:
        rows = rows.filter(employee_id=criteria.employee_id)
    elif criteria.status:
        rows = filter_by_status(rows, criteria.status)
    last_two = list(rows.values_list("pk", flat=True)[max_scanned - 1 : max_scanned + 1])
    if len(last_two) < 2:
        return None
    return last_two[0], Run.objects.values_list("created_at", flat=True).get(pk=last_two[0])


def _apply_filter(rows: QuerySet[Run], criteria: RunListFilter) -> QuerySet[Run]:
    if criteria.employee_id is not None:
        rows = rows.filter(employee_id=criteria.employee_id)
        if criteria.status:
            rows = rows.filter(status=criteria.status)
    elif criteria.status:
        rows = filter_by_status(rows, criteria.status)
    if criteria.text:
        rows = rows.filter(Q(title__icontains=criteria.text) | Q(task__icontains=criteria.text))
    return rows
