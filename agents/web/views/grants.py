"""Standing grants: list, create and revoke them."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from agents.accounts.models import Membership, Role
from agents.approvals.warnings.card_marks import load_marks_of
from agents.employees.models import Employee
from agents.employees.toolboxes import load_toolbox
from agents.insight.narrowest_terms import CrossCheck
from agents.insight.suggestions import suggest_for_card
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound, Refusal
from agents.platform.row_ids import get_row, parse_row_id_or_none
from agents.policy.policy_drafts import PolicyChange
from agents.runs.models import ENDED, Approval
from agents.standing_grants.coverage import describe_coverage
from agents.standing_grants.making import list_grants, make_grant, revoke_grant
from agents.standing_grants.past_calls import find_covered_cards
from agents.standing_grants.preapprovals import IN_FORCE
from agents.standing_grants.proposals import (
    check_proposal,
    describe_need,
    find_naming,
    find_need_of_decision,
    find_tool,
    load_used_params,
    propose_from_card,
)
from agents.web.grants.form_rows import arrange_rows
from agents.web.grants.grant_form import (
    CHOICES,
    LIFETIMES,
    LOOKUP_CHOICES,
    GrantForm,
    add_lookups,
    hash_form,
    make_empty_form,
    make_form,
    parse_proposal,
    read_form,
)
from agents.web.grants.origin_rows import list_offered
from agents.web.grants.terms import describe_grants, describe_suggestions, describe_terms
from agents.web.panel.call_inputs import label_path
from agents.web.views.pages import member_view, read_newest, render_page
from agents.web.views.simulator import show_simulation
from tools.contract import Level, Tool

MAX_LISTED = 20
"""The maximum number of past cards that the preview lists."""


@member_view("GET")
def grant_list(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the standing grants in force and suggestions, or with `?ended=1` the grants that have
    ended.

    The newest grants come first; `?before=` is the id of the last grant shown.
    """
    are_ended = request.GET.get("ended") == "1"
    rows = list_grants(member.organization_id)
    page = read_newest(request, rows.exclude(IN_FORCE) if are_ended else rows.filter(IN_FORCE))
    may_suggest = member.may(Role.APPROVER) and not are_ended and not page.is_later
    context = {
        "are_ended": are_ended,
        "is_later_page": page.is_later,
        "next_before": page.next_before,
        "rows": describe_grants(member.organization, page.rows),
        "suggestions": describe_suggestions(member) if may_suggest else [],
        **_list_choices(member),
    }
    return render_page(request, member, "grants/list.html", context)


