"""Agents that run elsewhere: their keys, how to connect an agent, and their asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone

from agents.accounts.models import Membership, Role
from agents.employees.models import Employee
from agents.gateway.keys import MAX_DAYS, issue_key, list_keys, revoke_key
from agents.gateway.levels import list_levels, set_level
from agents.gateway.models import AgentKey, Ask, RefusedAsk
from agents.gateway.redemptions import AskState, load_states
from agents.platform.refusals import Conflict, Invalid, NotFound, Refusal
from agents.platform.row_ids import parse_row_id_or_none
from agents.web.text.safe_text import quote_outside
from agents.web.views import one_time_reports
from agents.web.views.absolute_links import make_absolute
from agents.web.views.pages import member_view, read_newest, read_number, render_page
from tools.contract import Level

DAYS = (7, 30, 90, MAX_DAYS)
DEFAULT_DAYS = 30
_NEW_KEY = "made_agent_key"
"""The session key under which a new key is stored until it is shown."""


@dataclass(frozen=True)
class KeyLine:
    """One key as the page shows it."""

    key: AgentKey
    works: bool

    @property
    def state(self) -> str:
        """The reason why the key does not work; `active` if it works."""
        if self.works:
            return "active"
        if self.key.revoked_at is not None:
            return "revoked"
        return "expired" if self.key.expires_at <= timezone.now() else "member lost access"


@member_view("GET", "POST")
def agents_page(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the keys of agents, and a new key once; POST creates a key."""
    if request.method != "POST":
        return _render(request, member)
    try:
        key, secret = issue_key(
            member,
            parse_row_id_or_none(request.POST.get("employee", "")) or 0,
            request.POST.get("name", ""),
            read_number(request, "days"),
        )
    except (Invalid, Conflict, NotFound) as refusal:
        return _render(request, member, refusal)
    one_time_reports.store_report(request, member, _NEW_KEY, {"key": key.pk, "secret": secret})
    return redirect("agents")


@member_view("POST", page="agents")
def revoke(request: HttpRequest, member: Membership, key_id: int) -> HttpResponseBase:
    """Revoke a key; an admin may keep its open calls and asks."""
    key = revoke_key(member, key_id, keeps_open=request.POST.get("keeps_open") == "1")
    messages.success(request, f"The key {quote_outside(key.name)} no longer works.")
    return redirect("agents")


@member_view("POST", page="agents")
def choose_level(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Set the level of an action of agents."""
    action, level = request.POST.get("action", "").strip(), request.POST.get("level", "")
    try:
        set_level(member, action, level)
    except Invalid as refusal:
        return _render(request, member, refusal)
    messages.success(request, f"{quote_outside(action)} now has the level {level}.")
    return redirect("agents")


@member_view("GET")
def ask_list(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the asks of the organization's agents, newest first; `?before=` is the last id of the
    previous page."""
    rows = Ask.objects.filter(run__organization_id=member.organization_id)
    page = read_newest(
        request, rows.select_related("run__organization", "run__created_by", "key", "effect")
    )
    refused: dict[int, list[RefusedAsk]] = {}
    for one in RefusedAsk.objects.filter(ask__in=page.rows).select_related("key"):
        refused.setdefault(one.ask_id, []).append(one)
    states: list[tuple[AskState, list[RefusedAsk]]] = [
        (state, refused.get(state.ask.pk, [])) for state in load_states(page.rows)
    ]
    context = {"asks": states, "older": page.next_before}
    return render_page(request, member, "agents/asks.html", context)


def _render(
    request: HttpRequest, member: Membership, refusal: Refusal | None = None
) -> HttpResponse:
    working = set(
        AgentKey.usable()
        .filter(employee__organization_id=member.organization_id)
        .values_list("pk", flat=True)
    )
    keys = list_keys(member)[:200]
    employees = Employee.objects.filter(
        organization_id=member.organization_id, is_active=True
    ).order_by("name")
    context = {
        **_take_new_key(request, member),
        "keys": [KeyLine(key, key.pk in working) for key in keys],
        "employees": [(each.pk, each.name) for each in employees],
        "days": [(days, f"{days} days") for days in DAYS],
        "typed": request.POST if request.method == "POST" else {},
        "default_days": str(DEFAULT_DAYS),
        "refusal": refusal,
        "invalid_field": refusal.extra.get("field", "") if refusal else "",
        "is_admin": member.may(Role.ADMIN),
        "action_levels": list_levels(member.organization_id) if member.may(Role.ADMIN) else [],
        "levels": [(level.value, level.value) for level in Level],
        "server_address": make_absolute(request, "/mcp"),
        "asks_address": make_absolute(request, "/api/asks"),
    }
    return render_page(request, member, "agents/agents.html", context)


def _take_new_key(request: HttpRequest, member: Membership) -> dict[str, Any]:
    """Return the new key with its secret; empty if there is none."""
    report = one_time_reports.take_report(request, member, _NEW_KEY)
    key = list_keys(member).filter(pk=report.get("key", 0)).first()
    return (
        {"new_key": key, "secret": report.get("secret", "")}
        if key is not None
        else {"new_key": None, "secret": ""}
    )
