"""The page on which members choose their language, time zone and units. Tools can read these
preferences."""

from __future__ import annotations

from zoneinfo import available_timezones

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from agents.accounts.models import Membership, Units
from agents.accounts.preferences import load_own_preferences, save_preferences
from agents.notices.choices import load_choices, save_time_zone
from agents.platform.refusals import Invalid
from agents.web.views.pages import member_view, render_page


@member_view("GET", "POST")
def preferences_page(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the member's preferences; POST saves them. The time zone also applies to the member's
    notices."""
    if request.method != "POST":
        return _render(request, member)
    typed = {
        name: request.POST.get(name, "").strip() for name in ("language", "units", "time_zone")
    }
    try:
        with transaction.atomic():
            save_preferences(member, typed["language"], typed["units"])
            save_time_zone(member, typed["time_zone"])
    except Invalid as refusal:
        return _render(request, member, refusal)
    messages.success(request, "Your preferences were saved.")
    return redirect("preferences")


def _render(
    request: HttpRequest, member: Membership, refusal: Invalid | None = None
) -> HttpResponse:
    context = {
        "preferences": load_own_preferences(member),
        "time_zone": load_choices(member).time_zone,
        "units": Units.choices,
        "zones": sorted(available_timezones()),
        "typed": request.POST,
        "refusal": refusal,
        "invalid_field": refusal.extra.get("field", "") if refusal else "",
        "place": "",
    }
    return render_page(request, member, "users/preferences.html", context)