@member_view("GET", "POST")
def new_grant(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the form, filled in from a card (`?card=`), from a suggestion (`&suggested=1`) or for a
    tool (`?tool=`).

    A form sent with `simulate` leads to the simulator. A form that has changed since its preview,
    or is sent with `look`, is previewed. Any other form creates the grant.
    """
    if not member.may(Role.APPROVER):
        raise Forbidden("Only approvers can make standing grants.")
    if request.method != "POST" and not {"card", "tool"} & request.GET.keys():
        return redirect("grants")
    if request.method != "POST":
        return _render_form(request, member, _start_form(request, member))
    form = _add_lookups(member, read_form(request.POST))
    if "simulate" in request.POST:
        return _simulate(request, member, form)
    if "look" in request.POST or request.POST.get("seen") != hash_form(form):
        return _render_form(request, member, _ShownForm(form))
    try:
        made = make_grant(member, parse_proposal(form))
    except (Invalid, Conflict) as refusal:
        return _render_form(request, member, _ShownForm(form, refusal))
    messages.success(
        request, f"Standing grant {made.pk} is in force. It approves new cards from now on."
    )
    return redirect("grants")


def _simulate(request: HttpRequest, member: Membership, form: GrantForm) -> HttpResponse:
    try:
        return show_simulation(request, member, PolicyChange.from_grant(parse_proposal(form)))
    except Invalid as problem:
        return _render_form(request, member, _ShownForm(form, problem))


@member_view("POST", page="grants")
def revoke(request: HttpRequest, member: Membership, grant_id: int) -> HttpResponseBase:
    """Revoke a standing grant immediately."""
    revoke_grant(member, grant_id)
    messages.success(
        request,
        f"Standing grant {grant_id} revoked. Calls that have not started wait for a person.",
    )
    return redirect("grants")


class _ShownForm(NamedTuple):
    """A form with what the page says about it.

    Attributes:
        refusal: the reason why no standing grant was created.
        check: the check of the suggestion that filled it in.
    """

    form: GrantForm
    refusal: Refusal | None = None
    check: CrossCheck | None = None


def _start_form(request: HttpRequest, member: Membership) -> _ShownForm:
    card_id = parse_row_id_or_none(request.GET.get("card", ""))
    if card_id is None:
        name, employee = (
            request.GET.get(each, "").replace("\0", "") for each in ("tool", "employee")
        )
        tool = find_tool(member.organization_id, name, parse_row_id_or_none(employee))
        if tool is None:
            raise NotFound("There is no such tool. Choose one on the standing grants page.")
        return _ShownForm(make_empty_form(tool, employee))
    cards = Approval.objects.filter(organization_id=member.organization_id).select_related(
        "run__employee", "run__organization", "organization", "tool_call"
    )
    card = get_row(cards, card_id, "approval")
    if (need := find_need_of_decision(card, card.run)) is not None:
        raise Conflict(f"No standing grant can approve cards like this one. {need.why}")
    suggestion = suggest_for_card(card) if request.GET.get("suggested") else None
    if suggestion is None:
        return _ShownForm(make_form(propose_from_card(card)))
    return _ShownForm(make_form(suggestion.proposal), check=suggestion.check)


def _add_lookups(member: Membership, form: GrantForm) -> GrantForm:
    employee_id = parse_row_id_or_none(form.employee)
    return add_lookups(form, lambda name: find_tool(member.organization_id, name, employee_id))


def _render_form(request: HttpRequest, member: Membership, shown: _ShownForm) -> HttpResponse:
    form, refusal, check = shown
    preview: dict[str, Any] = {}
    try:
        preview = _preview(member, form)
    except Invalid as problem:
        refusal = refusal or problem
    card_id = parse_row_id_or_none(request.GET.get("card", "")) or 0
    own = Approval.objects.filter(organization_id=member.organization_id)
    card = list(own.filter(pk=card_id).select_related("run", "tool_call"))
    run_ids = {form.run, *(str(each.run_id) for each in card if each.run.status not in ENDED)} - {
        ""
    }
    tool = find_tool(member.organization_id, form.tool, parse_row_id_or_none(form.employee))
    needs = _describe_needs(member, tool, form)
    rows = arrange_rows(member.organization_id, form, tool, needs)
    context = {
        "form": form,
        "tool": tool,
        "offered": {
            row.key: list_offered(member.organization_id, tool, row.path)
            for row in (*form.rows, *form.lookups)
            if row.offers_fields and tool is not None
        },
        "rows": rows,
        "label_path": label_path,
        "is_from_card": any(rows.keeps_values(each) for each in card),
        "check": check,
        "lookup_choices": LOOKUP_CHOICES,
        "seen": hash_form(form),
        "refusal": refusal,
        "choices": CHOICES,
        "lifetimes": LIFETIMES,
        "run_ids": sorted(run_ids),
        "card_id": card_id,
        "marks": load_marks_of(own.filter(pk__in=[card_id, *preview.pop("shown", ())])),
        **preview,
        **_list_choices(member),
    }
    return render_page(request, member, "grants/new.html", context)


def _describe_needs(member: Membership, tool: Tool | None, form: GrantForm) -> dict[str, str]:
    """Explain, by path, why params of the form need a condition."""
    if tool is None:
        return {}
    paths = {row.path for row in form.rows}
    naming = find_naming(tool, paths, load_used_params(member.organization_id, tool))
    return {path: f"It {describe_need(kind)}" for path, kind in naming.items()}


def _preview(member: Membership, form: GrantForm) -> dict[str, Any]:
    """Return the proposal's terms in words, and the past cards that it would have approved.

    Raises:
        Invalid: names the invalid input and the reason.
    """
    proposal = parse_proposal(form)
    tool = check_proposal(member.organization_id, proposal)
    past = find_covered_cards(member.organization_id, proposal, tool)
    return {
        "past": past,
        "listed": past.covered[:MAX_LISTED],
        "shown": [card.pk for card in (*past.denied, *past.covered[:MAX_LISTED])],
        "coverage": describe_coverage(proposal, tool),
        "terms": describe_terms(proposal.params, proposal.conditions),
    }


def _list_choices(member: Membership) -> dict[str, Any]:
    employees = Employee.objects.filter(
        organization_id=member.organization_id, is_active=True
    ).order_by("name")
    tools = load_toolbox(member.organization_id).tools()
    askable = {tool.name: tool for tool in tools if tool.level is Level.WRITE or tool.open_world}
    return {
        "employees": list(employees.values_list("pk", "name")),
        "tools": list(askable.values()),
        "is_admin": member.may(Role.ADMIN),
    }
