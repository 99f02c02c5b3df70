"""Users: the members of the organization and their roles; admins invite, change roles, remove, reset passwords."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from agents.accounts import invitations, members
from agents.accounts.models import Invitation, Membership, PasswordReset, Role
from agents.platform.refusals import Conflict, Invalid
from agents.web.text.people import initials
from agents.web.views import once
from agents.web.views.links import absolute_link
from agents.web.views.pages import member_view, render_page
from tools.contract import fingerprint

PAGE_SIZE = 50
LINK = "made_link"
"""The key of the session under which a new link waits for being shown."""


@member_view("GET")
def all_users(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Members by name; `?q=` finds names, the cursor `?after=` is the last name shown. A new link stands here once."""
    return _shown(request, member, **_link(request, member))


@member_view("POST", page="users")
def invite(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Makes an invitation, whose link the next page shows, once; an admin is invited after a question."""
    days = request.POST.get("days", "7")
    offer = invitations.Offer(
        role=request.POST.get("role", ""),
        note=request.POST.get("note", "").strip(),
        days=int(days) if days in map(str, invitations.DAYS) else 0,
    )
    if offer.role == Role.ADMIN and member.may(Role.ADMIN):
        sentence = members.describe_admin_rights("Whoever opens the link first")
        if not _is_confirmed(request, sentence):
            return _asked(request, member, sentence, "Invite an admin")
    try:
        made, secret = invitations.invite(member, offer)
    except (Invalid, Conflict) as refusal:
        page = _shown(request, member, refusal=refusal, offer=offer)
        page.status_code = refusal.status
        return page
    link = absolute_link(request, "join-link", secret)
    once.keep(request, member, LINK, {"link": link, "invitation": made.pk})
    return redirect("users")


@member_view("POST", page="users")
def revoke_invitation(request: HttpRequest, member: Membership, invitation_id: int) -> HttpResponseBase:
    """Ends an invitation that nobody has accepted."""
    invitations.revoke(member, invitation_id)
    messages.success(request, "The invitation is revoked. Its link no longer works.")
    return redirect("users")


@member_view("POST", page="users")
def change_role(request: HttpRequest, member: Membership, membership_id: int) -> HttpResponseBase:
    """Gives a member another role; who becomes admin, or is none any more, after a question."""
    role = request.POST.get("role", "")
    sentence = members.describe_role_change(member, membership_id, role)
    if sentence and not _is_confirmed(request, sentence):
        return _asked(request, member, sentence, "Make admin" if role == Role.ADMIN else "Remove admin role")
    changed = members.change_role(member, membership_id, role)
    messages.success(request, f"{changed.user.get_username()} is now {changed.as_noun}.")
    return redirect("users")


@member_view("POST", page="users")
def remove_member(request: HttpRequest, member: Membership, membership_id: int) -> HttpResponseBase:
    """Takes a member out of the organization; who leaves goes to the start page."""
    gone = members.remove_member(member, membership_id)
    if gone.user_id == member.user_id:
        return redirect("home")
    messages.success(request, f"{gone.user.get_username()} was removed from {member.organization.name}.")
    return redirect("users")


@member_view("POST", page="users")
def password_link(request: HttpRequest, member: Membership, membership_id: int) -> HttpResponseBase:
    """Makes a link to a new password, which the next page shows, once."""
    made, secret = members.create_password_reset(member, membership_id)
    link = absolute_link(request, "new-password-link", secret)
    once.keep(request, member, LINK, {"link": link, "reset": made.pk})
    return redirect("users")


def _link(request: HttpRequest, member: Membership) -> dict[str, Any]:
    """The link that was made just now, with what it opens."""
    told = once.take(request, member, LINK)
    if not told or not member.may(Role.ADMIN):
        return {}
    resets = PasswordReset.objects.select_related("membership__user")
    invitation = Invitation.objects.filter(pk=told.get("invitation", 0)).first()
    reset = resets.filter(pk=told.get("reset", 0)).first()
    return {"link": told["link"], "invitation": invitation, "reset": reset} if invitation or reset else {}


def _is_confirmed(request: HttpRequest, sentence: str) -> bool:
    """Whether the person has agreed to this very sentence."""
    return request.POST.get("confirmed") == fingerprint(sentence)[:16]


def _asked(request: HttpRequest, member: Membership, sentence: str, act: str) -> HttpResponse:
    """Says what the form that was sent would mean; a button sends it again."""
    again = [(name, request.POST.get(name)) for name in ("role", "note", "days") if name in request.POST]
    context = {"sentence": sentence, "act": act, "again": [*again, ("confirmed", fingerprint(sentence)[:16])]}
    return render_page(request, member, "users/confirm.html", context)


def _shown(request: HttpRequest, member: Membership, **extra: Any) -> HttpResponse:
    is_admin = member.may(Role.ADMIN)
    people, next_query = _one_page(members.list_members(member.organization_id), request)
    for person in people:
        person.initials = initials(person.user.get_username())  # type: ignore[attr-defined]
        person.may_reset = is_admin and members.may_reset_password(member, person)  # type: ignore[attr-defined]
    context = {
        "people": people,
        "next_query": next_query,
        "is_admin": is_admin,
        "roles": Role.choices,
        "role_names": [(role, role.capitalize()) for role in Role.values],
        "days": invitations.DAYS,
        "open_invitations": invitations.list_open_invitations(member.organization_id) if is_admin else (),
        "chosen": request.GET,
        "offer": invitations.Offer(role=Role.OPERATOR),
        "link": "",
        "refusal": None,
    }
    return render_page(request, member, "users/list.html", context | extra)


def _one_page(rows: QuerySet[Membership], request: HttpRequest) -> tuple[list[Membership], str]:
    """The page's members, and the query of the next page or nothing."""
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
