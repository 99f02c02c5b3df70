"""What every page shares: who is asking, the frame around it, and refusals in words with the right status."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import NoReverseMatch, Resolver404, resolve, reverse
from django.utils.http import url_has_allowed_host_and_scheme

from agents.accounts.membership import list_memberships, load_session_member
from agents.accounts.models import Membership, Role
from agents.approvals.models import Approval, ApprovalStatus
from agents.platform.liveness import REDIS, Presence, load_presence
from agents.platform.refusals import NotFound, Refusal
from agents.platform.row_ids import LARGEST_ID
from agents.platform.writability import BackgroundCheck

PLACES_TO_RETURN_TO = frozenset(
    {"home", "runs", "run", "approvals", "approval", "employees", "employee", "tools", "users", "audit", "stop"}
    | {"records", "record", "drafts", "draft", "files", "schedules"}
)

PRESENCE = BackgroundCheck(load_presence, Presence(None, None, (REDIS,)), max_age_s=5.0, timeout_s=0.5)
"""Who is there, asked beside the page, which does not wait for a Redis that is silent."""

View = Callable[..., HttpResponseBase]


def page(*methods: str, of: str = "") -> Callable[[View], View]:
    """A view that gets the asking member: others are sent to the login, and a Refusal becomes a page that says it.

    Args:
        methods: GET brings HEAD with it; nothing decides on either.
        of: the name of the page to which an address belongs that only takes forms. Who opens the address is sent
            there.
    """
    allowed = [*methods, "HEAD"] if "GET" in methods else list(methods)

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path() if request.method == "GET" else "/")
            member = load_session_member(request.user, request.session)
            if member is None:
                return _without_organization(request)
            if of and request.method in ("GET", "HEAD"):
                return redirect(_address_of(of, kwargs))
            if request.method not in allowed:
                return _not_taken(request, member, allowed)
            try:
                _check_ids(kwargs)
                return view(request, member, *args, **kwargs)
            except Refusal as refusal:
                return refused(request, member, refusal)

        return answered

    return decorate


def _without_organization(request: HttpRequest) -> HttpResponseBase:
    """Lead superusers to the admin, where they can create an organization; tell others to ask an admin."""
    if request.user.is_superuser and request.method in ("GET", "HEAD"):
        return redirect("admin:index")
    return render(request, "parts/no_organization.html", status=403)


def _address_of(name: str, kwargs: dict[str, Any]) -> str:
    """The page of this name: that of the same run or card where there is one for each."""
    try:
        return reverse(name, kwargs=kwargs)
    except NoReverseMatch:
        return reverse(name)


def _not_taken(request: HttpRequest, member: Membership, allowed: list[str]) -> HttpResponse:
    answer = refused(request, member, Refusal("This address does not take what was sent to it."))
    answer.status_code = 405
    answer["Allow"] = ", ".join(allowed)
    return answer


def framed(request: HttpRequest, member: Membership, template: str, context: dict[str, Any]) -> HttpResponse:
    """The page with its frame: who is asking, what they may do, how many cards wait."""
    frame = {
        "member": member,
        "memberships": list(list_memberships(member.user)),
        "may_operate": member.may(Role.OPERATOR),
        "may_decide": member.may(Role.APPROVER),
        "may_configure": member.may(Role.ADMIN) and request.user.is_staff,
        "pending_cards": pending_cards(member.organization_id),
        "place": template.partition("/")[0],
        "presence": PRESENCE.read(),
    }
    response = render(request, template, frame | context)
    response["Cache-Control"] = "no-store"
    return response


def refused(
    request: HttpRequest, member: Membership, refusal: Refusal, context: dict[str, Any] | None = None
) -> HttpResponse:
    """A page that says why not, with the refusal's status and a way back."""
    shown = {"refusal": refusal, "back": way_back(request, "")} | (context or {})
    page = framed(request, member, "parts/refused.html", shown)
    page.status_code = refusal.status
    return page


def pending_cards(organization_id: int) -> int:
    """How many cards of this organization wait."""
    return Approval.objects.filter(organization_id=organization_id, status=ApprovalStatus.PENDING).count()


def way_back(request: HttpRequest, otherwise: str) -> str:
    """The page of ours that the request came from."""
    origin = request.headers.get("referer", "")
    if url_has_allowed_host_and_scheme(origin, {request.get_host()}, require_https=request.is_secure()):
        parts = urlsplit(origin)
        if _place(parts.path) in PLACES_TO_RETURN_TO:
            return f"{parts.path}?{parts.query}" if parts.query else parts.path
    return otherwise or reverse("home")


def back_to_card(request: HttpRequest, card_id: int, otherwise: str) -> HttpResponse:
    """Back to where the decision was made, at the card; from a card's own page to that of this card."""
    where = way_back(request, otherwise).partition("#")[0]
    if _place(where.partition("?")[0]) == "approval":
        where = reverse("approval", args=(card_id,))
    return redirect(f"{where}#card-{card_id}")


def _place(path: str) -> str | None:
    try:
        return resolve(path).url_name
    except Resolver404:
        return None


def _check_ids(kwargs: dict[str, Any]) -> None:
    """An id larger than any database's is not there; asking the database for it would be an error."""
    for name, value in kwargs.items():
        if isinstance(value, int) and value > LARGEST_ID:
            raise NotFound(f"There is no {name.removesuffix('_id')} {value}.")
