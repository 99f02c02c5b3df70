"""The simulator, for admins: how a rule change would have affected recorded calls; and saved policy
drafts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect
from django.utils import timezone

from agents.accounts.models import Membership, Organization
from agents.employees.toolboxes import load_toolbox
from agents.platform.refusals import Conflict, Invalid, Refusal
from agents.policy import shadow
from agents.policy.models import MAX_SHADOW_DAYS, PolicyDraft
from agents.policy.policy_drafts import OF_CARDS, ChangeKind, PolicyChange
from agents.policy.rule_simulation import simulate_rules
from agents.policy.shadow_cards import count_cards
from agents.policy.simulation import simulate
from agents.policy.typed_changes import (
    FORM_LABELS,
    RULES,
    RULES_OVER_HISTORY,
    list_employees,
    read_change,
    read_changes,
)
from agents.web.grants.terms import describe_terms
from agents.web.lists.simulated_calls import (
    WORDS,
    build_tables,
    count_pairs,
    describe_changed,
    describe_skipped,
)
from agents.web.lists.simulated_cards import (
    COLUMNS,
    CardCountsRow,
    build_card_tables,
    describe_cards,
    describe_shadow_cards,
    describe_skipped_cards,
)
from agents.web.views.pages import member_view, read_number, render_page
from tools.contract import Level
from tools.toolbox.conditions import need_history
from tools.toolbox.history import Period

CALL_NUMBERS = (500, 5_000, 20_000)
MAX_SHOWN_VERDICTS = 200
MAX_ADDRESS = 3_000
"""The maximum length of changes in a URL; longer changes are sent in a request body."""
_TYPED = ("kind", "tool", "employee", "level", "param", "rule", "value", "otherwise", "host")
_TYPED_OVER_HISTORY = ("most", "period", "after", "same")


@member_view("GET", "POST")
def simulator_page(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the form for a change and the policy drafts; if changes are given, also show how they
    would have affected past calls."""
    shadow.require_admin(member)
    given, changes = _get_values(request), tuple[PolicyChange, ...]()
    try:
        changes = read_changes(member.organization_id, given.get("changes", ""))
        if given.get("kind"):
            changes = (*changes, read_change(member.organization_id, given))
    except Invalid as refusal:
        return _render(request, member, changes, refusal)
    return _render(request, member, changes)


def show_simulation(request: HttpRequest, member: Membership, change: PolicyChange) -> HttpResponse:
    """Show the simulation of one change that another page proposes.

    Raises:
        Forbidden: the member is not an admin.
        Invalid: the change cannot be simulated.
    """
    shadow.require_admin(member)
    return _render(request, member, read_changes(member.organization_id, _dump([change])))


