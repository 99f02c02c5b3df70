"""Triggers: the address to which other systems send messages, and the pages where people create and
watch them."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from agents.accounts.models import Membership
from agents.employees.models import Employee
from agents.platform.refusals import Conflict, Invalid, NotFound, Refusal
from agents.platform.row_ids import parse_row_id_or_none
from agents.triggers import changes
from agents.triggers.models import ReceivedMessage, Scheme, Trigger
from agents.triggers.receiving import receive, start_again
from agents.triggers.schemes import TRAITS
from agents.web.text.safe_text import quote_outside
from agents.web.views import one_time_reports
from agents.web.views.absolute_links import build_absolute_link, make_absolute
from agents.web.views.pages import member_view, read_newest, read_number, render_page

SHOWN_OF_PAYLOAD = 2_000
"""The number of characters of a message that the trigger's page shows; the run's page shows all of
them."""
EMPTY_FILTERS = 3
"""The number of empty rows that the form offers for further filters."""
_NEW_SECRET = "made_trigger_secret"  # noqa: S105 - the session key under which a new secret is stored until it is shown
_FILTER_FIELDS = ("filter_param", "filter_rule", "filter_value")
_RULE_WORDS = {
    "equals": "is",
    "one_of": "is one of",
    "pattern": "matches",
    "prefix": "starts with",
    "minimum": "is at least",
    "maximum": "is at most",
}


@csrf_exempt
@require_POST
def receive_message(request: HttpRequest, public_id: str) -> JsonResponse:
    """Receive a message from another system; its signature authenticates it."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    try:
        taken = receive(public_id.removesuffix("/"), headers, request.body)
    except Refusal as refusal:
        problem = {
            "type": "about:blank",
            "status": refusal.status,
            "code": refusal.code,
            "detail": refusal.detail,
        }
        response = JsonResponse(
            problem, status=refusal.status, content_type="application/problem+json"
        )
        if "retry_after" in refusal.extra:
            response["Retry-After"] = str(refusal.extra["retry_after"])
        return response
    if taken.response is not None:
        return JsonResponse(dict(taken.response))
    if taken.run is None:
        return JsonResponse({"status": "filtered"}, status=202)
    address = build_absolute_link(request, "run", str(taken.run.pk))
    return JsonResponse(
        {"status": "started", "run_id": str(taken.run.pk), "url": address}, status=202
    )


