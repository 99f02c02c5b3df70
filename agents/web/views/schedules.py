"""Schedules: tasks that start at set times; operators create, pause, resume and cancel them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone

from agents.accounts.models import Membership, Role
from agents.employees.models import Employee
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound
from agents.platform.row_ids import get_row, parse_row_id
from agents.runs import schedules
from agents.runs.actions import MAX_TEXT
from agents.runs.models import Run
from agents.runs.queries.runs import annotate_waits
from agents.web.views.pages import member_view, read_newest, render_page
from tools.contract import ToolError
from tools.contract.outside_text import cut_middle
from tools.schedules.changes import MAX_SCHEDULES, get_schedules
from tools.schedules.cron_times import SMALLEST_MINUTES, list_common_time_zones, parse_cron
from tools.schedules.descriptions import describe_times, format_moment
from tools.schedules.models import Schedule

EXAMPLES = (
    "0 9 * * MON-FRI",
    "30 17 * * FRI",
    "0 8 1 * *",
    "0 */4 * * *",
    "*/30 * * * *",
    "0 9 L * *",
)


@member_view("GET")
def schedule_list(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show active and paused schedules, newest first, or with `?cancelled=1` the cancelled
    schedules."""
    return _render_list(request, member)


@member_view("POST", page="schedules")
def create(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Create a schedule; a form with `look` only previews its next times."""
    if not member.may(Role.OPERATOR):
        raise Forbidden("Viewers cannot create schedules.")
    typed = _read_form(request)
    try:
        if "look" in request.POST:
            return _render_list(request, member, typed=typed, upcoming=_preview_times(typed))
        schedule = schedules.create(
            member, typed.employee_id, typed.task, (typed.cron, typed.time_zone)
        )
    except (Invalid, Conflict, NotFound) as refusal:
        return _render_list(
            request,
            member,
            typed=typed,
            refusal=refusal,
            invalid_field=refusal.extra.get("field", ""),
        )
    messages.success(request, f"Schedule {schedule.pk} created: {describe_times(schedule.times)}.")
    return redirect("schedules")


@member_view("POST", page="schedules")
def pause(request: HttpRequest, member: Membership, schedule_id: int) -> HttpResponseBase:
    """Pause a schedule until it is resumed."""
    schedules.pause(member, schedule_id)
    messages.success(request, f"Schedule {schedule_id} paused.")
    return redirect("schedules")


@member_view("POST", page="schedules")
def resume(request: HttpRequest, member: Membership, schedule_id: int) -> HttpResponseBase:
    """Resume a schedule; the member who resumes it becomes its owner."""
    schedules.resume(member, schedule_id)
    messages.success(request, f"Schedule {schedule_id} resumed. You are now its owner.")
    return redirect("schedules")


@member_view("POST", page="schedules")
def cancel(request: HttpRequest, member: Membership, schedule_id: int) -> HttpResponseBase:
    """Ask for confirmation; the same form with `confirmed` cancels the schedule."""
    if request.POST.get("confirmed"):
        schedules.cancel(member, schedule_id)
        messages.success(request, f"Schedule {schedule_id} cancelled.")
        return redirect("schedules")
    schedule = get_row(_list_schedules(member), schedule_id, "schedule")
    if not member.may(Role.OPERATOR):
        raise Forbidden("Viewers cannot cancel schedules.")
    return render_page(request, member, "schedules/confirm.html", {"row": ListedSchedule(schedule)})


@dataclass(frozen=True)
class ListedSchedule:
    """A schedule as the page shows it."""

    schedule: Schedule

    @property
    def description(self) -> str:
        return describe_times(self.schedule.times)

    @property
    def next_time(self) -> str:
        """The next time in the schedule's time zone; empty if there is none."""
        at = self.schedule.next_at
        return format_moment(at.astimezone(self.schedule.times.zone)) if at else ""

    @property
    def badge(self) -> str:
        """The state's name in the stylesheet."""
        return self.schedule.state.replace(" ", "-")

    @property
    def is_long(self) -> bool:
        """True if the heading differs from the original task."""
        return cut_middle(str(self.schedule)) != self.schedule.task

    @property
    def is_held(self) -> bool:
        """True if the schedule's employee is stopped, so that it does not start runs until the
        employee is resumed."""
        employee = self.schedule.employee
        return self.schedule.is_active and employee is not None and employee.stopped_at is not None


@dataclass(frozen=True)
class ScheduleForm:
    """The typed contents of the form for a new schedule."""

    employee_id: int = 0
    task: str = ""
    cron: str = ""
    time_zone: str = ""


def _read_form(request: HttpRequest) -> ScheduleForm:
    employee_id = 0
    with suppress(ValueError):
        employee_id = parse_row_id(request.POST.get("employee", ""))
    return ScheduleForm(
        employee_id=employee_id,
        task=request.POST.get("task", "").replace("\r\n", "\n").strip(),
        cron=request.POST.get("cron", "").strip(),
        time_zone=request.POST.get("time_zone", "").strip(),
    )


def _preview_times(typed: ScheduleForm) -> dict[str, Any]:
    """Return a description of the times, and the next times in the schedule's time zone."""
    try:
        times = parse_cron(typed.cron, typed.time_zone)
    except ToolError as error:
        raise Invalid(error.parameter, error.message) from error
    return {
        "description": describe_times(times),
        "times": [(time, format_moment(time)) for time in times.upcoming(timezone.now())],
    }


def _list_schedules(member: Membership) -> QuerySet[Schedule]:
    last_runs = Prefetch("last_run", annotate_waits(Run.objects.defer("answer", "problem")))
    rows = (
        get_schedules(member.organization_id)
        .select_related("employee", "created_by")
        .prefetch_related(last_runs)
    )
    return rows.defer("employee__instructions")


def _render_list(request: HttpRequest, member: Membership, **extra: Any) -> HttpResponse:
    are_cancelled = bool(request.GET.get("cancelled"))
    rows = _list_schedules(member).filter(cancelled_at__isnull=not are_cancelled)
    page = read_newest(request, rows)
    query = request.GET.copy()
    query["before"] = str(page.next_before)
    active = Employee.objects.filter(organization_id=member.organization_id, is_active=True)
    context = {
        "rows": [ListedSchedule(schedule) for schedule in page.rows],
        "next_query": query.urlencode() if page.next_before else "",
        "are_cancelled": are_cancelled,
        "is_older": bool(request.GET.get("before")),
        "employees": active.only("name", "job_title") if member.may(Role.OPERATOR) else (),
        "time_zones": list_common_time_zones(),
        "examples": [
            (cron, describe_times(parse_cron(cron, "UTC")).removesuffix(" (UTC)"))
            for cron in EXAMPLES
        ],
        "typed": ScheduleForm(),
        "upcoming": None,
        "refusal": None,
        "invalid_field": "",
        "max_text": MAX_TEXT,
        "max_schedules": MAX_SCHEDULES,
        "smallest_minutes": SMALLEST_MINUTES,
    }
    return render_page(request, member, "schedules/list.html", context | extra)
