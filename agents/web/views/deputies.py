"""The page on which members add and end their deputies."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone

from agents.accounts.models import Membership, Role
from agents.approval_rules.deputies import (
    MAX_DAYS,
    end_deputy,
    list_choices,
    list_deputies,
    list_represented,
    name_deputy,
)
from agents.platform.refusals import Conflict, Invalid, Refusal
from agents.platform.row_ids import parse_row_id
from agents.web.views.pages import member_view, render_page


@member_view("GET", "POST")
def deputies_page(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the member's deputies; POST adds a deputy."""
    if request.method != "POST":
        return _render(request, member)
    try:
        row = name_deputy(member, _read_deputy(request), *_read_days(request))
    except (Invalid, Conflict) as refusal:
        return _render(request, member, refusal)
    messages.success(request, f"{row.deputy.user.get_username()} is your deputy.")
    return redirect("deputies")


@member_view("POST", page="deputies")
def end(request: HttpRequest, member: Membership, deputy_id: int) -> HttpResponseBase:
    """End the period of one of the member's deputies."""
    row = end_deputy(member, deputy_id)
    messages.success(request, f"{row.deputy.user.get_username()} is no longer your deputy.")
    return redirect("deputies")


def _render(
    request: HttpRequest, member: Membership, refusal: Refusal | None = None
) -> HttpResponse:
    context = {
        "deputies": list_deputies(member),
        "represented": list_represented(member),
        "choices": [(one.pk, one.user.get_username()) for one in list_choices(member)],
        "may_name": member.may(Role.APPROVER),
        "max_days": MAX_DAYS,
        "typed": request.POST,
        "refusal": refusal,
        "invalid_field": refusal.extra.get("field", "") if refusal else "",
        "now": timezone.now(),
        "place": "",
    }
    return render_page(request, member, "users/deputies.html", context)


def _read_deputy(request: HttpRequest) -> int:
    try:
        return parse_row_id(request.POST.get("deputy", ""))
    except ValueError:
        raise Invalid("deputy", "Choose a person.") from None


def _read_days(request: HttpRequest) -> tuple[datetime, datetime]:
    """Return the beginning of the first day, or now, and the end of the last day, in UTC."""
    first, last = _read_day(request, "from"), _read_day(request, "until")
    if last is None:
        raise Invalid("until", "Choose the last day.")
    starts_at = datetime.combine(first, time(), UTC) if first else timezone.now()
    return max(starts_at, timezone.now()), datetime.combine(last, time.max, UTC)


def _read_day(request: HttpRequest, name: str) -> date | None:
    typed = request.POST.get(name, "").strip()
    if not typed:
        return None
    try:
        return date.fromisoformat(typed)
    except ValueError:
        raise Invalid(name, "This is not a date. Enter one such as 2026-11-30.") from None
