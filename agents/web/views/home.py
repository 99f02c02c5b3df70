"""The start page: the form for a new task, waiting cards, active and finished runs, and figures."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, Q
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from agents.accounts.models import Membership, Organization
from agents.approvals.requesters import find_requesters
from agents.approvals.warnings.card_marks import load_marks_of
from agents.employees.models import Employee
from agents.platform.refusals import Conflict, Invalid, NotFound
from agents.platform.row_ids import parse_row_id
from agents.runs import actions
from agents.runs.budgets import get_current_month, list_organization_budgets
from agents.runs.models import ENDED, PARKED, Approval, ApprovalKind, ApprovalStatus, Run, RunStatus
from agents.runs.queries.runs import annotate_waits
from agents.web.charts.bar_charts import build_charts, build_table
from agents.web.charts.daily_counts import load_last_days
from agents.web.lists.run_pages import filter_by_status
from agents.web.text.initials import build_initials
from agents.web.views.pages import member_view, render_page

MAX_CARDS = 6
MAX_RUNS = 6
ACTIVE = (RunStatus.QUEUED, RunStatus.RUNNING)


@dataclass(frozen=True)
class FirstSteps:
    """The steps of the start page's guide that an organization has completed."""

    has_employee: bool
    has_run: bool
    has_decision: bool

    @property
    def is_complete(self) -> bool:
        """True if the guide is no longer needed."""
        return self.has_employee and self.has_run and self.has_decision


@dataclass(frozen=True)
class EmployeeChoice:
    """An employee as a choice in the form, with its initials."""

    employee: Employee
    initials: str
    is_chosen: bool


