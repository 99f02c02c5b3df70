"""The catalog: every tool with its level, its params, who may use it, how it did lately, and a form to try it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from agents.accounts.models import Membership, Role
from agents.employees.models import Grant
from agents.employees.toolboxes import load_toolbox
from agents.insight import figures
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound
from agents.platform.row_ids import parse_row_id
from agents.runs import manual_calls
from agents.runs.engine.context import load_organization_rules
from agents.web.cards.edit_form import build_fields, find_blamed_key, simplify_complaint
from agents.web.cards.fields import PREFIX, Field, TypedValues
from agents.web.cards.schema_table import ParamRow, params_of
from agents.web.cards.typed import UnreadableField, read_typed
from agents.web.charts.charts import Chart, build_calls_chart
from agents.web.views.pages import member_view, render_page
from tools.contract import Level, Tool
from tools.toolbox.permissions import Grants, determine_level

PAGE_SIZE = 100


@dataclass(frozen=True)
class Attempt:
    """A person's refused attempt to try a tool, with the problems; empty if there was none."""

    tool: str = ""
    employee: str = ""
    typed: TypedValues = field(default_factory=TypedValues)


@dataclass(frozen=True)
class TrialForm:
    """The form to try one tool.

    Attributes:
        employees: ids and names of the employees on whose behalf it may be tried.
        chosen: the id of the chosen one.
        problem: a problem of the whole form; those of one field are shown beside it.
    """

    fields: list[Field]
    employees: list[tuple[int, str]]
    chosen: int | None
    problem: str
    is_open: bool


@dataclass(frozen=True)
class ToolView:
    """One tool as the catalog shows it.

    Attributes:
        level: the tool's own, or a higher one that an admin set for all.
        users: (id, name, is active) of the employees that may use it.
        figures, chart: of the last 30 days; no chart without calls.
        trial: the form to try it, if this person may.
    """

    tool: Tool
    level: str
    is_enabled: bool
    stopped_by: str
    params: list[ParamRow]
    users: list[tuple[int, str, bool]]
    figures: figures.Figures
    chart: Chart | None
    trial: TrialForm | None = None

    @property
    def first_line(self) -> str:
        return self.tool.description.strip().partition("\n")[0]

    @property
    def traits(self) -> str:
        """The tool's declared traits, in words."""
        tool = self.tool
        said = {
            "writes in one transaction": tool.transactional,
            "safe to repeat": tool.idempotent,
            "never treated as a duplicate": tool.volatile,
            "contacts other hosts": tool.open_world or (tool.is_from_outside and tool.address_params),
            "wraps other requests": tool.carries_requests,
            "waits for an answer": tool.suspends,
            f"caches results for {tool.cacheable_s:g} s": tool.cacheable_s,
        }
        return ", ".join(words for words, holds in said.items() if holds)

    @property
    def side_effects(self) -> str:
        """The tool's effect at its level in this organization, in words."""
        return "changes data, so it needs approval" if Level(self.level).has_side_effects else "changes nothing"

    @property
    def capabilities(self) -> str:
        """The capabilities that the tool requires of the employee."""
        return ", ".join(sorted(self.tool.capabilities))

    @property
    def features(self) -> str:
        """The features that the tool requires of the organization's plan."""
        return ", ".join(sorted(self.tool.features))

    @property
    def optional_facts(self) -> list[tuple[str, str]]:
        """The traits, capabilities and features that exist, with their labels."""
        facts = [("Traits", self.traits), ("Capabilities", self.capabilities), ("Plan features", self.features)]
        return [(label, value) for label, value in facts if value]

    @property
    def modes(self) -> str:
        return "every mode" if self.tool.modes is None else ", ".join(sorted(self.tool.modes)) or "none"


