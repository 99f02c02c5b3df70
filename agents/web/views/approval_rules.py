"""The page that shows who may decide the cards of a tool."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponseBase

from agents.accounts.models import Membership
from agents.approval_rules.loading import load_rules, load_voters
from agents.approval_rules.who_may_decide import WhoMayDecide, find_who_may_decide
from agents.employees.models import Employee
from agents.employees.toolboxes import load_toolbox
from agents.runs.engine.context import load_organization_rules
from agents.web.views.pages import member_view, render_page
from tools.contract import Level, Tool
from tools.toolbox.approval_rules import RuledCard, Voter
from tools.toolbox.permissions import determine_level


@dataclass(frozen=True)
class ImaginedCard:
    """A card as the form describes it; a part with an empty text is left open."""

    tool: str = ""
    level: str = ""
    employee: str = ""
    requester: str = ""
    meets_conditions: bool = False


@member_view("GET")
def who_may_decide(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show who may decide a card of `?tool=`, requested by `?requester=` for `?employee=`."""
    tools = {
        tool.name: tool
        for tool in load_toolbox(member.organization_id).tools()
        if not tool.is_system
    }
    employees = list(
        Employee.objects.filter(organization_id=member.organization_id).order_by("name", "pk")
    )
    voters = load_voters(member.organization_id)
    chosen = request.GET
    imagined = ImaginedCard(
        tool=chosen.get("tool", "").strip(),
        level=chosen.get("level", ""),
        employee=chosen.get("employee", ""),
        requester=chosen.get("requester", ""),
        meets_conditions=chosen.get("conditions") == "met",
    )
    tool = tools.get(imagined.tool)
    context = {
        "imagined": imagined,
        "tools": sorted(tools),
        "levels": [(level.value, level.value) for level in Level if level.has_side_effects],
        "employees": [(employee.pk, employee.name) for employee in employees],
        "requesters": [
            (voter.id, voter.name)
            for voter in sorted(voters.values(), key=lambda one: one.name.casefold())
        ],
        "tool": tool,
        "deciders": _find_deciders(member, tool, imagined, voters) if tool else None,
    }
    return render_page(request, member, "approvals/who.html", context)


def _find_deciders(
    member: Membership, tool: Tool, imagined: ImaginedCard, voters: dict[int, Voter]
) -> WhoMayDecide:
    own = determine_level(tool, load_organization_rules(member.organization_id))
    card = RuledCard(
        tool=tool.name,
        category=tool.category,
        level=next((level for level in Level if level.value == imagined.level), own),
        employee_id=int(imagined.employee) if imagined.employee.isdecimal() else 0,
        requesters=frozenset(pk for pk in voters if str(pk) == imagined.requester),
    )
    rules = load_rules(member.organization)
    return find_who_may_decide(
        card, rules, voters.values(), meets_conditions=imagined.meets_conditions
    )
