"""The stop page: everything, one employee or one tool, stopped at once and let go on by an admin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect

from agents import stops
from agents.engine.toolbox import installed_toolbox
from agents.models import ENDED, Employee, Membership, Role, Run, ToolRule
from agents.refusals import Conflict, Invalid
from agents.schemas import row_id

from .pages import framed, page

_ACTS: Mapping[tuple[str, str], Callable[[Membership, str], object]] = {
    ("everything", "stop"): lambda member, _: stops.stop_everything(member),
    ("everything", "release"): lambda member, _: stops.release_everything(member),
    ("employee", "stop"): lambda member, which: stops.stop_employee(member, _id(which)),
    ("employee", "release"): lambda member, which: stops.release_employee(member, _id(which)),
    ("tool", "stop"): stops.stop_tool,
    ("tool", "release"): stops.release_tool,
}
_TOLD = {
    "stop": "Stopped. What was executing already ends by itself; nothing more starts.",
    "release": "It goes on.",
}


def _id(text: str) -> int:
    try:
        return row_id(text)
    except ValueError as error:
        raise Invalid("which", "Say who is to be stopped.") from error


@page("GET", "POST")
def stop_page(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Shows what is stopped; a form that is sent stops or releases one thing.

    Of the form: `what` (everything, employee, tool), `act` (stop, release), `which` (an employee's id, a tool's name).
    """
    if request.method != "POST":
        return framed(request, member, "stops/page.html", _shown(member))
    what, act = request.POST.get("what", ""), request.POST.get("act", "")
    if (what, act) not in _ACTS:
        raise Invalid("act", "Say what is to be stopped.")
    try:
        _ACTS[what, act](member, request.POST.get("which", "").replace("\0", ""))
    except Conflict as refusal:  # somebody was faster
        messages.info(request, refusal.detail)
    else:
        messages.success(request, _TOLD[act])
    return redirect("stop")


def _shown(member: Membership) -> dict[str, Any]:
    own = member.organization_id
    stopped = {rule.tool: rule for rule in ToolRule.objects.filter(organization_id=own, stopped_at__isnull=False)}
    return {
        "organization": member.organization,
        "employees": Employee.objects.filter(organization_id=own).order_by("name"),
        "stopped_tools": list(stopped.values()),
        "other_tools": sorted({tool.name for tool in installed_toolbox().tools() if tool.name not in stopped}),
        "living": Run.objects.filter(organization_id=own).exclude(status__in=ENDED).count(),
        "may_release": member.may(Role.ADMIN),
    }
