"""The start page: hand over a task, see what waits and what is at work."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from agents import runs
from agents.models import ENDED, Approval, ApprovalStatus, Employee, Membership, Run
from agents.refusals import Invalid, NotFound
from agents.schemas import row_id

from .pages import framed, page

MOST_CARDS = 10
MOST_RUNS = 10


@page("GET", "POST")
def home(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """GET shows the page; POST starts a run and goes to it."""
    if request.method != "POST":
        return _shown(request, member, {})
    try:
        submission = runs.Submission(
            employee_id=row_id(request.POST.get("employee", "")),
            task=request.POST.get("task", "").replace("\r\n", "\n").strip(),
            client_request_id=request.POST.get("client_request_id", "")[:200],
        )
        run, _created = runs.submit(member, submission)
    except ValueError:
        return _shown(request, member, {"problem": "Choose an employee."}, status=422)
    except (Invalid, NotFound) as refusal:
        return _shown(request, member, {"problem": refusal.detail}, status=refusal.status)
    return redirect("run", run.pk)


@page("GET")
def nothing_here(_request: HttpRequest, _member: Membership, rest: str) -> HttpResponseBase:
    """For addresses that are none of ours."""
    raise NotFound(f"There is no page /{rest}/.")


def _shown(request: HttpRequest, member: Membership, extra: dict[str, Any], status: int = 200) -> HttpResponse:
    employees = Employee.objects.filter(organization_id=member.organization_id, is_active=True)
    cards = Approval.objects.filter(organization_id=member.organization_id, status=ApprovalStatus.PENDING)
    at_work = _runs_of(member).exclude(status__in=ENDED)
    context = {
        "employees": employees.select_related("provider"),
        "cards": cards.select_related("tool_call", "run__employee").order_by("pk")[:MOST_CARDS],
        "at_work": at_work.order_by("-pk")[:MOST_RUNS],
        "recent": _runs_of(member).filter(status__in=ENDED).order_by("-pk")[:MOST_RUNS],
        "chosen": request.POST.get("employee", ""),
        "task": request.POST.get("task", ""),
    }
    page = framed(request, member, "home/home.html", context | extra)
    page.status_code = status
    return page


def _runs_of(member: Membership) -> QuerySet[Run]:
    return Run.objects.filter(organization_id=member.organization_id).select_related("employee")
