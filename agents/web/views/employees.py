"""The list of employees, and each employee's profile with allowed tools, figures and recent
runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from statistics import median
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from agents.accounts.models import Membership, Role
from agents.employees.models import Employee
from agents.employees.toolboxes import load_toolbox
from agents.platform.row_ids import get_row
from agents.runs.budgets import find_price, get_current_month, list_employee_budgets
from agents.runs.engine.context import load_grants
from agents.runs.models import ENDED, IS_PENDING, Approval, ExitReason, Outcome, Run, RunStatus
from agents.runs.queries.runs import annotate_waits
from agents.web.charts.employee_figures import load_figures_section
from agents.web.charts.employee_trust import build_trust_section
from agents.web.grants.terms import describe_suggestions
from agents.web.text.initials import build_initials
from agents.web.views.pages import member_view, render_page
from tools.connections.unavailable_tools import explain_unavailable
from tools.contract import Level, Tool, name_category
from tools.toolbox import Toolbox
from tools.toolbox.permissions import Grants, determine_level, find_refusal

PAGE_SIZE = 60
RECENT_RUNS = 10
MAX_COUNTED = 1_000
COUNTED_PERIOD = timedelta(days=30)
UNAVAILABLE = "unavailable"
SUCCESSES = (Outcome.DONE, Outcome.ANSWERED)
DENIALS = (Outcome.DENIED, Outcome.PARTLY_DENIED)


@dataclass(frozen=True)
class AllowedTool:
    """A tool granted to an employee.

    Attributes:
        tool: the installed tool; None if it is unavailable.
        obstacle: the reason why calls are refused; empty if they are not refused.
        limits: the conditions on its params, in words.
        version: the version to which the employee is pinned.
    """

    name: str
    level: str
    tool: Tool | None
    obstacle: str
    limits: tuple[str, ...] = ()
    version: str = ""

    @property
    def category(self) -> str:
        return name_category(self.tool) if self.tool else UNAVAILABLE


@dataclass(frozen=True)
class Toolset:
    """An employee's allowed tools by category, with the least dangerous tools first in each
    category, and the number of tools at each level."""

    categories: list[tuple[str, list[AllowedTool]]]
    levels: list[tuple[str, int]]

    @property
    def count(self) -> int:
        return sum(len(tools) for _, tools in self.categories)


@dataclass(frozen=True)
class RunFigures:
    """Figures of an employee's newest 1,000 runs of the last 30 days.

    Attributes:
        success: the percentage of runs that did their work or answered, among ended runs that were
            not denied or cancelled; None if there are none.
        denied, cancelled: the number of ended runs in which people denied calls, and the number of
            runs that they cancelled.
        duration_ms: the median duration, including time spent waiting for decisions.
        tokens: the average per run.
        out_of_passes: the number of runs that used all passes without giving an answer.
    """

    runs: int
    in_progress: int
    success: int | None
    denied: int
    cancelled: int
    duration_ms: int | None
    tokens: int
    out_of_passes: int


@member_view("GET")
def employee_list(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the employees, sorted by name; `?q=` searches, and `?after=` is the last name of the
    previous page."""
    text, after = (request.GET.get(name, "").replace("\0", "")[:120] for name in ("q", "after"))
    rows = _get_employees(member).annotate(tool_count=Count("grants")).order_by("name")
    if text.strip():
        rows = rows.filter(Q(name__icontains=text.strip()) | Q(job_title__icontains=text.strip()))
    if after:
        rows = rows.filter(name__gt=after)
    shown = list(rows[: PAGE_SIZE + 1])
    query = request.GET.copy()
    query["after"] = shown[PAGE_SIZE - 1].name if len(shown) > PAGE_SIZE else ""
    counted = _count_runs(member)
    people = [
        {
            "employee": employee,
            "initials": build_initials(employee.name),
            "figures": counted.get(employee.pk),
        }
        for employee in shown[:PAGE_SIZE]
    ]
    context = {
        "people": people,
        "next_query": query.urlencode() if query["after"] else "",
        "chosen": request.GET,
        "days": COUNTED_PERIOD.days,
        "max_counted": f"{MAX_COUNTED:,}",
    }
    return render_page(request, member, "employees/list.html", context)


@member_view("GET")
def employee_page(request: HttpRequest, member: Membership, employee_id: int) -> HttpResponseBase:
    """Show an employee's profile."""
    employee = _find_employee(member, employee_id)
    runs = Run.objects.filter(organization_id=member.organization_id, employee=employee)
    waiting = Approval.objects.filter(IS_PENDING, organization_id=member.organization_id)
    context = {
        "employee": employee,
        "initials": build_initials(employee.name),
        "toolset": _load_toolset(employee),
        "figures": _compute_figures(runs),
        "activity": load_figures_section(employee, member.organization.currency),
        "waiting": waiting.filter(run__employee=employee).count(),
        "budgets": list_employee_budgets(employee, member.organization, get_current_month()),
        "price": find_price(employee.provider, employee.model),
        "runs": annotate_waits(runs.select_related("employee").order_by("-pk"))[:RECENT_RUNS],
        "examples": [str(task) for task in employee.example_tasks],
        "days": COUNTED_PERIOD.days,
        "max_counted": f"{MAX_COUNTED:,}",
    }
    return render_page(request, member, "employees/one.html", context)


