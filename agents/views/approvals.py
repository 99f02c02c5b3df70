"""The inbox: every card that waits, those that were decided, and one card by itself."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.middleware.csrf import get_token

from agents.desk.cards import Card, cards_of
from agents.models import Approval, ApprovalStatus, Employee, Membership
from agents.refusals import NotFound
from agents.schemas import row_id

from .pages import framed, page

MOST_CARDS = 30
MOST_DECIDED = 50


@page("GET")
def inbox(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Waiting cards, oldest first, by employee and tool; `?history=1` the decided ones, newest first."""
    rows = _matching(_approvals_of(member), request)
    is_history = bool(request.GET.get("history"))
    if is_history:
        shown = list(rows.exclude(status=ApprovalStatus.PENDING).order_by("-pk")[: MOST_DECIDED + 1])
        more = len(shown) > MOST_DECIDED
        shown = shown[:MOST_DECIDED]
    else:
        shown = list(rows.filter(status=ApprovalStatus.PENDING).order_by("pk")[: MOST_CARDS + 1])
        more = len(shown) > MOST_CARDS
        shown = shown[:MOST_CARDS]
    query = request.GET.copy()
    query["after"] = str(shown[-1].pk) if more else ""
    waiting = _approvals_of(member).filter(status=ApprovalStatus.PENDING)
    context = {
        "cards": [] if is_history else cards_of(shown),
        "decided": shown if is_history else [],
        "is_history": is_history,
        "next_query": query.urlencode() if more else "",
        "employees": Employee.objects.filter(organization_id=member.organization_id),
        "tools": sorted(set(waiting.values_list("tool_call__tool", flat=True))),
        "chosen": request.GET,
        "token": get_token(request),
    }
    return framed(request, member, "approvals/list.html", context)


@page("GET")
def one_card(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """One card on its own page, with every affected thing."""
    card = found_card(member, approval_id, all_targets=True)
    context = {"card": card, "call": card.call, "token": get_token(request), "place": "approvals"}
    return framed(request, member, "approvals/one.html", context)


@page("GET")
def card_fragment(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """A card as it is now, without the page around it; with `?newest=1` the newest card of its call."""
    card = found_card(member, approval_id)
    if request.GET.get("newest") and card.successor is not None:
        card = found_card(member, card.successor.pk)
    return framed(request, member, "approvals/fragment.html", {"card": card, "call": card.call})


def found_card(member: Membership, approval_id: int, *, all_targets: bool = False) -> Card:
    """The card of this id in the member's organisation.

    Raises:
        NotFound: there is none.
    """
    row = _approvals_of(member).filter(pk=approval_id).first()
    if row is None:
        raise NotFound(f"There is no card {approval_id}.")
    return cards_of([row], all_targets=all_targets)[0]


def _approvals_of(member: Membership) -> QuerySet[Approval]:
    rows = Approval.objects.filter(organization_id=member.organization_id)
    return rows.select_related("tool_call", "run__employee", "decided_by").defer(
        "tool_call__result", "tool_call__content"
    )


def _matching(rows: QuerySet[Approval], request: HttpRequest) -> QuerySet[Approval]:
    tool = request.GET.get("tool", "").replace("\0", "")
    if tool:
        rows = rows.filter(tool_call__tool=tool[:200])
    behind = "pk__lt" if request.GET.get("history") else "pk__gt"
    for key, lookup in (("employee", "run__employee_id"), ("after", behind)):
        try:
            rows = rows.filter(**{lookup: row_id(request.GET.get(key, ""))})
        except ValueError:
            continue
    return rows
