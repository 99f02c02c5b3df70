"""The members of the organization; admins invite and remove them, change roles and reset
passwords."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from agents.accounts import invitations, members
from agents.accounts.models import Invitation, Membership, PasswordReset, Role
from agents.platform.refusals import Conflict, Invalid
from agents.web.text.initials import build_initials
from agents.web.views import one_time_reports
from agents.web.views.absolute_links import build_absolute_link
from agents.web.views.pages import member_view, render_page
from tools.contract import fingerprint

PAGE_SIZE = 50
LINK_KEY = "made_link"
"""The session key under which a new link is stored until it is shown."""


@member_view("GET")
def user_list(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show members by name, and a new link once; `?q=` searches, and `?after=` is the last name of
    the previous page."""
    return _render_list(request, member, **_take_new_link(request, member))


@member_view("POST", page="users")
def invite(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Create an invitation; the next page shows its link once. Inviting an admin needs
    confirmation."""
    days = request.POST.get("days", "7")
    offer = invitations.Offer(
        role=request.POST.get("role", ""),
        note=request.POST.get("note", "").strip(),
        address=request.POST.get("address", "").strip(),
        days=int(days) if days in map(str, invitations.DAYS) else 0,
    )
    if offer.role == Role.ADMIN and member.may(Role.ADMIN):
        sentence = members.describe_admin_rights("Whoever opens the link first")
        if not _is_confirmed(request, sentence):
            return _ask_to_confirm(request, member, sentence, "Invite an admin")
    try:
        invitation, secret = invitations.invite(member, offer)
    except (Invalid, Conflict) as refusal:
        return _render_list(request, member, refusal=refusal, offer=offer)
    link = build_absolute_link(request, "join-link", secret)
    one_time_reports.store_report(
        request, member, LINK_KEY, {"link": link, "invitation": invitation.pk}
    )
    return redirect("users")


@member_view("POST", page="users")
def revoke_invitation(
    request: HttpRequest, member: Membership, invitation_id: int
) -> HttpResponseBase:
    """Revoke an open invitation."""
    invitations.revoke(member, invitation_id)
    messages.success(request, "Invitation revoked. Its link no longer works.")
    return redirect("users")


@member_view("POST", page="users")
def change_role(request: HttpRequest, member: Membership, membership_id: int) -> HttpResponseBase:
    """Change a member's role; granting or removing the admin role needs confirmation."""
    role = request.POST.get("role", "")
    sentence = members.describe_role_change(member, membership_id, role)
    if sentence is not None and not _is_confirmed(request, sentence):
        return _ask_to_confirm(
            request, member, sentence, "Make admin" if role == Role.ADMIN else "Remove admin role"
        )
    changed = members.change_role(member, membership_id, role)
    messages.success(
        request, f"{changed.user.get_username()} is now {changed.as_noun}."
    )
    return redirect("users")


@member_view("POST", page="users")
def remove_member(request: HttpRequest, member: Membership, membership_id: int) -> HttpResponseBase:
    """Remove a member from the organization; redirect members who remove themselves to the start
    page."""
    removed = members.remove_member(member, membership_id)
    if removed.user_id == member.user_id:
        return redirect("home")
    messages.success(
        request, f"{removed.user.get_username()} was removed from {member.organization.name}."
    )
    return redirect("users")


@member_view("POST", page="users")
def create_password_link(
    request: HttpRequest, member: Membership, membership_id: int
) -> HttpResponseBase:
    """Create a password link; the next page shows it once."""
    reset, secret = members.create_password_reset(member, membership_id)
    link = build_absolute_link(request, "new-password-link", secret)
    one_time_reports.store_report(request, member, LINK_KEY, {"link": link, "reset": reset.pk})
    return redirect("users")


def _take_new_link(request: HttpRequest, member: Membership) -> dict[str, Any]:
    """Return the new link with its invitation or password reset; empty if there is none."""
    report = one_time_reports.take_report(request, member, LINK_KEY)
    if not report or not member.may(Role.ADMIN):
        return {}
    resets = PasswordReset.objects.select_related("membership__user")
    invitation = Invitation.objects.filter(pk=report.get("invitation", 0)).first()
    reset = resets.filter(pk=report.get("reset", 0)).first()
    return (
        {"link": report["link"], "invitation": invitation, "reset": reset}
        if invitation or reset
        else {}
    )


def _is_confirmed(request: HttpRequest, sentence: str) -> bool:
    """Return True if the person confirmed exactly this sentence."""
    return request.POST.get("confirmed") == fingerprint(sentence)[:16]


def _ask_to_confirm(
    request: HttpRequest, member: Membership, sentence: str, action: str
) -> HttpResponse:
    """Show the consequence of the submitted form, with a button that confirms and submits it
    again."""
    fields = [
        (name, request.POST.get(name))
        for name in ("role", "note", "address", "days")
        if name in request.POST
    ]
    context = {
        "sentence": sentence,
        "action": action,
        "hidden_fields": [*fields, ("confirmed", fingerprint(sentence)[:16])],
    }
    return render_page(request, member, "users/confirm.html", context)


def _render_list(request: HttpRequest, member: Membership, **extra: Any) -> HttpResponse:
    is_admin = member.may(Role.ADMIN)
    people, next_query = _load_page(members.list_members(member.organization_id), request)
    for person in people:
        person.initials = build_initials(person.user.get_username())  # type: ignore[attr-defined]
        person.may_reset = is_admin and members.may_reset_password(member, person)  # type: ignore[attr-defined]
    context = {
        "people": people,
        "next_query": next_query,
        "is_admin": is_admin,
        "roles": Role.choices,
        "role_names": [(role, role.capitalize()) for role in Role.values],
        "days": invitations.DAYS,
        "open_invitations": invitations.list_open_invitations(member.organization_id)
        if is_admin
        else (),
        "chosen": request.GET,
        "offer": invitations.Offer(role=Role.OPERATOR),
        "link": "",
        "refusal": None,
    }
    return render_page(request, member, "users/list.html", context | extra)


def _load_page(rows: QuerySet[Membership], request: HttpRequest) -> tuple[list[Membership], str]:
    """Load the page's members, and return the query string of the next page; empty on the last
    page."""
    text, after = (request.GET.get(name, "").replace("\0", "")[:150] for name in ("q", "after"))
    if text.strip():
        rows = rows.filter(user__username__icontains=text.strip())
    if after:
        rows = rows.filter(user__username__gt=after)
    shown = list(rows[: PAGE_SIZE + 1])
    if len(shown) <= PAGE_SIZE:
        return shown, ""
    query = request.GET.copy()
    query["after"] = shown[PAGE_SIZE - 1].user.get_username()
    return shown[:PAGE_SIZE], query.urlencode()
