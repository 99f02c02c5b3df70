"""The shared parts of all page views: membership, numbers in forms, pages of lists, the frame, and
refusals."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import redirect_to_login
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.urls import NoReverseMatch, Resolver404, resolve, reverse
from django.utils.http import content_disposition_header, url_has_allowed_host_and_scheme

from agents.accounts.membership import list_memberships, load_session_member
from agents.accounts.models import Membership, Role
from agents.approvals.own_cards import count_pending_cards
from agents.platform.liveness import REDIS, Presence, load_presence
from agents.platform.refusals import NotFound, Refusal
from agents.platform.row_ids import LARGEST_ID, parse_row_id_or_none
from agents.platform.writability import BackgroundCheck
from agents.web.frame.places import list_places
from agents.web.frame.theme import THEMES
from agents.web.frame.unsent_texts import read_unsent, take_unsent

RETURN_PAGES = frozenset(
    {
        "home",
        "runs",
        "run",
        "approvals",
        "approval",
        "employees",
        "employee",
        "tools",
        "tool",
        "users",
        "audit",
        "stop",
    }
    | {"records", "record", "drafts", "draft", "files", "schedules", "grants"}
)

PRESENCE = BackgroundCheck(
    load_presence, Presence(None, None, (REDIS,)), max_age_s=5.0, timeout_s=0.5
)
"""The running parts of the installation, checked in the background so that no page waits for an
unreachable Redis."""

NAMES_OF_RENDERING = frozenset({"request", "messages", "demo_people", "csrf_input", "csrf_token"})
"""The names that rendering itself passes to every template."""

View = Callable[..., HttpResponseBase]
Row = TypeVar("Row", bound=Model)
PAGE_SIZE = 50


class ListPage(NamedTuple, Generic[Row]):
    """A page of a list.

    Attributes:
        next_before: the id of the last row, after which the next page begins; None on the last
            page.
        is_later: True unless this is the first page.
    """

    rows: list[Row]
    next_before: int | None
    is_later: bool


def read_number(request: HttpRequest, name: str) -> int:
    """Read a number of at most seven digits from a form; anything else is read as 0."""
    text = request.POST.get(name, "")
    return int(text) if re.fullmatch("[0-9]{1,7}", text) else 0


def read_newest(request: HttpRequest, rows: QuerySet[Row], size: int = 0) -> ListPage[Row]:
    """Read a page of these rows, the newest first; `?before=` is the id of the last row shown.

    Args:
        size: the maximum number of rows; 0 for the usual 50.
    """
    before, size = parse_row_id_or_none(request.GET.get("before", "")), size or PAGE_SIZE
    rows = rows if before is None else rows.filter(pk__lt=before)
    found = list(rows.order_by("-pk")[: size + 1])
    return ListPage(
        found[:size], found[size - 1].pk if len(found) > size else None, before is not None
    )


def member_view(*methods: str, page: str = "") -> Callable[[View], View]:
    """Decorate a view that receives the member. People who are not logged in are redirected to the
    login, and a Refusal becomes a page.

    Args:
        methods: the allowed methods; GET also allows HEAD. A GET or HEAD request must not change
            anything.
        page: for an address that only accepts forms, the name of the page to which GET redirects.
    """
    allowed = [*methods, "HEAD"] if "GET" in methods else list(methods)

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def wrapper(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return _respond_to_stranger(request, _find_address(page, kwargs) if page else "")
            member = load_session_member(request.user, request.session)
            if member is None:
                return _respond_without_organization(request)
            if page and request.method in ("GET", "HEAD"):
                return redirect(_find_address(page, kwargs))
            if request.method not in allowed:
                return _reject_method(request, member, allowed)
            try:
                _check_ids(kwargs)
                return view(request, member, *args, **kwargs)
            except Refusal as refusal:
                return render_refusal(request, member, refusal)

        return wrapper

    return decorate


def _respond_to_stranger(request: HttpRequest, address: str) -> HttpResponseBase:
    """Redirect to the login, and from there to the page of the form. The login page keeps the texts
    of a form; a script gets status 401 instead.

    Args:
        address: the page to open after the login, if this address only accepts forms.
    """
    if request.headers.get("accept") == "application/json":
        return JsonResponse({"code": "login_required", "detail": "You are logged out."}, status=401)
    if request.method != "POST":
        return redirect_to_login(request.get_full_path())
    back = address or find_previous_page(request)
    is_browser = settings.CSRF_COOKIE_NAME in request.COOKIES
    unsent = read_unsent(request.path, request.POST) if is_browser else None
    if unsent is None:
        return redirect_to_login(back)
    context = {"form": AuthenticationForm(request), "next": back, "unsent": unsent.to_json()}
    response = render(request, "login/login.html", context, status=403)
    response["Cache-Control"] = "no-store"
    return response


def _respond_without_organization(request: HttpRequest) -> HttpResponseBase:
    """Redirect superusers to the admin, where they can create an organization; show other people a
    page with advice."""
    if request.user.is_superuser and request.method in ("GET", "HEAD"):
        return redirect("admin:index")
    return render(request, "parts/no_organization.html", status=403)


def _find_address(page: str, kwargs: dict[str, Any]) -> str:
    """Return the page's address; a page of one run or card gets the id from the request's
    address."""
    try:
        return reverse(page, kwargs=kwargs)
    except NoReverseMatch:
        return reverse(page)


def _reject_method(request: HttpRequest, member: Membership, allowed: list[str]) -> HttpResponse:
    response = render_refusal(
        request, member, Refusal("This address does not accept this kind of request.")
    )
    response.status_code = 405
    response["Allow"] = ", ".join(allowed)
    return response


def render_page(
    request: HttpRequest, member: Membership, template: str, context: dict[str, Any]
) -> HttpResponse:
    """Render a page in its frame, which shows the member, their permissions and the number of
    waiting cards.

    Args:
        context: the view's own names; the only name of the frame that they may replace is `place`.
            If it has a `refusal`, the response gets the refusal's status.

    Raises:
        ValueError: the view passes a name that the frame uses, so that one value would hide the
            other.
    """
    frame = {
        "member": member,
        "memberships": list(list_memberships(member.user)),
        "may_operate": member.may(Role.OPERATOR),
        "may_decide": member.may(Role.APPROVER),
        "pending_cards": count_pending_cards(member.organization_id),
        "may_configure": member.may(Role.ADMIN) and request.user.is_staff,
        "places": list_places(member),
        "themes": THEMES,
        "presence": PRESENCE.read(),
        "unsent": take_unsent(request),
    }
    if taken := {
        name
        for name in context
        if name in NAMES_OF_RENDERING or name in frame or name.startswith("frame_")
    }:
        raise ValueError(
            f"{template}: {', '.join(sorted(taken))} belong to the frame; pass other names."
        )
    response = render(request, template, frame | {"place": template.partition("/")[0]} | context)
    response["Cache-Control"] = "no-store"
    if request.method == "POST" and (refusal := context.get("refusal")):
        response.status_code = refusal.status
    return response


def render_refusal(request: HttpRequest, member: Membership, refusal: Refusal) -> HttpResponse:
    """Render the page that explains a refusal, with the refusal's status and a link back."""
    response = render_page(
        request,
        member,
        "parts/refused.html",
        {"refusal": refusal, "back": find_previous_page(request)},
    )
    response.status_code = refusal.status
    return response