@member_view("GET")
def catalog(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the tools, filtered by category, level, source and text; `?after=` is the last tool of the page before."""
    return _show(request, member, Attempt())


@member_view("POST", page="tools")
def try_tool(request: HttpRequest, member: Membership, name: str) -> HttpResponseBase:
    """Start a run of this one call and go to it; show problems in the form."""
    if not member.may(Role.OPERATOR):
        raise Forbidden("Only operators can try tools.")
    tool = load_toolbox(member.organization_id).get_tool(name)
    if tool is None or tool.is_system:
        raise NotFound(f"There is no tool {name!r}.")
    typed = {key.removeprefix(PREFIX): str(text) for key, text in request.POST.items() if key.startswith(PREFIX)}
    fields, employee = build_fields(tool.schema, {}), request.POST.get("employee", "")
    try:
        params = read_typed(fields, typed)
        run = manual_calls.submit(member, manual_calls.ManualCall(_parse_employee_id(employee), tool.name, params))
    except (UnreadableField, Invalid, Conflict) as problem:
        attempt = Attempt(tool.name, employee, TypedValues(typed, _find_problems(fields, problem)))
        answer = _show(request, member, attempt)
        answer.status_code = 422 if isinstance(problem, UnreadableField) else problem.status
        return answer
    return redirect("run", run.pk)


def _parse_employee_id(text: str) -> int:
    try:
        return parse_row_id(text)
    except ValueError:
        raise Invalid("employee", "Choose an employee that is allowed to use this tool.") from None


def _find_problems(fields: list[Field], problem: UnreadableField | Invalid | Conflict) -> dict[str, str]:
    """Return the problem by the key of its field; an empty key means the whole form."""
    if isinstance(problem, UnreadableField):
        return {problem.key: problem.detail}
    if isinstance(problem, Conflict):
        return {"": problem.detail}
    key = find_blamed_key(fields, problem.extra["field"].removeprefix("params."))
    return {key: simplify_complaint(problem.detail, is_named=not key)}


def _show(request: HttpRequest, member: Membership, attempt: Attempt) -> HttpResponse:
    """Show the matching tools, or the one of a refused attempt."""
    toolbox = load_toolbox(member.organization_id)
    every = toolbox.tools()
    rules = load_organization_rules(member.organization_id)
    if attempt.tool:
        fitting = [tool for tool in every if toolbox.get_tool(attempt.tool) is tool]
    else:
        fitting = sorted(_filter_tools(every, request, rules), key=lambda tool: (tool.category, tool.id))
    shown = fitting[:PAGE_SIZE]
    query = request.GET.copy()
    query["after"] = shown[-1].id if len(fitting) > PAGE_SIZE else ""
    views = [_add_trial(view, member, attempt) for view in _build_views(shown, member, rules)]
    context = {
        "categories": [(name, list(tools)) for name, tools in groupby(views, key=lambda view: view.tool.category)],
        "is_single": len(shown) == 1,
        "filters": _list_filters(every),
        "chosen": request.GET,
        "next_query": query.urlencode() if query["after"] else "",
        "days": figures.DAYS,
        "counted_at": figures.load_counted_at(),
        "currency": member.organization.currency,
    }
    return render_page(request, member, "tools/list.html", context)


def _list_filters(every: Iterable[Tool]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """List the filters with their label, name and choices; the source only where there are several."""
    values = [
        ("Category", "category", sorted({tool.category for tool in every})),
        ("Level", "level", [level.value for level in Level]),
        ("Source", "source", sorted({tool.source for tool in every})),
    ]
    return [
        (label, name, [(one, one) for one in found])
        for label, name, found in values
        if name != "source" or len(found) > 1
    ]


def _filter_tools(every: Iterable[Tool], request: HttpRequest, rules: Grants) -> list[Tool]:
    category, level, source = (request.GET.get(name, "") for name in ("category", "level", "source"))
    wanted = request.GET.get("q", "").casefold().split()
    after = request.GET.get("after", "")
    behind = (after.partition(".")[0].partition("@")[0], after)
    return [
        tool
        for tool in every
        if category in ("", tool.category)
        and level in ("", determine_level(tool, rules).value)
        and source in ("", tool.source)
        and all(word in f"{tool.name} {tool.title} {tool.description}".casefold() for word in wanted)
        and (not after or (tool.category, tool.id) > behind)
    ]


def _build_views(shown: list[Tool], member: Membership, rules: Grants) -> list[ToolView]:
    disabled = load_toolbox(member.organization_id).policy.disabled
    users, counted = _load_users(shown, member), figures.load_tool_figures(member.organization_id)
    return [
        ToolView(
            tool=tool,
            level=determine_level(tool, rules).value,
            is_enabled=not {tool.name, tool.id} & disabled,
            stopped_by=rules.stopped.get(tool.name, ""),
            params=params_of(tool.schema),
            users=users[tool.name],
            figures=(found := counted.get(tool.name, figures.Figures())),
            chart=build_calls_chart(f"calls-{number}", found.days) if found.calls else None,
        )
        for number, tool in enumerate(shown)
    ]


def _add_trial(view: ToolView, member: Membership, attempt: Attempt) -> ToolView:
    employees = [(pk, name) for pk, name, is_active in view.users if is_active]
    is_off = not view.is_enabled or view.stopped_by
    if (
        is_off
        or not employees
        or not member.may(Role.OPERATOR)
        or not manual_calls.can_run_by_hand(load_toolbox(member.organization_id), view.tool, view.level)
    ):
        return view
    is_tried = attempt.tool == view.tool.name
    typed = attempt.typed if is_tried else TypedValues()
    fields = build_fields(view.tool.schema, {}, typed)
    chosen = next((pk for pk, _ in employees if str(pk) == attempt.employee), None)
    form = TrialForm(fields, employees, chosen, typed.problems.get("", ""), is_tried)
    return replace(view, trial=form)


def _load_users(shown: list[Tool], member: Membership) -> dict[str, list[tuple[int, str, bool]]]:
    granted = Grant.objects.filter(
        employee__organization_id=member.organization_id, tool__in={tool.name for tool in shown}
    )
    columns = ("tool", "employee_id", "employee__name", "employee__is_active")
    users: dict[str, list[tuple[int, str, bool]]] = defaultdict(list)
    for tool, *user in granted.order_by("employee__name").values_list(*columns):
        users[tool].append((user[0], user[1], user[2]))
    return users
