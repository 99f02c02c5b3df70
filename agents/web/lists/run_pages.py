"""Pages of the list of runs: by status, employee and text, newest first, each behind the one before.

An index answers for a status or an employee. What no index answers for looks through a limited number of runs, and
says how far back it came, so that a page never costs more the more runs there are.
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
MOST_LOOKED_THROUGH = 10_000


@dataclass(frozen=True)
class Wanted:
    """Which runs; empty means any. `before` is the id of the last run that was looked at."""

    status: str = ""
    employee_id: int | None = None
    text: str = ""
    before: int | None = None

    @property
    def needs_looking(self) -> bool:
        """Whether no index leads to them."""
        return bool(self.text or (self.status and self.employee_id is not None))


@dataclass(frozen=True)
class RunPage:
    """Runs of one page.

    Attributes:
        next_before: where the next page begins; None after the last.
        looked_back_to: when the oldest run that was looked at was started; None if the search went to its end.
    """

    runs: list[Run]
    next_before: int | None
    looked_back_to: datetime | None = None


def with_status(rows: QuerySet[Row], status: str, then: str = "-pk") -> QuerySet[Row]:
    """Those with this status, newest first unless said otherwise, in the order of their index.

    A prepared statement is planned without knowing which status is meant; asked for with `=`, a rare one would be
    looked for through all runs. Between two bounds, only the index by status has them in order.
    """
    return rows.filter(status__gte=status, status__lte=status).order_by("status", then)


def page_of_runs(organization_id: int, wanted: Wanted, most: int = MOST_LOOKED_THROUGH) -> RunPage:
    """One page of an organization's runs; with a text, or a status and an employee, of the next `most` of them."""
    rows = Run.objects.filter(organization_id=organization_id).order_by("-pk")
    if wanted.before is not None:
        rows = rows.filter(pk__lt=wanted.before)
    edge = _edge(rows, wanted, most) if wanted.needs_looking else None
    if edge is not None:
        rows = rows.filter(pk__gte=edge[0])
    found = _fitting(rows, wanted).select_related("employee").defer("answer", "problem", "employee__instructions")
    shown = list(annotate_waits(found)[: PAGE_SIZE + 1])
    if len(shown) > PAGE_SIZE:
        return RunPage(shown[:PAGE_SIZE], shown[PAGE_SIZE - 1].pk)
    return RunPage(shown, *edge) if edge is not None else RunPage(shown, None)


def _edge(rows: QuerySet[Run], wanted: Wanted, most: int) -> tuple[int, datetime] | None:
    """The last of the runs that are looked through, if there are more: its id and its time."""
    if wanted.employee_id is not None:
        rows = rows.filter(employee_id=wanted.employee_id)
    elif wanted.status:
        rows = with_status(rows, wanted.status)
    last = rows.values_list("pk", flat=True)[most - 1 : most + 1]
    ids = list(last)
    return (ids[0], Run.objects.values_list("created_at", flat=True).get(pk=ids[0])) if len(ids) > 1 else None


def _fitting(rows: QuerySet[Run], wanted: Wanted) -> QuerySet[Run]:
    if wanted.employee_id is not None:
        rows = rows.filter(employee_id=wanted.employee_id)
        if wanted.status:
            rows = rows.filter(status=wanted.status)
    elif wanted.status:
        rows = with_status(rows, wanted.status)
    if wanted.text:
        rows = rows.filter(Q(title__icontains=wanted.text) | Q(task__icontains=wanted.text))
    return rows
