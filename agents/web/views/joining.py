"""What a link of an invitation or of a new password opens: pages for people who need not be logged in.

The secret in a link goes no further than its first request: the session keeps its hash, and the page that follows has
an address without it.
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
"""Keys of the session: hashes of the links that were opened."""

BACKEND = "django.contrib.auth.backends.ModelBackend"


@never_cache
@require_safe
def join_link(request: HttpRequest, secret: str) -> HttpResponseBase:
    """An invitation's link: opening it accepts nothing."""
    try:
        invitations.find_open_invitation(hash_secret(secret))
    except NotFound as refusal:
        return _gone(request, refusal)
    request.session[JOINING] = hash_secret(secret)
    return redirect("join")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest) -> HttpResponseBase:
    """Says who invites to what; a form accepts it, with a new account or with the one that is logged in."""
    try:
        invitation = invitations.find_open_invitation(request.session.get(JOINING, ""))
        if request.method != "POST":
            return _join_page(request, invitation)
        joined = _accepted(request, invitation)
    except NotFound as refusal:
        return _gone(request, refusal)
    except (Invalid, Conflict) as refusal:
        return _join_page(request, invitation, refusal)
    request.session.pop(JOINING, None)
    switch_organization(joined.user, request.session, joined.organization_id)
    messages.success(request, f"Welcome to {joined.organization.name}. You are {joined.as_noun}.")
    return redirect("home")


@never_cache
@require_safe
def new_password_link(request: HttpRequest, secret: str) -> HttpResponseBase:
    """A link to a new password: opening it changes nothing."""
    try:
        members.find_open_reset(hash_secret(secret))
    except NotFound as refusal:
        return _gone(request, refusal)
    request.session[RESETTING] = hash_secret(secret)
    return redirect("new-password")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new_password(request: HttpRequest) -> HttpResponseBase:
    """A form for the new password; who has set it logs in with it."""
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
        members.use_password_reset(hash_, _password(request))
    except NotFound as refusal:
        return _gone(request, refusal)
    except Invalid as refusal:
        return render(request, "users/new_password.html", context | {"refusal": refusal}, status=refusal.status)
    logout(request)
    name = reset.membership.organization.name
    messages.success(request, f"Your password is set. Log in with it. Your API tokens in {name} are revoked.")
    return redirect("login")


def _accepted(request: HttpRequest, invitation: Invitation) -> Membership:
    if request.user.is_authenticated:
        return invitations.accept(invitation.hash, request.user)
    username = request.POST.get("username", "").strip()
    if is_mixed_host(username):
        raise Invalid("username", "This username mixes several alphabets. Choose another one.")
    joined = invitations.accept_with_new_account(invitation.hash, username, _password(request))
    login(request, joined.user, backend=BACKEND)
    return joined


def _password(request: HttpRequest) -> str:
    password = request.POST.get("password", "")
    if password != request.POST.get("again", ""):
        raise Invalid("again", "The passwords do not match.")
    return password


def _join_page(request: HttpRequest, invitation: Invitation, refusal: Refusal | None = None) -> HttpResponse:
    context = {"invitation": invitation, "refusal": refusal, "username": request.POST.get("username", "")}
    return render(request, "users/join.html", context, status=refusal.status if refusal else 200)


def _gone(request: HttpRequest, refusal: NotFound) -> HttpResponse:
    return render(request, "users/gone.html", {"refusal": refusal}, status=refusal.status)
