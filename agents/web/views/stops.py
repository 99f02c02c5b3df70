"""The stop page: operators stop everything, an employee or a tool immediately. Admins can resume
what was stopped, and for a short time so can the person who stopped it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect

from agents.accounts.models import Membership, Role
from agents.employees.models import Employee, Grant, ToolRule
from agents.employees.toolboxes import load_toolbox
from agents.platform.refusals import Conflict, Invalid
from agents.platform.row_ids import parse_row_id
from agents.restores.models import RestoredLimit
from agents.runs import stops
from agents.runs.engine.context import load_organization_rules
from agents.runs.models import IS_UNFINISHED, PARKED, Run
from agents.web.views.pages import member_view, render_page
from tools.contract.outside_text import OutsideText
from tools.toolbox.permissions import determine_level

_ACTIONS: Mapping[tuple[str, str], Callable[[Membership, str], object]] = {
    ("everything", "stop"): lambda member, _: stops.stop_everything(member),
    ("everything", "release"): lambda member, _: stops.release_everything(member),
    ("employee", "stop"): lambda member, which: stops.stop_employee(
        member, _parse_employee_id(which)
    ),
    ("employee", "release"): lambda member, which: stops.release_employee(
        member, _parse_employee_id(which)
    ),
    ("tool", "stop"): lambda member, which: stops.stop_tool(member, _require_choice(which)),
    ("tool", "release"): stops.release_tool,
}
_MESSAGES = {
    "stop": "Stopped. Calls already running finish; nothing new starts. You can undo this for 2 minutes.",
    "release": "Resumed.",
}


def _parse_employee_id(text: str) -> int:
    try:
        return parse_row_id(text)
    except ValueError as error:
        raise Invalid("which", "Choose an employee to stop or resume.") from error


def _require_choice(text: str) -> str:
    if not text:
        raise Invalid("which", "Choose a tool to stop.")
    return text


@member_view("GET", "POST")
def stop_page(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the stops; POST stops or resumes everything, an employee or a tool.

    The form has `what` (everything, employee, tool), `act` (stop, release) and `which` (employee
    id, tool name).
    """
    if request.method != "POST":
        return render_page(request, member, "stops/page.html", _build_context(member))
    what, act = request.POST.get("what", ""), request.POST.get("act", "")
    if (what, act) not in _ACTIONS:
        raise Invalid("act", "Choose what to stop or resume.")
    try:
        _ACTIONS[what, act](member, request.POST.get("which", "").replace("\0", ""))
    except Conflict as refusal:  # somebody else did it first
        messages.info(request, refusal.detail)
    else:
        messages.success(request, _MESSAGES[act])
    return redirect("stop")


@dataclass(frozen=True)
class StoppableTool:
    """A tool prepared for the page.

    Attributes:
        level: the tool's own level, or a higher one that an admin set for all employees; empty if
            the tool is no longer installed.
        rule: the rule that stops the tool; None if it is not stopped.
        user_count: the number of employees that may use it.
    """

    name: str
    title: str
    level: str
    rule: ToolRule | None
    user_count: int = 0


def _list_tools(organization_id: int) -> list[StoppableTool]:
    """List every tool by title, including stopped tools that are no longer installed."""
    rules = ToolRule.objects.filter(organization_id=organization_id, stopped_at__isnull=False)
    stopped, raised = {rule.tool: rule for rule in rules}, load_organization_rules(organization_id)
    installed = {tool.name: tool for tool in load_toolbox(organization_id).tools()}
    users = Counter(
        Grant.objects.filter(employee__organization_id=organization_id).values_list(
            "tool", flat=True
        )
    )
    tools = [
        StoppableTool(
            tool.name,
            tool.title,
            determine_level(tool, raised).value,
            stopped.get(tool.name),
            users[tool.name],
        )
        for tool in installed.values()
    ]
    tools += [
        StoppableTool(name, OutsideText(name), "", rule)
        for name, rule in stopped.items()
        if name not in installed
    ]
    return sorted(tools, key=lambda tool: (tool.title.casefold(), tool.name))


@dataclass(frozen=True)
class OpenRuns:
    """The number of runs that a stop would halt: runs in progress, and waiting runs."""

    working: int = 0
    waiting: int = 0

    @property
    def total(self) -> int:
        return self.working + self.waiting


def _count_open_runs(organization_id: int) -> dict[int, OpenRuns]:
    """Count the unfinished runs of each employee that has any."""
    unfinished = Run.objects.filter(IS_UNFINISHED, organization_id=organization_id)
    waiting = Count("pk", filter=Q(status__in=PARKED))
    rows = unfinished.order_by().values("employee_id").annotate(total=Count("pk"), waiting=waiting)
    return {
        row["employee_id"]: OpenRuns(row["total"] - row["waiting"], row["waiting"]) for row in rows
    }


def _build_context(member: Membership) -> dict[str, Any]:
    organization_id, tools = member.organization_id, _list_tools(member.organization_id)
    open_runs = _count_open_runs(organization_id)
    return {
        "organization": member.organization,
        "employees": Employee.objects.filter(organization_id=organization_id).order_by("name"),
        "stopped_tools": [tool for tool in tools if tool.rule is not None],
        "other_tools": [tool for tool in tools if tool.rule is None],
        "open_runs": open_runs,
        "all_runs": OpenRuns(
            sum(each.working for each in open_runs.values()),
            sum(each.waiting for each in open_runs.values()),
        ),
        "may_release": partial(stops.may_release, member),
        "is_admin": member.may(Role.ADMIN),
        "unconfirmed": RestoredLimit.objects.filter(organization_id=organization_id).count(),
    }
