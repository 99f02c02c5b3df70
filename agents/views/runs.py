"""Runs: the list of them, and the page of one with its live activity panel."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.middleware.csrf import get_token
from django.shortcuts import redirect

from agents import runs
from agents.desk.panel import folded, lines_of
from agents.models import Employee, Event, Membership, Run, RunStatus
from agents.refusals import Invalid, NotFound
from agents.schemas import row_id

from .pages import framed, page

PAGE_SIZE = 30
MOST_LINES = 300


@page("GET")
def all_runs(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """All runs, newest first, by status, employee and text; the cursor is the id of the last run shown."""
    rows = _matching(_runs_of(member), request)
    cursor = _id_or_none(request.GET.get("before", ""))
    if cursor is not None:
        rows = rows.filter(pk__lt=cursor)
    shown = list(rows.order_by("-pk")[: PAGE_SIZE + 1])
    more = len(shown) > PAGE_SIZE
    query = request.GET.copy()
    query["before"] = str(shown[PAGE_SIZE - 1].pk) if more else ""
    context = {
        "runs": shown[:PAGE_SIZE],
        "next_query": query.urlencode() if more else "",
        "statuses": RunStatus.choices,
        "employees": Employee.objects.filter(organization_id=member.organization_id),
        "chosen": request.GET,
    }
    return framed(request, member, "runs/list.html", context)


@page("GET")
def run_page(request: HttpRequest, member: Membership, run_id: int) -> HttpResponseBase:
    """One run; the newest 300 lines live, or with `?before=SEQ` the 300 before that one, to read."""
    run = _found(member, run_id)
    before = _id_or_none(request.GET.get("before", ""))
    events = _events(run, before)
    lines = lines_of(run.pk, folded(events), run, get_token(request))
    first = events[0].seq if events else 1
    context: dict[str, Any] = {
        "run": run,
        "lines": [line for line in lines if line.html],
        "after": events[-1].seq if events else 0,
        "earlier": first if first > 1 else None,
        "is_live": before is None,
        "place": "runs",
    }
    return framed(request, member, "runs/run.html", context)


@page("POST")
def cancel(_request: HttpRequest, member: Membership, run_id: int) -> HttpResponseBase:
    """Asks the run to end."""
    runs.cancel(member, run_id)
    return redirect("run", run_id)


@page("POST")
def add_message(request: HttpRequest, member: Membership, run_id: int) -> HttpResponseBase:
    """Tells the employee something more; a run that has ended takes up its work again."""
    runs.add_message(member, run_id, request.POST.get("text", "").replace("\r\n", "\n").strip())
    return redirect("run", run_id)


@page("POST")
def continue_run(request: HttpRequest, member: Membership, run_id: int) -> HttpResponseBase:
    """Gives the run more passes."""
    wanted = request.POST.get("max_passes", "").strip()
    if wanted and not (wanted.isascii() and wanted.isdigit()):
        raise Invalid("max_passes", f"{wanted[:40]!r} is not a number of passes.")
    runs.continue_run(member, run_id, int(wanted[:6]) if wanted else None)
    return redirect("run", run_id)


def _runs_of(member: Membership) -> QuerySet[Run]:
    return Run.objects.filter(organization_id=member.organization_id).select_related("employee__provider")


def _found(member: Membership, run_id: int) -> Run:
    run = _runs_of(member).filter(pk=run_id).first()
    if run is None:
        raise NotFound(f"There is no run {run_id}.")
    return run


def _events(run: Run, before: int | None) -> list[Event]:
    rows = run.events.order_by("-seq")
    if before is not None:
        rows = rows.filter(seq__lt=before)
    return list(rows[:MOST_LINES])[::-1]


def _matching(rows: QuerySet[Run], request: HttpRequest) -> QuerySet[Run]:
    status, text = request.GET.get("status", ""), request.GET.get("q", "").strip().replace("\0", "")
    if status in RunStatus.values:
        rows = rows.filter(status=status)
    employee = _id_or_none(request.GET.get("employee", ""))
    if employee is not None:
        rows = rows.filter(employee_id=employee)
    if text:
        rows = rows.filter(Q(title__icontains=text[:200]) | Q(task__icontains=text[:200]))
    return rows


def _id_or_none(text: str) -> int | None:
    try:
        return row_id(text)
    except ValueError:
        return None
