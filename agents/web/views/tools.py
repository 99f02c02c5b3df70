"""The catalog of tools, with each tool's level, params, users and recent figures, and a form to try
it."""

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
from agents.web.cards.edit_form import build_fields, find_problems
from agents.web.cards.form_fields import FormField, FormInput, read_typed_texts
from agents.web.cards.form_values import InvalidFieldText, parse_form
from agents.web.cards.param_table import ParamRow, build_param_rows
from agents.web.charts.bar_charts import Chart, build_calls_chart
from agents.web.frame.finding import put_exact_first
from agents.web.views.pages import member_view, render_page
from tools.contract import Level, Tool, name_category
from tools.sources.external_tool import get_server_title
from tools.toolbox.permissions import Grants, determine_level

PAGE_SIZE = 100


@dataclass(frozen=True)
class RefusedTrial:
    """A refused attempt to try a tool: the tool's id, the typed values and the problems; empty if
    there was no attempt."""

    tool: str = ""
    employee: str = ""
    typed: FormInput = field(default_factory=FormInput)


@dataclass(frozen=True)
class TrialForm:
    """The form to try one tool.

    Attributes:
        employees: ids and names of the employees for whom the tool can be tried.
        chosen: the chosen employee's id.
        problem: a problem with the whole form; each field shows its own problem.
    """

    fields: list[FormField]
    employees: list[tuple[int, str]]
    chosen: int | None
    problem: str
    is_open: bool


@dataclass(frozen=True)
class CatalogEntry:
    """A tool prepared for the catalog.

    Attributes:
        unique_name: the tool's name, or its id if several versions are installed.
        level: the tool's own level, or a higher one that an admin set for all employees.
        users: the id, name and active state of each employee that may use the tool in this version.
        figures, chart: the figures and the chart of the last 30 days; there is no chart if there
            were no calls.
        trial: the form to try the tool; None if the tool cannot be tried or this member may not try
            it.
    """

    tool: Tool
    unique_name: str
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
    def server_title(self) -> str:
        return get_server_title(self.tool)

    @property
    def traits(self) -> str:
        """The tool's declared traits, in words."""
        tool = self.tool
        traits = {
            "writes in one transaction": tool.transactional,
            "safe to repeat": tool.idempotent,
            "never treated as a duplicate": tool.volatile,
            "contacts other hosts": tool.open_world
            or (tool.is_from_outside and tool.address_params),
            "wraps other requests": tool.carries_requests,
            "waits for an answer": tool.suspends,
            f"caches results for {tool.cacheable_s:g} s": tool.cacheable_s,
        }
        return ", ".join(trait for trait, applies in traits.items() if applies)

    @property
    def side_effects(self) -> str:
        """The tool's effect at its level in this organization, in words."""
        return "changes data, so it needs approval" if self.may_ask else "changes nothing"

    @property
    def may_ask(self) -> bool:
        """True if calls of the tool need approval because of its level."""
        return Level(self.level).has_side_effects

    @property
    def capabilities(self) -> str:
        """The capabilities that an employee needs to use the tool."""
        return ", ".join(sorted(self.tool.capabilities))

    @property
    def features(self) -> str:
        """The features that the organization's plan needs to include."""
        return ", ".join(sorted(self.tool.features))

    @property
    def optional_facts(self) -> list[tuple[str, str]]:
        """The labels and texts of traits, capabilities and features; those without a text are left
        out."""
        facts = [
            ("Traits", self.traits),
            ("Capabilities", self.capabilities),
            ("Plan features", self.features),
        ]
        return [(label, value) for label, value in facts if value]

    @property
    def modes(self) -> str:
        return (
            "all modes" if self.tool.modes is None else ", ".join(sorted(self.tool.modes)) or "none"
        )