@member_view("POST", page="simulator")
def save(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Save the changes as a policy draft under a name."""
    shadow.require_admin(member)
    changes = read_changes(member.organization_id, request.POST.get("changes", ""))
    try:
        policy_draft = shadow.save_policy_draft(member, request.POST.get("name", ""), changes)
    except (Invalid, Conflict) as refusal:
        return _render(request, member, changes, refusal)
    messages.success(
        request, "Policy draft saved. It changes nothing until you change the rules yourself."
    )
    return redirect("policy-draft", policy_draft.pk)


@member_view("GET")
def draft_page(request: HttpRequest, member: Membership, policy_draft_id: int) -> HttpResponseBase:
    """Show a policy draft, and the verdicts that it gave in shadow mode."""
    policy_draft = shadow.find_policy_draft(member, policy_draft_id)
    employees, changes = list_employees(member.organization_id), shadow.load_changes(policy_draft)
    now = timezone.now()
    verdicts = policy_draft.verdicts.select_related("call", "call__run__employee")[
        :MAX_SHOWN_VERDICTS
    ]
    context = {
        "policy_draft": policy_draft,
        **_describe_changes(changes, employees),
        "is_running": policy_draft.shadow_until is not None and policy_draft.shadow_until > now,
        "shadow": count_pairs(_split_counts(policy_draft)),
        "skipped": describe_skipped(policy_draft.counts),
        "verdicts": verdicts,
        "verdict_count": policy_draft.verdicts.count(),
        **_describe_shadow_cards(policy_draft, employees),
        "words": WORDS,
        "max_days": MAX_SHADOW_DAYS,
    }
    return render_page(request, member, "simulator/policy_draft.html", context)


@member_view("POST", page="policy-draft")
def start_shadow(
    request: HttpRequest, member: Membership, policy_draft_id: int
) -> HttpResponseBase:
    """Start the shadow mode of a policy draft, for the number of days in the form."""
    shadow.start_shadow(member, policy_draft_id, read_number(request, "days"))
    messages.success(
        request, "Shadow mode started. The policy draft's verdicts are recorded and never applied."
    )
    return redirect("policy-draft", policy_draft_id)


@member_view("POST", page="policy-draft")
def stop_shadow(request: HttpRequest, member: Membership, policy_draft_id: int) -> HttpResponseBase:
    """End the shadow mode of a policy draft now."""
    shadow.stop_shadow(member, policy_draft_id)
    messages.success(request, "Shadow mode stopped.")
    return redirect("policy-draft", policy_draft_id)


@member_view("POST", page="simulator")
def delete(request: HttpRequest, member: Membership, policy_draft_id: int) -> HttpResponseBase:
    """Delete a policy draft with its recorded verdicts."""
    shadow.delete_policy_draft(member, policy_draft_id)
    messages.success(request, "Policy draft deleted.")
    return redirect("simulator")


def _get_values(request: HttpRequest) -> QueryDict:
    return request.POST if request.method == "POST" else request.GET


def _render(
    request: HttpRequest,
    member: Membership,
    changes: tuple[PolicyChange, ...],
    refusal: Refusal | None = None,
) -> HttpResponse:
    organization_id, employees = member.organization_id, list_employees(member.organization_id)
    given = _get_values(request)
    typed = (
        {name: given.get(name, "") for name in (*_TYPED, *_TYPED_OVER_HISTORY)}
        if refusal or not changes
        else {}
    )
    context: dict[str, Any] = {
        "problem": refusal.detail if refusal else "",
        "typed": typed | {"employee": given.get("employee", "")},
        **_describe_changes(changes, employees),
        "calls": _read_number(given.get("calls", "")),
        "call_numbers": [(number, f"the newest {number:,}") for number in CALL_NUMBERS],
        "kinds": [(kind.value, label) for kind, label in FORM_LABELS.items()],
        "rules": [(rule.value, label) for rule, label in (RULES | RULES_OVER_HISTORY).items()],
        "periods": [(period.value, period.value) for period in Period],
        "levels": [(level.value, level.value) for level in Level if level is not Level.READ],
        "employees": list(employees.items()),
        "tools": _list_tools(organization_id),
        "policy_drafts": _describe_policy_drafts(shadow.list_policy_drafts(member)),
        "report": None,
        "rule_report": None,
    }
    if changes and not refusal:
        context |= _simulate(member.organization, changes, context["calls"], employees)
    page = render_page(request, member, "simulator/page.html", context)
    page.status_code = refusal.status if refusal else 200
    return page


def _describe_changes(
    changes: tuple[PolicyChange, ...], employees: Mapping[int, str]
) -> dict[str, Any]:
    sent = _dump(changes)
    return {
        "changes": [
            {
                "words": change.describe(employees),
                "terms": describe_terms(change.params, change.conditions),
            }
            for change in changes
        ],
        "changes_json": sent,
        "is_long": len(quote(sent)) > MAX_ADDRESS,
        "adds_grants": any(change.kind is ChangeKind.STANDING_GRANT for change in changes),
        "changes_calls": any(change.kind not in OF_CARDS for change in changes),
        "changes_rules": any(change.kind in OF_CARDS for change in changes),
        "limits_history": need_history(
            change.condition for change in changes if change.condition is not None
        ),
    }


def _simulate(
    organization: Organization,
    changes: tuple[PolicyChange, ...],
    number: int,
    employees: Mapping[int, str],
) -> dict[str, Any]:
    """Judge recorded calls by the changed rules for calls, and recorded cards by the changed
    approval rules."""
    titles = {tool.name: tool.title for tool in load_toolbox(organization.pk).tools()}
    found: dict[str, Any] = {}
    if any(change.kind not in OF_CARDS for change in changes):
        found |= _simulate_calls(organization.pk, changes, number, (titles, employees))
    if any(change.kind in OF_CARDS for change in changes):
        report = simulate_rules(organization, changes, number)
        found |= {
            "rule_report": report,
            "card_columns": list(COLUMNS.values()),
            "card_tables": build_card_tables(report, titles, employees),
            "skipped_cards": describe_skipped_cards(
                {kind.value: number for kind, number in report.total.outcomes.items()}
            ),
            "changed_cards": describe_cards(report.listed, titles, employees),
        }
    return found


def _simulate_calls(
    organization_id: int,
    changes: tuple[PolicyChange, ...],
    number: int,
    names: tuple[Mapping[str, str], Mapping[int, str]],
) -> dict[str, Any]:
    titles, employees = names
    report = simulate(organization_id, changes, number)
    return {
        "report": report,
        "tables": build_tables(report, titles, employees),
        "skipped": describe_skipped({kind.value: count for kind, count in report.skipped.items()}),
        "changed": describe_changed(report, titles, employees),
    }


def _read_number(text: str) -> int:
    return next((number for number in CALL_NUMBERS if str(number) == text), CALL_NUMBERS[1])


def _list_tools(organization_id: int) -> list[tuple[str, str]]:
    tools = {
        tool.name: tool for tool in load_toolbox(organization_id).tools() if not tool.is_system
    }
    titles = {
        name: tool.title if tool.title == name else f"{tool.title} · {name}"
        for name, tool in tools.items()
    }
    return sorted((name, f"{titles[name]} · {tool.level}") for name, tool in tools.items())


def _describe_policy_drafts(policy_drafts: Iterable[PolicyDraft]) -> list[dict[str, Any]]:
    now = timezone.now()
    return [
        {
            "policy_draft": policy_draft,
            "is_running": policy_draft.shadow_until is not None and policy_draft.shadow_until > now,
            "different": sum(
                count for pair, count in _split_counts(policy_draft).items() if pair[0] != pair[1]
            )
            + count_cards(policy_draft).changed,
        }
        for policy_draft in policy_drafts
    ]


def _describe_shadow_cards(
    policy_draft: PolicyDraft, employees: Mapping[int, str]
) -> dict[str, Any]:
    titles = {tool.name: tool.title for tool in load_toolbox(policy_draft.organization_id).tools()}
    rows = policy_draft.cards.select_related("card__tool_call", "card__run").defer(
        "card__preview", "card__tool_call__result"
    )
    counts = count_cards(policy_draft)
    return {
        "card_columns": list(COLUMNS.values()),
        "shadow_counts": CardCountsRow("All cards", counts),
        "shadow_cards": describe_shadow_cards(rows[:MAX_SHOWN_VERDICTS], titles, employees),
        "skipped_cards": describe_skipped_cards(
            {kind.value: number for kind, number in counts.outcomes.items()}
        ),
    }


def _split_counts(policy_draft: PolicyDraft) -> dict[tuple[str, str], int]:
    pairs = ((name.partition(" "), count) for name, count in policy_draft.counts.items())
    return {(before, after): count for (before, _, after), count in pairs if after}


def _dump(changes: Iterable[PolicyChange]) -> str:
    return json.dumps([change.as_json() for change in changes])