@member_view("GET")
def trigger_list(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the triggers, a new secret once, and the form for a new trigger."""
    return _render_list(request, member)


@member_view("POST", page="triggers")
def create(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Create a trigger; the next page shows its secret once."""
    try:
        trigger, secret = changes.make_trigger(member, _read_terms(request))
    except (Invalid, Conflict, NotFound) as refusal:
        return _render_list(request, member, refusal)
    one_time_reports.store_report(
        request, member, _NEW_SECRET, {"trigger": trigger.pk, "secret": secret}
    )
    return redirect("triggers")


@member_view("GET", "POST")
def trigger_page(request: HttpRequest, member: Membership, trigger_id: int) -> HttpResponseBase:
    """Show a trigger's form and its last received messages; POST saves the form."""
    trigger = changes.find_trigger(member, trigger_id)
    if request.method != "POST":
        return _render_one(request, member, trigger)
    try:
        changes.edit_trigger(member, trigger_id, _read_terms(request))
    except (Invalid, Conflict, NotFound) as refusal:
        return _render_one(request, member, trigger, refusal)
    messages.success(request, "The trigger was saved. It now works on your behalf.")
    return redirect("trigger", trigger_id)


@member_view("POST", page="trigger")
def switch(request: HttpRequest, member: Membership, trigger_id: int) -> HttpResponseBase:
    """Switch a trigger on if the form has `on=1`, otherwise off."""
    trigger = changes.switch_trigger(member, trigger_id, is_active=request.POST.get("on") == "1")
    messages.success(
        request,
        f"{quote_outside(trigger.name)} is switched {'on' if trigger.is_active else 'off'}.",
    )
    return (
        redirect("trigger", trigger_id) if request.POST.get("stay") == "1" else redirect("triggers")
    )


@member_view("POST", page="trigger")
def renew(request: HttpRequest, member: Membership, trigger_id: int) -> HttpResponseBase:
    """Give a trigger a new secret; the next page shows it once."""
    trigger, secret = changes.renew_secret(member, trigger_id)
    one_time_reports.store_report(
        request, member, _NEW_SECRET, {"trigger": trigger.pk, "secret": secret}
    )
    return redirect("triggers")


@member_view("POST", page="trigger")
def remove(request: HttpRequest, member: Membership, trigger_id: int) -> HttpResponseBase:
    """Remove a trigger; its runs are kept."""
    changes.remove_trigger(member, trigger_id)
    messages.success(request, "The trigger was removed. Its address no longer exists.")
    return redirect("triggers")


@member_view("POST", page="triggers")
def send_again(_request: HttpRequest, member: Membership, message_id: int) -> HttpResponseBase:
    """Start another run for an earlier message."""
    return redirect("run", start_again(member, message_id).pk)


def _read_terms(request: HttpRequest) -> changes.TriggerTerms:
    filters = [
        {"param": param.strip(), "rule": rule, "value": _read_value(rule, value)}
        for param, rule, value in _read_filter_rows(request)
        if param.strip()
    ]
    return changes.TriggerTerms(
        name=request.POST.get("name", ""),
        employee_id=parse_row_id_or_none(request.POST.get("employee", "")) or 0,
        scheme=request.POST.get("scheme", ""),
        task=request.POST.get("task", "").replace("\r\n", "\n"),
        header=request.POST.get("header", ""),
        filters=filters,
        repeat_hours=read_number(request, "repeat_hours"),
        max_queued=read_number(request, "max_queued"),
        secret=request.POST.get("secret", "").strip(),
    )


def _read_filter_rows(request: HttpRequest) -> list[tuple[str, ...]]:
    """Return the field, the comparison and the value of each row of the form."""
    return list(zip(*map(request.POST.getlist, _FILTER_FIELDS), strict=False))


def _read_value(rule: str, text: str) -> Any:
    """Read the value of a filter as its rule needs it: a number, a list of texts, or a text."""
    if rule == "one_of":
        return [part.strip() for part in text.split(",") if part.strip()]
    if rule in ("minimum", "maximum"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _show_value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _render_list(
    request: HttpRequest, member: Membership, refusal: Refusal | None = None
) -> HttpResponse:
    report = one_time_reports.take_report(request, member, _NEW_SECRET)
    shown = changes.list_triggers(member).filter(pk=report.get("trigger", 0)).first()
    context = {
        "triggers": changes.list_triggers(member),
        "new_trigger": shown,
        "secret": report.get("secret", "") if shown else "",
        "traits": [(Scheme(name).label, traits) for name, traits in TRAITS.items()],
        **_build_form(request, member, None, refusal),
    }
    return render_page(request, member, "triggers/list.html", context)


def _render_one(
    request: HttpRequest, member: Membership, trigger: Trigger, refusal: Refusal | None = None
) -> HttpResponse:
    rows = ReceivedMessage.objects.filter(trigger=trigger).select_related("run", "by")
    page = read_newest(
        request, rows.defer("payload").annotate(beginning=Left("payload", SHOWN_OF_PAYLOAD))
    )
    context = {
        "trigger": trigger,
        "received": page.rows,
        "older": page.next_before,
        **_build_form(request, member, trigger, refusal),
    }
    return render_page(request, member, "triggers/trigger.html", context)


def _build_form(
    request: HttpRequest, member: Membership, trigger: Trigger | None, refusal: Refusal | None
) -> dict[str, Any]:
    own = Q(pk=trigger.employee_id) if trigger else Q()
    employees = Employee.objects.filter(
        Q(is_active=True) | own, organization_id=member.organization_id
    )
    choices = [
        (each.pk, each.name if each.is_active else f"{each.name} (not active)")
        for each in employees
    ]
    if trigger and trigger.employee_id is None:
        choices.insert(0, (0, "choose an employee"))
    stored = trigger.filters if trigger else []
    filters: list[tuple[str, ...]] = [
        (row["param"], row["rule"], _show_value(row["value"])) for row in stored
    ]
    typed: Any = request.POST if request.method == "POST" else {}
    if typed:
        filters = [row for row in _read_filter_rows(request) if row[0].strip() or row[2].strip()]
    return {
        "employees": choices,
        "schemes": Scheme.choices,
        "rules": [(rule.value, _RULE_WORDS[rule.value]) for rule in changes.FILTER_RULES],
        "filters": [*filters, *[("", "equals", "")] * EMPTY_FILTERS][: changes.MAX_FILTERS],
        "typed": typed,
        "hooks_address": make_absolute(request, "/hooks/"),
        "refusal": refusal,
        "invalid_field": refusal.extra.get("field", "") if refusal else "",
    }