def as_download(response: HttpResponseBase, name: str) -> HttpResponseBase:
    """Make the browser save the response as a file with this name, and not cache it."""
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"  # noqa: FBT003
    response["Cache-Control"] = "no-store"
    return response


def find_previous_page(request: HttpRequest, default: str = "") -> str:
    """Return the address of the Gadget page that sent the request; otherwise the default, or the
    start page."""
    origin = request.headers.get("referer", "")
    if url_has_allowed_host_and_scheme(
        origin, {request.get_host()}, require_https=request.is_secure()
    ):
        parts = urlsplit(origin)
        if _find_page(parts.path) in RETURN_PAGES:
            return f"{parts.path}?{parts.query}" if parts.query else parts.path
    return default or reverse("home")


def redirect_to_card(
    request: HttpRequest, card_id: int, default: str, *, is_waiting: bool = False
) -> HttpResponse:
    """Redirect to the page where the person decided; if that was a card's own page, redirect to the
    page of this card.

    In the inbox, this card is shown beside the list if it is waiting; otherwise the list's first
    card is shown.
    """
    address = find_previous_page(request, default).partition("#")[0]
    path, _, query = address.partition("?")
    page = _find_page(path)
    if page == "approval":
        address = reverse("approval", args=(card_id,))
    elif page == "approvals":
        kept = [(name, value) for name, value in parse_qsl(query) if name != "card"]
        address = f"{path}?{urlencode([*kept, ('card', card_id)] if is_waiting else kept)}".rstrip(
            "?"
        )
    return redirect(f"{address}#card-{card_id}")


def _find_page(path: str) -> str | None:
    try:
        return resolve(path).url_name
    except Resolver404:
        return None


def _check_ids(kwargs: dict[str, Any]) -> None:
    """Refuse an id beyond the database's integer range, because a query with it would fail."""
    for name, value in kwargs.items():
        if isinstance(value, int) and value > LARGEST_ID:
            raise NotFound(f"There is no {name.removesuffix('_id')} {value}.")
