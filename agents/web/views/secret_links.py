"""The pages behind invitation and password links, for people who need not be logged in.

Only the first request contains a link's secret: the session stores the secret's hash, and the next
page's address does not contain the secret.
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
from agents.notices.channels import add_email
from agents.platform.refusals import Conflict, Invalid, NotFound, Refusal
from tools.contract.mixed_hosts import is_mixed_host

INVITATION_KEY = "joining"
RESET_KEY = "resetting"
"""The session keys under which the hashes of opened links are stored."""

BACKEND = "django.contrib.auth.backends.ModelBackend"


@never_cache
@require_safe
def open_invitation_link(request: HttpRequest, secret: str) -> HttpResponseBase:
    """Open an invitation link and redirect to its page; this does not accept the invitation yet."""
    try:
        invitations.find_open_invitation(hash_secret(secret))
    except NotFound as refusal:
        return _render_invalid_link(request, refusal)
    request.session[INVITATION_KEY] = hash_secret(secret)
    return redirect("join")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest) -> HttpResponseBase:
    """Show an invitation; POST accepts it with the current account, or with a new one."""
    try:
        invitation = invitations.find_open_invitation(request.session.get(INVITATION_KEY, ""))
        if request.method != "POST":
            return _render_join_page(request, invitation)
        membership = _accept(request, invitation)
    except NotFound as refusal:
        return _render_invalid_link(request, refusal)
    except (Invalid, Conflict) as refusal:
        return _render_join_page(request, invitation, refusal)
    request.session.pop(INVITATION_KEY, None)
    _add_invited_address(request, membership, invitation.address)
    switch_organization(membership.user, request.session, membership.organization_id)
    messages.success(
        request, f"Welcome to {membership.organization.name}. You are {membership.as_noun}."
    )
    return redirect("home")


@never_cache
@require_safe
def open_password_link(request: HttpRequest, secret: str) -> HttpResponseBase:
    """Open a password link and redirect to its page; this does not change the password yet."""
    try:
        members.find_open_reset(hash_secret(secret))
    except NotFound as refusal:
        return _render_invalid_link(request, refusal)
    request.session[RESET_KEY] = hash_secret(secret)
    return redirect("new-password")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def set_password(request: HttpRequest) -> HttpResponseBase:
    """Show the form for a new password; POST sets it and redirects to the login."""
    hash_ = request.session.get(RESET_KEY, "")
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
        return _render_invalid_link(request, refusal)
    except Invalid as refusal:
        return render(
            request,
            "users/new_password.html",
            context | {"refusal": refusal},
            status=refusal.status,
        )
    logout(request)
    name = reset.membership.organization.name
    messages.success(
        request, f"Your password is set. Log in with it. Your API tokens in {name} are revoked."
    )
    return redirect("login")


def _accept(request: HttpRequest, invitation: Invitation) -> Membership:
    if request.user.is_authenticated:
        return invitations.accept(invitation.hash, request.user)
    username = request.POST.get("username", "").strip()
    if is_mixed_host(username):
        raise Invalid("username", "This username mixes several alphabets. Choose another one.")
    membership = invitations.accept_with_new_account(
        invitation.hash, username, _read_password(request)
    )
    login(request, membership.user, backend=BACKEND)
    return membership


def _add_invited_address(request: HttpRequest, membership: Membership, address: str) -> None:
    """Send a code to the invited address, so that the new member is notified there once they enter
    the code."""
    if not address:
        return
    try:
        add_email(membership, address)
    except (Invalid, Conflict):
        return  # there is no mail server, or the member already has this address
    messages.info(
        request, f"We sent a code to {address}. Enter it under Notices to be notified there."
    )


def _read_password(request: HttpRequest) -> str:
    password = request.POST.get("password", "")
    if password != request.POST.get("again", ""):
        raise Invalid("again", "The passwords do not match.")
    return password


def _render_join_page(
    request: HttpRequest, invitation: Invitation, refusal: Refusal | None = None
) -> HttpResponse:
    context = {
        "invitation": invitation,
        "refusal": refusal,
        "username": request.POST.get("username", ""),
    }
    return render(request, "users/join.html", context, status=refusal.status if refusal else 200)


def _render_invalid_link(request: HttpRequest, refusal: NotFound) -> HttpResponse:
    return render(request, "users/gone.html", {"refusal": refusal}, status=refusal.status)
