"""The inbox: every card that waits, those that were decided, and one card by itself."""

from __future__ import annotations

from datetime import date, datetime, time

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.middleware.csrf import get_token
from django.utils import timezone

from agents.desk.cards import Card, brief_cards, cards_of
from agents.engine.toolbox import installed_toolbox
from agents.models import Approval, ApprovalStatus, Employee, Membership
from agents.refusals import NotFound
from agents.schemas import row_id
from tools.contract import Level

from .pages import framed, page

MOST_CARDS = 30
MOST_DECIDED = 50
LEVELS = {level.value: level.value.capitalize() for level in Level}
OUTCOMES = {
    "approved": (ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED),
    "denied": (ApprovalStatus.DENIED,),
    "expired": (ApprovalStatus.EXPIRED,),
    "cancelled": (ApprovalStatus.CANCELLED,),
    "superseded": (ApprovalStatus.SUPERSEDED,),
}
FILTERS_OF_WAITING = ("employee", "tool", "level", "after")
FILTERS_OF_HISTORY = ("outcome", "by", "employee", "tool", "from", "until", "after")


@page("GET")
def inbox(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Waiting cards, oldest first, by employee, tool and level; `?history=1` the decided ones, newest first."""
    return _history(request, member) if request.GET.get("history") else _waiting(request, member)


def _waiting(request: HttpRequest, member: Membership) -> HttpResponseBase:
    chosen = request.GET
    waiting = _approvals_of(member).filter(status=ApprovalStatus.PENDING)
    rows = _by_employee_and_tool(waiting, chosen)
    if chosen.get("level") in LEVELS:
        rows = rows.filter(level=chosen["level"])
    after = _id_or_none(chosen.get("after", ""))
    if after is not None:
        rows = rows.filter(pk__gt=after)
    shown = list(rows.order_by("pk")[: MOST_CARDS + 1])
    context = {
        "cards": cards_of(shown[:MOST_CARDS], with_earlier=False),
        "next_query": _next_query(request, shown, MOST_CARDS),
        "employees": Employee.objects.filter(organization_id=member.organization_id),
        "tools": sorted(waiting.order_by().values_list("tool_call__tool", flat=True).distinct()),
        "levels": LEVELS.items(),
        "is_filtered": any(chosen.get(name) for name in FILTERS_OF_WAITING),
        "chosen": chosen,
        "token": get_token(request),
    }
    return framed(request, member, "approvals/list.html", context)


def _history(request: HttpRequest, member: Membership) -> HttpResponseBase:
    chosen = request.GET
    rows = _by_employee_and_tool(_approvals_of(member).exclude(status=ApprovalStatus.PENDING), chosen)
    rows = _by_outcome(rows, chosen).defer("preview", "params")
    after = _id_or_none(chosen.get("after", ""))
    if after is not None:
        rows = rows.filter(pk__lt=after)
    shown = list(rows.order_by("-pk")[: MOST_DECIDED + 1])
    people = Membership.objects.filter(organization_id=member.organization_id).select_related("user")
    context = {
        "decided": brief_cards(shown[:MOST_DECIDED]),
        "next_query": _next_query(request, shown, MOST_DECIDED),
        "employees": Employee.objects.filter(organization_id=member.organization_id),
        "people": people.order_by("user__username"),
        "tools": sorted({tool.name for tool in installed_toolbox().tools() if tool.has_side_effects}),
        "outcomes": [(name, statuses[0].label) for name, statuses in OUTCOMES.items()],
        "is_filtered": any(chosen.get(name) for name in FILTERS_OF_HISTORY),
        "chosen": chosen,
    }
    return framed(request, member, "approvals/history.html", context)


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


def _by_employee_and_tool(rows: QuerySet[Approval], chosen: QueryDict) -> QuerySet[Approval]:
    tool, employee = chosen.get("tool", "").replace("\0", ""), _id_or_none(chosen.get("employee", ""))
    if tool:
        rows = rows.filter(tool_call__tool=tool[:200])
    return rows if employee is None else rows.filter(run__employee_id=employee)


def _by_outcome(rows: QuerySet[Approval], chosen: QueryDict) -> QuerySet[Approval]:
    """What became of them, who decided, and when they were asked."""
    person = _id_or_none(chosen.get("by", ""))
    first, last = _day_or_none(chosen.get("from", "")), _day_or_none(chosen.get("until", ""))
    statuses = OUTCOMES.get(str(chosen.get("outcome")))
    if statuses is not None:
        rows = rows.filter(status__in=statuses)
    if person is not None:
        rows = rows.filter(decided_by_id=person)
    if first is not None:
        rows = rows.filter(requested_at__gte=_moment(first, time.min))
    return rows if last is None else rows.filter(requested_at__lte=_moment(last, time.max))


def _next_query(request: HttpRequest, found: list[Approval], most: int) -> str:
    """The address of the cards that follow; empty if there are none."""
    if len(found) <= most:
        return ""
    query = request.GET.copy()
    query["after"] = str(found[most - 1].pk)
    return query.urlencode()


def _id_or_none(text: str) -> int | None:
    try:
        return row_id(text)
    except ValueError:
        return None


def _day_or_none(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _moment(day: date, at: time) -> datetime:
    return datetime.combine(day, at, tzinfo=timezone.get_default_timezone())
