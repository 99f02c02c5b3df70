"""Pages of the list of runs, newest first, filtered by status, employee and text.

An index answers a status or an employee. Other filters scan a limited number of runs, and the page says how far back
it searched, so its cost does not grow with the number of runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db.models import Model, Q, QuerySet

from agents.platform.queries.runs import annotate_waits
from agents.runs.models import Run

Row = TypeVar("Row", bound=Model)

PAGE_SIZE = 30
MAX_SCANNED = 10_000


@dataclass(frozen=True)
class RunListFilter:
    """A filter of runs; empty fields match any. `before` is the id of the last run of the page before."""

    status: str = ""
    employee_id: int | None = None
    text: str = ""
    before: int | None = None

    @property
    def needs_scan(self) -> bool:
        """True if no index answers the filter."""
        return bool(self.text or (self.status and self.employee_id is not None))


@dataclass(frozen=True)
class RunPage:
    """Runs of one page.

    Attributes:
        next_before: the cursor of the next page; None on the last page.
        scanned_to: the start of the oldest scanned run; None if the scan reached the end.
    """

    runs: list[Run]
    next_before: int | None
    scanned_to: datetime | None = None


def filter_by_status(rows: QuerySet[Row], status: str, then: str = "-pk") -> QuerySet[Row]:
    """Filter by status, in the order of the index, newest first by default.

    A prepared statement is planned without the status: with `=`, a rare status would be searched through all runs.
    Between two bounds, only the index by status has the rows in order.
    """
    return rows.filter(status__gte=status, status__lte=status).order_by("status", then)


def load_run_page(organization_id: int, wanted: RunListFilter, most: int = MAX_SCANNED) -> RunPage:
    """Load one page of an organization's runs; a filter without an index scans the next `most` of them."""
    rows = Run.objects.filter(organization_id=organization_id).order_by("-pk")
    if wanted.before is not None:
        rows = rows.filter(pk__lt=wanted.before)
    edge = _find_scan_limit(rows, wanted, most) if wanted.needs_scan else None
    if edge is not None:
        rows = rows.filter(pk__gte=edge[0])
    found = _apply_filter(rows, wanted).select_related("employee").defer("answer", "problem", "employee__instructions")
    shown = list(annotate_waits(found)[: PAGE_SIZE + 1])
    if len(shown) > PAGE_SIZE:
        return RunPage(shown[:PAGE_SIZE], shown[PAGE_SIZE - 1].pk)
    return RunPage(shown, *edge) if edge is not None else RunPage(shown, None)


def _find_scan_limit(rows: QuerySet[Run], wanted: RunListFilter, most: int) -> tuple[int, datetime] | None:
    """Return id and time of the last run to scan, if there are more."""
    if wanted.employee_id is not None:
        rows = rows.filter(employee_id=wanted.employee_id)
    elif wanted.status:
        rows = filter_by_status(rows, wanted.status)
    last = rows.values_list("pk", flat=True)[most - 1 : most + 1]
    ids = list(last)
    return (ids[0], Run.objects.values_list("created_at", flat=True).get(pk=ids[0])) if len(ids) > 1 else None


def _apply_filter(rows: QuerySet[Run], wanted: RunListFilter) -> QuerySet[Run]:
    if wanted.employee_id is not None:
        rows = rows.filter(employee_id=wanted.employee_id)
        if wanted.status:
            rows = rows.filter(status=wanted.status)
    elif wanted.status:
        rows = filter_by_status(rows, wanted.status)
    if wanted.text:
        rows = rows.filter(Q(title__icontains=wanted.text) | Q(task__icontains=wanted.text))
    return rows