@member_view("GET")
def trust_page(request: HttpRequest, member: Membership, employee_id: int) -> HttpResponseBase:
    """Show the decisions about an employee's cards, and the outcomes of approved calls."""
    employee = _find_employee(member, employee_id)
    context = {
        "employee": employee,
        "initials": build_initials(employee.name),
        "trust": build_trust_section(employee, member.organization),
        "suggestions": describe_suggestions(member, employee.pk)
        if member.may(Role.APPROVER)
        else [],
    }
    return render_page(request, member, "employees/trust.html", context)


def _find_employee(member: Membership, employee_id: int) -> Employee:
    return get_row(_get_employees(member), employee_id, "employee")


def _get_employees(member: Membership) -> QuerySet[Employee]:
    return Employee.objects.filter(organization_id=member.organization_id).select_related(
        "provider"
    )


def _count_runs(member: Membership) -> dict[int, dict[str, Any]]:
    """Count each employee's runs, runs in progress and successes among the organization's newest
    runs of the last 30 days."""
    newest = Run.objects.filter(organization_id=member.organization_id).order_by("-pk")[
        :MAX_COUNTED
    ]
    rows = (
        Run.objects.filter(pk__in=newest.values("pk"), created_at__gte=_get_period_start())
        .order_by()
        .values("employee")
    )
    done = Count("pk", filter=Q(status=RunStatus.SUCCEEDED))
    in_progress = Count("pk", filter=~Q(status__in=ENDED))
    counted = rows.annotate(runs=Count("pk"), done=done, in_progress=in_progress)
    return {row["employee"]: dict(row) for row in counted}


def _get_period_start() -> datetime:
    return timezone.now() - COUNTED_PERIOD


def _compute_figures(runs: QuerySet[Run]) -> RunFigures:
    times = ("created_at", "started_at", "finished_at")
    fields = ("status", "outcome", "exit_reason", *times, "input_tokens", "output_tokens")
    since = _get_period_start()
    newest = [
        run for run in runs.order_by("-pk").only(*fields)[:MAX_COUNTED] if run.created_at >= since
    ]
    ended = [run for run in newest if run.has_ended]
    cancelled = {run.pk for run in ended if run.status == RunStatus.CANCELLED}
    denied = {
        run.pk
        for run in ended
        if run.outcome in DENIALS or run.exit_reason == ExitReason.DENIED_REPEATEDLY
    }
    judged = [run for run in ended if run.pk not in cancelled | denied]
    succeeded = [
        run for run in judged if run.status == RunStatus.SUCCEEDED and run.outcome in SUCCESSES
    ]
    endings = [(run.status, run.exit_reason) for run in newest]
    durations_ms = [
        (run.finished_at - run.started_at) / timedelta(milliseconds=1)
        for run in newest
        if run.started_at and run.finished_at
    ]
    tokens = sum(run.input_tokens + run.output_tokens for run in newest)
    return RunFigures(
        runs=len(newest),
        in_progress=len(newest) - len(ended),
        success=round(100 * len(succeeded) / len(judged)) if judged else None,
        denied=len(denied),
        cancelled=len(cancelled),
        duration_ms=round(median(durations_ms)) if durations_ms else None,
        tokens=round(tokens / len(newest)) if newest else 0,
        out_of_passes=endings.count((RunStatus.FAILED, ExitReason.MAX_PASSES)),
    )


def _load_toolset(employee: Employee) -> Toolset:
    grants, toolbox = (
        load_grants(employee.pk, employee.mode),
        load_toolbox(employee.organization_id),
    )
    reasons = explain_unavailable(
        employee.organization_id, [name for name in grants.tools if toolbox.get_tool(name) is None]
    )
    allowed = sorted(
        (
            _build_allowed_tool(toolbox, name, grants, reasons.get(name, ""))
            for name in grants.tools
        ),
        key=_get_sort_key,
    )
    levels = [tool.level for tool in allowed]
    return Toolset(
        categories=[
            (category, list(tools))
            for category, tools in groupby(allowed, key=lambda tool: tool.category)
        ],
        levels=[(level.value, levels.count(level.value)) for level in Level],
    )


def _build_allowed_tool(toolbox: Toolbox, name: str, grants: Grants, reason: str) -> AllowedTool:
    tool = toolbox.get_granted_tool(name, grants)
    if tool is None:
        pinned = f"version {grants.pinned[name]} is not installed" if name in grants.pinned else ""
        return AllowedTool(name, "", None, reason or pinned)
    refusal = find_refusal(tool, grants, toolbox.policy)
    limits = tuple(condition.describe() for condition in grants.conditions.get(name, ()))
    level = determine_level(tool, grants).value
    version = grants.pinned.get(name, "")
    return AllowedTool(name, level, tool, refusal.message if refusal else "", limits, version)


def _get_sort_key(allowed: AllowedTool) -> tuple[bool, str, int, str]:
    return (
        allowed.tool is None,
        allowed.category,
        Level(allowed.level).rank if allowed.level else 0,
        allowed.name,
    )