@member_view("GET")
def catalog(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show tools, filtered by category, level, source and text; `?after=` is the last tool of the
    previous page."""
    return _render_list(request, member, RefusedTrial())


@member_view("GET")
def tool_page(request: HttpRequest, member: Membership, name: str) -> HttpResponseBase:
    """Show one tool."""
    if load_toolbox(member.organization_id).get_tool(name) is None:
        raise NotFound(f"There is no tool {name!r}.")
    return _render_list(request, member, RefusedTrial(), only=name)


@member_view("POST", page="tools")
def try_tool(request: HttpRequest, member: Membership, name: str) -> HttpResponseBase:
    """Start a run with this one call and redirect to it; show problems in the form."""
    if not member.may(Role.OPERATOR):
        raise Forbidden("Only operators can try tools.")
    tool = load_toolbox(member.organization_id).get_tool(name)
    if tool is None or tool.is_system:
        raise NotFound(f"There is no tool {name!r}.")
    typed = read_typed_texts(request.POST)
    fields, employee = build_fields(tool.schema, {}), request.POST.get("employee", "")
    try:
        params = parse_form(fields, typed)
        run = manual_calls.submit(
            member, manual_calls.ManualCall(_parse_employee_id(employee), tool.name, params)
        )
    except (InvalidFieldText, Invalid, Conflict) as problem:
        problems = (
            {"": problem.detail}
            if isinstance(problem, Conflict)
            else find_problems(fields, problem)
        )
        refused = RefusedTrial(tool.id, employee, FormInput(typed, problems))
        response = _render_list(request, member, refused, only=name)
        response.status_code = 422 if isinstance(problem, InvalidFieldText) else problem.status
        return response
    return redirect("run", run.pk)


def _parse_employee_id(text: str) -> int:
    try:
        return parse_row_id(text)
    except ValueError:
        raise Invalid("employee", "Choose an employee that is allowed to use this tool.") from None


def _render_list(
    request: HttpRequest, member: Membership, refused: RefusedTrial, *, only: str = ""
) -> HttpResponse:
    """Show the matching tools, or only the tool with this name."""
    toolbox = load_toolbox(member.organization_id)
    tools = toolbox.tools()
    rules = load_organization_rules(member.organization_id)
    if only:
        matching = [tool for tool in tools if toolbox.get_tool(only) is tool]
    else:
        matching = sorted(
            _filter_tools(tools, request, rules), key=lambda tool: (tool.category, tool.id)
        )
        matching = put_exact_first(matching, request.GET.get("q", ""))
    shown = matching[:PAGE_SIZE]
    query = request.GET.copy()
    query["after"] = shown[-1].id if len(matching) > PAGE_SIZE else ""
    entries = [_add_trial(entry, member, refused) for entry in _build_entries(shown, member, rules)]
    context = {
        "categories": [
            (name, list(group))
            for name, group in groupby(entries, key=lambda entry: name_category(entry.tool))
        ],
        "is_single": len(shown) == 1,
        "only": only,
        "left_out": toolbox.left_out,
        "filters": _list_filters(tools),
        "chosen": request.GET,
        "next_query": query.urlencode() if query["after"] else "",
        "days": figures.DAYS,
        "counted_at": figures.load_counted_at(),
        "currency": member.organization.currency,
    }
    return render_page(request, member, "tools/list.html", context)


def _list_filters(tools: Iterable[Tool]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """List the filters with label, name and choices; omit the source filter if there is only one
    source."""
    values = [
        ("Category", "category", sorted({tool.category for tool in tools})),
        ("Level", "level", [level.value for level in Level]),
        ("Source", "source", sorted({tool.source for tool in tools})),
    ]
    return [
        (label, name, [(choice, choice) for choice in choices])
        for label, name, choices in values
        if name != "source" or len(choices) > 1
    ]


def _filter_tools(tools: Iterable[Tool], request: HttpRequest, rules: Grants) -> list[Tool]:
    category, level, source = (
        request.GET.get(name, "") for name in ("category", "level", "source")
    )
    words = request.GET.get("q", "").casefold().split()
    after = request.GET.get("after", "")
    position = (after.partition(".")[0].partition("@")[0], after)
    return [
        tool
        for tool in tools
        if category in ("", tool.category)
        and level in ("", determine_level(tool, rules).value)
        and source in ("", tool.source)
        and all(word in _join_texts(tool) for word in words)
        and (not after or (tool.category, tool.id) > position)
    ]


def _join_texts(tool: Tool) -> str:
    """Join the searchable texts of the tool."""
    return f"{tool.name} {tool.title} {get_server_title(tool)} {tool.description}".casefold()


def _build_entries(shown: list[Tool], member: Membership, rules: Grants) -> list[CatalogEntry]:
    toolbox = load_toolbox(member.organization_id)
    disabled = toolbox.policy.disabled
    users, counted = _load_users(shown, member), figures.load_tool_figures(member.organization_id)
    return [
        CatalogEntry(
            tool=tool,
            unique_name=toolbox.get_unique_name(tool),
            level=determine_level(tool, rules).value,
            is_enabled=not {tool.name, tool.id} & disabled,
            stopped_by=rules.stopped.get(tool.name, ""),
            params=build_param_rows(tool.schema),
            users=users[tool.id],
            figures=(found := counted.get(tool.name, figures.Figures())),
            chart=build_calls_chart(f"calls-{number}", found.days) if found.calls else None,
        )
        for number, tool in enumerate(shown)
    ]


def _add_trial(entry: CatalogEntry, member: Membership, refused: RefusedTrial) -> CatalogEntry:
    """Add the form to try the tool, if the member may try it; the form shows the problems of a
    refused attempt."""
    employees = [(pk, name) for pk, name, is_active in entry.users if is_active]
    may_try = entry.is_enabled and not entry.stopped_by and employees and member.may(Role.OPERATOR)
    if not may_try or not manual_calls.can_run_by_hand(entry.tool, entry.level):
        return entry
    is_refused = refused.tool == entry.tool.id
    typed = refused.typed if is_refused else FormInput()
    fields = build_fields(entry.tool.schema, {}, typed)
    chosen = next((pk for pk, _ in employees if str(pk) == refused.employee), None)
    form = TrialForm(fields, employees, chosen, typed.problems.get("", ""), is_refused)
    return replace(entry, trial=form)


def _load_users(shown: list[Tool], member: Membership) -> dict[str, list[tuple[int, str, bool]]]:
    """Load the employees that use each tool version, by the tool's id."""
    toolbox = load_toolbox(member.organization_id)
    granted = Grant.objects.filter(
        employee__organization_id=member.organization_id, tool__in={tool.name for tool in shown}
    )
    columns = ("tool", "version", "employee_id", "employee__name", "employee__is_active")
    users: dict[str, list[tuple[int, str, bool]]] = defaultdict(list)
    for named, version, *user in granted.order_by("employee__name").values_list(*columns):
        if (tool := toolbox.get_pinned_tool(named, version)) is not None:
            users[tool.id].append((user[0], user[1], user[2]))
    return users
