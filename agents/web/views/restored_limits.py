"""The page of restored limits: an admin confirms each line before the stop after a restore can be
lifted."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect

from agents.accounts.models import Membership, Role
from agents.platform.refusals import Forbidden
from agents.platform.row_ids import parse_row_id_or_none
from agents.restores import confirming
from agents.web.views.pages import member_view, render_page


@member_view("GET", "POST")
def restored_limits_page(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the lines that are not confirmed yet; POST confirms the ticked lines.

    The form has `line` for each ticked line, and `outcome-ID` with each line's chosen outcome.
    """
    if not member.may(Role.ADMIN):
        raise Forbidden("Only admins can confirm restored limits.")
    if request.method != "POST":
        lines = confirming.list_lines(member.organization_id)
        return render_page(request, member, "stops/restored.html", {"lines": lines})
    ticked = [
        pk
        for text in request.POST.getlist("line")
        if (pk := parse_row_id_or_none(text)) is not None
    ]
    outcomes = {pk: request.POST.get(f"outcome-{pk}", "") for pk in ticked}
    if count := confirming.confirm(member, outcomes):
        messages.success(request, f"{count} {'line' if count == 1 else 'lines'} confirmed.")
    else:
        messages.info(request, "Nothing was confirmed: tick the lines that you have checked.")
    return redirect("restored-limits")
