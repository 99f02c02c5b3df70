"""The start page: hand over a task, see what waits and what is at work, and how much was done lately."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, Q
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from agents.accounts.models import Membership, Organization
from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.approvals.requesters import find_requesters
from agents.employees.budgets import get_current_month, list_organization_budgets
from agents.employees.models import Employee
from agents.platform.queries.runs import annotate_waits
from agents.platform.refusals import Conflict, Invalid, NotFound
from agents.platform.row_ids import parse_row_id
from agents.runs import actions
from agents.runs.models import ENDED, PARKED, Run, RunStatus
from agents.web.charts.charts import charts_of, table_of
from agents.web.charts.figures import last_days
from agents.web.lists.run_pages import with_status
from agents.web.text.people import initials
from agents.web.views.pages import framed, page

MOST_CARDS = 6
MOST_RUNS = 6
AT_WORK = (RunStatus.QUEUED, RunStatus.RUNNING)


@dataclass(frozen=True)
class Beginnings:
    """What an organization has done already, from nothing to the first decision."""

    has_employee: bool
    has_run: bool
    has_decision: bool

    @property
    def are_over(self) -> bool:
        """Whether nobody needs the guide any more."""
        return self.has_employee and self.has_run and self.has_decision


@dataclass(frozen=True)
class Person:
    """An employee as the form shows it, with the letters of its face."""

    employee: Employee
    initials: str
    is_chosen: bool


@page("GET", "POST")
def home(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """GET shows the page, with `?live=1` only what moves on it; POST starts a run and goes to it."""
    if request.method != "POST":
        if request.GET.get("live"):
            return framed(request, member, "home/live.html", _lists(member))
        return _shown(request, member, {})
    if not request.POST.get("task", "").strip():
        return _shown(request, member, {"problem": "Say what is to be done."}, status=422)
    try:
        submission = actions.Submission(
            employee_id=parse_row_id(request.POST.get("employee", "")),
            task=request.POST.get("task", "").replace("\r\n", "\n").strip(),
            client_request_id=request.POST.get("client_request_id", "")[:200],
        )
        run, _created = actions.submit(member, submission)
    except ValueError:
        return _shown(request, member, {"problem": "Choose an employee."}, status=422)
    except (Invalid, NotFound, Conflict) as refusal:
        return _shown(request, member, {"problem": refusal.detail}, status=refusal.status)
    return redirect("run", run.pk)


@page("GET")
def nothing_here(_request: HttpRequest, _member: Membership, rest: str) -> HttpResponseBase:
    """For addresses that are none of ours."""
    raise NotFound(f"There is no page /{rest}/.")


def _shown(request: HttpRequest, member: Membership, extra: dict[str, Any], status: int = 200) -> HttpResponse:
    rows = Employee.objects.filter(organization_id=member.organization_id, is_active=True)
    employees = list(rows.select_related("provider").defer("instructions", "provider__script", "provider__api_key"))
    days = last_days(member.organization_id)
    chosen = _chosen(request, employees)
    context = _lists(member) | {
        "people": [Person(each, initials(each.name), each == chosen) for each in employees],
        "task": request.POST.get("task", _example(request, chosen)),
        "most_text": actions.MOST_TEXT,
        "problem": "",
        "request_id": uuid.uuid4().hex,
        "charts": charts_of(days),
        "numbers": table_of(days),
        "budgets": list_organization_budgets(member.organization, get_current_month()),
    }
    shown = framed(request, member, "home/home.html", context | extra)
    shown.status_code = status
    return shown


def _lists(member: Membership) -> dict[str, Any]:
    """What moves: the guide, cards that wait, runs at work and runs that have ended."""
    cards = Approval.objects.filter(organization_id=member.organization_id)
    cards = with_status(cards, ApprovalStatus.PENDING, then="pk").select_related("run__employee")
    cards = cards.annotate(is_late_effect=Q(tool_call__late_effect__isnull=False))
    shown = list(cards.defer("params", "preview", "run__answer")[:MOST_CARDS])
    beginnings = _beginnings(member.organization_id)
    # Looked for in the order in which runs move, so that none slips by in between.
    parked, moving, recent = (_newest(member, *each) for each in (PARKED, AT_WORK, ENDED))
    moving = _without(moving, recent)
    at_work = [*moving, *_without(parked, [*moving, *recent])][:MOST_RUNS]
    return {
        "guide": None if beginnings.are_over else beginnings,
        "cards": shown,
        "own_cards": _find_own_cards(member, shown) if member.organization.four_eyes else set(),
        "at_work": at_work,
        "has_more_at_work": len(at_work) == MOST_RUNS,
        "is_moving": any(run.status in AT_WORK for run in at_work),
        "recent": recent,
    }


def _find_own_cards(member: Membership, cards: Sequence[Approval]) -> set[int]:
    """Return the cards whose calls this member asked for."""
    to_approve = [card for card in cards if card.kind == ApprovalKind.APPROVAL]
    found = find_requesters(to_approve)
    return {
        pk for pk, requesters in found.items() if any(requester.user_id == member.user_id for requester in requesters)
    }


def _newest(member: Membership, *statuses: RunStatus) -> list[Run]:
    """The newest runs with one of these statuses: one walk along the index for each, however many others there are."""
    rows = Run.objects.filter(organization_id=member.organization_id).select_related("employee")
    rows = rows.defer("answer", "problem", "employee__instructions")
    found = {run.pk: run for status in statuses for run in annotate_waits(with_status(rows, status))[:MOST_RUNS]}
    return [found[pk] for pk in sorted(found, reverse=True)][:MOST_RUNS]


def _without(runs_before: list[Run], later: list[Run]) -> list[Run]:
    """Those that had not moved on when the others were looked for."""
    moved = {run.pk for run in later}
    return [run for run in runs_before if run.pk not in moved]


def _beginnings(organization_id: int) -> Beginnings:
    """The facts behind the guide, in one statement."""
    decided = Approval.objects.filter(decided_at__isnull=False, decided_by__isnull=False)
    facts = [rows.filter(organization_id=organization_id) for rows in (Employee.objects, Run.objects, decided)]
    row = Organization.objects.filter(pk=organization_id).values_list(*(Exists(rows) for rows in facts))
    return Beginnings(*row.get())


def _chosen(request: HttpRequest, employees: list[Employee]) -> Employee | None:
    """The employee that the form or the address names; else the first."""
    wanted = request.POST.get("employee", request.GET.get("employee", ""))
    return next((each for each in employees if str(each.pk) == wanted), employees[0] if employees else None)


def _example(request: HttpRequest, employee: Employee | None) -> str:
    """The example task that the address names by its place: never a text of the address's own."""
    place = request.GET.get("example", "")
    examples = employee.example_tasks if employee is not None else []
    if not (place.isascii() and place.isdigit() and len(place) < 4 and int(place) < len(examples)):
        return ""
    return str(examples[int(place)])
