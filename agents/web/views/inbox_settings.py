"""A member's own settings of the inbox: snoozed cards, claimed cards and saved views."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse

from agents.accounts.models import Membership
from agents.approvals import attention, saved_views, snoozes
from agents.platform.refusals import Refusal
from agents.web.views.approvals import INBOX_PARAMS
from agents.web.views.pages import find_previous_page, member_view


@member_view("POST", page="approvals")
def snooze(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Hide a card from this member for a while. A script gets the time when the card returns, and a
    form is redirected to the inbox."""
    is_script = request.headers.get("accept") == "application/json"
    try:
        found = snoozes.snooze(member, approval_id, request.POST.get("until", ""))
    except Refusal as refusal:
        if is_script:
            return JsonResponse({"detail": refusal.detail}, status=refusal.status)
        raise
    if is_script:
        return JsonResponse({"until": found.until.timestamp()})
    messages.info(
        request, f"Snoozed until {found.until:%-d %b, %H:%M} UTC. Others still see the card."
    )
    return redirect("approvals")


@member_view("POST", page="approvals")
def end_snooze(_request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Show a snoozed card again."""
    snoozes.end_snooze(member, approval_id)
    return redirect(f"{reverse('approvals')}?card={approval_id}")


@member_view("POST", page="approval")
def take(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Claim a card; a script gets an empty response, and a form is redirected to the card."""
    is_script = request.headers.get("accept") == "application/json"
    try:
        attention.take(member, approval_id)
    except Refusal as refusal:
        if is_script:
            return JsonResponse({"detail": refusal.detail}, status=refusal.status)
        raise
    if is_script:
        return HttpResponse(status=204)
    return redirect("approval", approval_id)


@member_view("POST", page="approval")
def release(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """End the member's own claim on a card."""
    attention.release(member, approval_id)
    return redirect(find_previous_page(request, reverse("approval", args=[approval_id])))


@member_view("POST", page="approvals")
def save_view(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Save the current filter of the inbox under a name."""
    saved = saved_views.save_view(
        member, request.POST.get("name", ""), request.POST.get("query", ""), INBOX_PARAMS
    )
    return redirect(f"{reverse('approvals')}?{saved.query}")


@member_view("POST", page="approvals")
def delete_view(request: HttpRequest, member: Membership, view_id: int) -> HttpResponseBase:
    """Delete a saved view."""
    saved_views.delete_view(member, view_id)
    return redirect(find_previous_page(request, reverse("approvals")))
