"""The catalog: every tool with its level, its params, who may use it, and how it did lately."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from statistics import quantiles
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from agents.desk.schema_table import ParamRow, params_of
from agents.engine.toolbox import installed_toolbox
from agents.models import CallStatus, Grant, Membership, ToolCall
from tools.contract import Level, Tool
from tools.toolbox.permissions import Grants, level_of

from .pages import framed, page

PAGE_SIZE = 100
MOST_COUNTED = 10_000
COUNTED_FOR = timedelta(days=30)


@dataclass(frozen=True)
class Figures:
    """What the newest calls of a tool came to; durations in milliseconds, None without any."""

    calls: int = 0
    failures: int = 0
    middle: int | None = None
    slow: int | None = None


@dataclass(frozen=True)
class ToolView:
    """One tool as the catalog shows it.

    Attributes:
        level: the tool's own, or a higher one that an admin set for all.
        users: ids and names of the employees that were granted it.
    """

    tool: Tool
    level: str
    is_enabled: bool
    params: list[ParamRow]
    users: list[tuple[int, str]]
    figures: Figures

    @property
    def first_line(self) -> str:
        return self.tool.description.strip().partition("\n")[0]

    @property
    def modes(self) -> str:
        return "every mode" if self.tool.modes is None else ", ".join(sorted(self.tool.modes)) or "none"


@page("GET")
def catalog(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Tools by name, filtered by category, level and text; the cursor `?after=` is the id of the last one shown."""
    every = installed_toolbox().tools()
    fitting = sorted(_matching(every, request), key=lambda tool: (tool.category, tool.id))
    shown = fitting[:PAGE_SIZE]
    query = request.GET.copy()
    query["after"] = shown[-1].id if len(fitting) > PAGE_SIZE else ""
    views = _views_of(shown, member)
    context = {
        "categories": [(name, list(tools)) for name, tools in groupby(views, key=lambda view: view.tool.category)],
        "is_single": len(shown) == 1,
        "all_categories": sorted({tool.category for tool in every}),
        "levels": [level.value for level in Level],
        "chosen": request.GET,
        "next_query": query.urlencode() if query["after"] else "",
        "days": COUNTED_FOR.days,
        "most_counted": f"{MOST_COUNTED:,}",
    }
    return framed(request, member, "tools/list.html", context)


def _matching(every: Iterable[Tool], request: HttpRequest) -> list[Tool]:
    category, level = request.GET.get("category", ""), request.GET.get("level", "")
    wanted = request.GET.get("q", "").casefold().split()
    after = request.GET.get("after", "")
    behind = (after.partition(".")[0].partition("@")[0], after)
    return [
        tool
        for tool in every
        if category in ("", tool.category)
        and level in ("", _level(tool))
        and all(word in f"{tool.name} {tool.title} {tool.description}".casefold() for word in wanted)
        and (not after or (tool.category, tool.id) > behind)
    ]


def _level(tool: Tool) -> str:
    return level_of(tool, Grants(), installed_toolbox().policy).value


def _views_of(shown: list[Tool], member: Membership) -> list[ToolView]:
    disabled = installed_toolbox().policy.disabled
    users, figures = _users_of(shown, member), _figures_of(member)
    return [
        ToolView(
            tool=tool,
            level=_level(tool),
            is_enabled=not {tool.name, tool.id} & disabled,
            params=params_of(tool.schema),
            users=users[tool.name],
            figures=figures.get(tool.name, Figures()),
        )
        for tool in shown
    ]


def _users_of(shown: list[Tool], member: Membership) -> dict[str, list[tuple[int, str]]]:
    granted = Grant.objects.filter(
        employee__organization_id=member.organization_id, tool__in={tool.name for tool in shown}
    )
    users: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for tool, pk, name in granted.order_by("employee__name").values_list("tool", "employee_id", "employee__name"):
        users[tool].append((pk, name))
    return users


def _figures_of(member: Membership) -> dict[str, Figures]:
    """By tool, over the organisation's newest calls: as many as one index gives quickly."""
    newest = ToolCall.objects.filter(
        organization_id=member.organization_id, created_at__gte=timezone.now() - COUNTED_FOR
    )
    rows = newest.order_by("-created_at").values_list("tool", "status", "duration_ms")[:MOST_COUNTED]
    ended: dict[str, list[tuple[str, int | None]]] = defaultdict(list)
    for tool, status, duration in rows:
        if status in (CallStatus.SUCCEEDED, CallStatus.FAILED):
            ended[tool].append((status, duration))
    return {tool: _figures(calls) for tool, calls in ended.items()}


def _figures(calls: list[tuple[Any, int | None]]) -> Figures:
    took = [duration for _, duration in calls if duration is not None]
    parts = quantiles(took, n=20, method="inclusive") if len(took) > 1 else [float(took[0])] * 19 if took else []
    return Figures(
        calls=len(calls),
        failures=sum(status == CallStatus.FAILED for status, _ in calls),
        middle=round(parts[9]) if parts else None,
        slow=round(parts[18]) if parts else None,
    )