@member_view("GET", "POST")
def home(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the start page, or with `?live=1` only its live lists; POST starts a run and redirects
    to it."""
    if request.method != "POST":
        if request.GET.get("live"):
            return render_page(request, member, "home/live.html", _load_live_lists(member))
        return _render_home(request, member, {})
    if not request.POST.get("task", "").strip():
        return _render_home(request, member, {"problem": "Describe the task."}, status=422)
    try:
        submission = actions.Submission(
            employee_id=parse_row_id(request.POST.get("employee", "")),
            task=request.POST.get("task", "").replace("\r\n", "\n").strip(),
            client_request_id=request.POST.get("client_request_id", "")[:200],
            is_typed=True,
        )
        run, _created = actions.submit(member, submission)
    except ValueError:
        return _render_home(request, member, {"problem": "Choose an employee."}, status=422)
    except (Invalid, NotFound, Conflict) as refusal:
        return _render_home(request, member, {"problem": refusal.detail}, status=refusal.status)
    return redirect("run", run.pk)


@member_view("GET")
def reject_unknown_page(_request: HttpRequest, _member: Membership, rest: str) -> HttpResponseBase:
    """Return 404 for an unknown address."""
    raise NotFound(f"We can’t find /{rest}/.")


def _render_home(
    request: HttpRequest, member: Membership, extra: dict[str, Any], status: int = 200
) -> HttpResponse:
    rows = Employee.objects.filter(organization_id=member.organization_id, is_active=True)
    employees = list(rows.select_related("provider").defer("instructions", "provider__api_key"))
    days = load_last_days(member.organization_id)
    chosen = _find_chosen_employee(request, employees)
    context = _load_live_lists(member) | {
        "employees": [
            EmployeeChoice(each, build_initials(each.name), each == chosen) for each in employees
        ],
        "task": request.POST.get("task", _find_example(request, chosen)),
        "max_text": actions.MAX_TEXT,
        "problem": "",
        "request_id": uuid.uuid4().hex,
        "charts": build_charts(days),
        "figures_by_day": build_table(days),
        "budgets": list_organization_budgets(member.organization, get_current_month()),
    }
    page = render_page(request, member, "home/home.html", context | extra)
    page.status_code = status
    return page


def _load_live_lists(member: Membership) -> dict[str, Any]:
    """Load the parts that change: the guide, waiting cards, active runs and finished runs."""
    approvals = Approval.objects.filter(organization_id=member.organization_id)
    waiting = filter_by_status(approvals, ApprovalStatus.PENDING, then="pk").select_related(
        "run__employee"
    )
    waiting = waiting.annotate(is_late_effect=Q(tool_call__late_effect__isnull=False))
    cards = list(waiting.defer("params", "preview", "run__answer")[:MAX_CARDS])
    first_steps = _load_first_steps(member.organization_id)
    # Read in the order in which runs change status, so that no run is missed between two queries.
    parked, active, recent_runs = (
        _load_newest(member, *statuses) for statuses in (PARKED, ACTIVE, ENDED)
    )
    active = _exclude_moved(active, recent_runs)
    active_runs = [*active, *_exclude_moved(parked, [*active, *recent_runs])][:MAX_RUNS]
    return {
        "guide": None if first_steps.is_complete else first_steps,
        "cards": cards,
        "marks": load_marks_of(approvals.filter(pk__in=[card.pk for card in cards]))
        if cards
        else {},
        "own_cards": _find_own_cards(member, cards) if member.organization.four_eyes else set(),
        "active_runs": active_runs,
        "has_more_active_runs": len(active_runs) == MAX_RUNS,
        "has_active_runs": any(run.status in ACTIVE for run in active_runs),
        "recent_runs": recent_runs,
    }


def _find_own_cards(member: Membership, cards: Sequence[Approval]) -> set[int]:
    """Return the ids of the cards whose calls this member requested."""
    found = find_requesters([card for card in cards if card.kind == ApprovalKind.APPROVAL])
    return {
        pk
        for pk, requesters in found.items()
        if member.user_id in {each.user_id for each in requesters}
    }


def _load_newest(member: Membership, *statuses: RunStatus) -> list[Run]:
    """Load the newest runs with these statuses; each status takes one index scan, however many
    other runs there are."""
    rows = Run.objects.filter(organization_id=member.organization_id).select_related("employee")
    rows = rows.defer("answer", "problem", "employee__instructions")
    found = {
        run.pk: run
        for status in statuses
        for run in annotate_waits(filter_by_status(rows, status))[:MAX_RUNS]
    }
    return [found[pk] for pk in sorted(found, reverse=True)][:MAX_RUNS]


def _exclude_moved(earlier: list[Run], later: list[Run]) -> list[Run]:
    """Return the runs that were read earlier, except runs that changed status and were read again
    later."""
    moved = {run.pk for run in later}
    return [run for run in earlier if run.pk not in moved]


def _load_first_steps(organization_id: int) -> FirstSteps:
    """Load the completed steps of the guide in one query."""
    decided = Approval.objects.filter(decided_at__isnull=False, decided_by__isnull=False)
    facts = [
        rows.filter(organization_id=organization_id)
        for rows in (Employee.objects, Run.objects, decided)
    ]
    row = Organization.objects.filter(pk=organization_id).values_list(
        *(Exists(rows) for rows in facts)
    )
    return FirstSteps(*row.get())


def _find_chosen_employee(request: HttpRequest, employees: list[Employee]) -> Employee | None:
    """Return the employee named by the form or the address, or else the first employee; None if
    there are no employees."""
    employee_id = request.POST.get("employee", request.GET.get("employee", ""))
    return next(
        (each for each in employees if str(each.pk) == employee_id),
        employees[0] if employees else None,
    )


def _find_example(request: HttpRequest, employee: Employee | None) -> str:
    """Return the example task whose number the address gives; empty if it gives none. A link cannot
    supply its own text."""
    number = request.GET.get("example", "")
    examples = employee.example_tasks if employee is not None else []
    if not (
        number.isascii() and number.isdigit() and len(number) < 4 and int(number) < len(examples)
    ):
        return ""
    return str(examples[int(number)])
