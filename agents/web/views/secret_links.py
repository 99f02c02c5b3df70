"""The pages behind invitation and password links, for people who need not be logged in.

A link's secret is used in the first request only: the session keeps its hash, and the next page has an address without
it.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth import login, logout
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from agents.accounts import invitations, members
from agents.accounts.membership import hash_secret, switch_organization
from agents.accounts.models import Invitation, Membership
from agents.platform.refusals import Conflict, Invalid, NotFound, Refusal
from agents.web.text.safe_text import is_mixed_host

JOINING = "joining"
RESETTING = "resetting"
"""Session keys that hold the hashes of opened links."""

BACKEND = "django.contrib.auth.backends.ModelBackend"


@never_cache
@require_safe
def join_link(request: HttpRequest, secret: str) -> HttpResponseBase:
    """Open an invitation's link, which accepts nothing yet."""
    try:
        invitations.find_open_invitation(hash_secret(secret))
    except NotFound as refusal:
        return _show_gone(request, refusal)
    request.session[JOINING] = hash_secret(secret)
    return redirect("join")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest) -> HttpResponseBase:
    """Show an invitation; POST accepts it, with a new account or the one that is logged in."""
    try:
        invitation = invitations.find_open_invitation(request.session.get(JOINING, ""))
        if request.method != "POST":
            return _show_join_page(request, invitation)
        joined = _accept(request, invitation)
    except NotFound as refusal:
        return _show_gone(request, refusal)
    except (Invalid, Conflict) as refusal:
        return _show_join_page(request, invitation, refusal)
    request.session.pop(JOINING, None)
    switch_organization(joined.user, request.session, joined.organization_id)
    messages.success(request, f"Welcome to {joined.organization.name}. You are {joined.as_noun}.")
    return redirect("home")


@never_cache
@require_safe
def new_password_link(request: HttpRequest, secret: str) -> HttpResponseBase:
    """Open a password link, which changes nothing yet."""
    try:
        members.find_open_reset(hash_secret(secret))
    except NotFound as refusal:
        return _show_gone(request, refusal)
    request.session[RESETTING] = hash_secret(secret)
    return redirect("new-password")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new_password(request: HttpRequest) -> HttpResponseBase:
    """Show the form for a new password; POST sets it, and the person then logs in."""
    hash_ = request.session.get(RESETTING, "")
    try:
        reset = members.find_open_reset(hash_)
        context: dict[str, Any] = {
            "person": reset.membership.user,
            "organization": reset.membership.organization,
            "refusal": None,
        }
        if request.method != "POST":
            return render(request, "users/new_password.html", context)
        members.use_password_reset(hash_, _read_password(request))
    except NotFound as refusal:
        return _show_gone(request, refusal)
    except Invalid as refusal:
        return render(request, "users/new_password.html", context | {"refusal": refusal}, status=refusal.status)
    logout(request)
    name = reset.membership.organization.name
    messages.success(request, f"Your password is set. Log in with it. Your API tokens in {name} are revoked.")
    return redirect("login")


def _accept(request: HttpRequest, invitation: Invitation) -> Membership:
    if request.user.is_authenticated:
        return invitations.accept(invitation.hash, request.user)
    username = request.POST.get("username", "").strip()
    if is_mixed_host(username):
        raise Invalid("username", "This username mixes several alphabets. Choose another one.")
    joined = invitations.accept_with_new_account(invitation.hash, username, _read_password(request))
    login(request, joined.user, backend=BACKEND)
    return joined


def _read_password(request: HttpRequest) -> str:
    password = request.POST.get("password", "")
    if password != request.POST.get("again", ""):
        raise Invalid("again", "The passwords do not match.")
    return password


def _show_join_page(request: HttpRequest, invitation: Invitation, refusal: Refusal | None = None) -> HttpResponse:
    context = {"invitation": invitation, "refusal": refusal, "username": request.POST.get("username", "")}
    return render(request, "users/join.html", context, status=refusal.status if refusal else 200)


def _show_gone(request: HttpRequest, refusal: NotFound) -> HttpResponse:
    return render(request, "users/gone.html", {"refusal": refusal}, status=refusal.status)
