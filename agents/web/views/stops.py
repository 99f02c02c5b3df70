"""The stop page: members stop everything, an employee or a tool immediately; only admins resume."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect

from agents.accounts.models import Membership, Role
from agents.employees.models import Employee, ToolRule
from agents.employees.toolboxes import load_toolbox
from agents.platform.refusals import Conflict, Invalid
from agents.platform.row_ids import parse_row_id
from agents.runs import stops
from agents.runs.engine.context import load_organization_rules
from agents.runs.models import ENDED, Run
from agents.web.views.pages import member_view, render_page
from tools.toolbox.permissions import determine_level

_ACTIONS: Mapping[tuple[str, str], Callable[[Membership, str], object]] = {
    ("everything", "stop"): lambda member, _: stops.stop_everything(member),
    ("everything", "release"): lambda member, _: stops.release_everything(member),
    ("employee", "stop"): lambda member, which: stops.stop_employee(member, _parse_employee_id(which)),
    ("employee", "release"): lambda member, which: stops.release_employee(member, _parse_employee_id(which)),
    ("tool", "stop"): stops.stop_tool,
    ("tool", "release"): stops.release_tool,
}
_MESSAGES = {
    "stop": "Stopped. Calls already running finish; nothing new starts.",
    "release": "Resumed.",
}


def _parse_employee_id(text: str) -> int:
    try:
        return parse_row_id(text)
    except ValueError as error:
        raise Invalid("which", "Choose an employee to stop or resume.") from error


@member_view("GET", "POST")
def stop_page(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show what is stopped; POST stops or resumes everything, an employee or a tool.

    The form has `what` (everything, employee, tool), `act` (stop, release) and `which` (employee id, tool name).
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
    """A tool as the page shows it.

    Attributes:
        level: the tool's own, or a higher one that an admin set for all; empty if it is no longer installed.
        rule: the rule that stops it, if any.
    """

    name: str
    title: str
    level: str
    rule: ToolRule | None


def _list_tools(organization_id: int) -> list[StoppableTool]:
    """List every tool by title, including stopped tools that are no longer installed."""
    rules = ToolRule.objects.filter(organization_id=organization_id, stopped_at__isnull=False)
    stopped, raised = {rule.tool: rule for rule in rules}, load_organization_rules(organization_id)
    installed = {tool.name: tool for tool in load_toolbox(organization_id).tools()}
    tools = [
        StoppableTool(tool.name, tool.title, determine_level(tool, raised).value, stopped.get(tool.name))
        for tool in installed.values()
    ]
    tools += [StoppableTool(name, name, "", rule) for name, rule in stopped.items() if name not in installed]
    return sorted(tools, key=lambda tool: (tool.title.casefold(), tool.name))


def _build_context(member: Membership) -> dict[str, Any]:
    organization_id, tools = member.organization_id, _list_tools(member.organization_id)
    return {
        "organization": member.organization,
        "employees": Employee.objects.filter(organization_id=organization_id).order_by("name"),
        "stopped_tools": [tool for tool in tools if tool.rule is not None],
        "other_tools": [tool for tool in tools if tool.rule is None],
        "unfinished_runs": Run.objects.filter(organization_id=organization_id).exclude(status__in=ENDED).count(),
        "may_release": member.may(Role.ADMIN),
    }
