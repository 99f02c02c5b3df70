"""The inbox of waiting cards, the history of decided cards, and the page of one card."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, time
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.middleware.csrf import get_token
from django.utils import timezone

from agents.accounts.models import Membership
from agents.approvals.call_order import sort_by_call
from agents.approvals.models import Approval, ApprovalStatus
from agents.employees.models import Employee
from agents.employees.toolboxes import load_toolbox
from agents.platform.refusals import NotFound
from agents.platform.row_ids import parse_row_id_or_none
from agents.web.cards.call_reports import load_report
from agents.web.cards.cards import Card, build_brief_cards, load_cards
from agents.web.lists.decision_pages import DecisionFilter, load_decision_page, parse_cursor
from agents.web.lists.run_pages import MAX_SCANNED
from agents.web.views.pages import member_view, render_page
from tools.contract import Level

MAX_CARDS = 30
MAX_CARDS_FOR_CHOICES = 1_000
"""How many waiting cards supply the choices of the tool filter."""
LEVELS = {level.value: level.value.capitalize() for level in Level}
OUTCOMES = {
    "approved": (ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED),
    "denied": (ApprovalStatus.DENIED,),
    "answered": (ApprovalStatus.ANSWERED,),
    "expired": (ApprovalStatus.EXPIRED,),
    "cancelled": (ApprovalStatus.CANCELLED,),
    "superseded": (ApprovalStatus.SUPERSEDED,),
}
WAITING_FILTERS = ("employee", "tool", "level", "after")
HISTORY_FILTERS = ("outcome", "by", "employee", "tool", "from", "until", "after")


@member_view("GET")
def inbox(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the waiting cards in call order, or with `?history=1` the decided cards, newest first."""
    return _show_history(request, member) if request.GET.get("history") else _show_waiting(request, member)


def _show_waiting(request: HttpRequest, member: Membership) -> HttpResponseBase:
    chosen = request.GET
    waiting = _list_approvals(member).filter(status=ApprovalStatus.PENDING)
    rows = _filter_by_employee_and_tool(waiting, chosen)
    if chosen.get("level") in LEVELS:
        rows = rows.filter(level=chosen["level"])
    after = parse_row_id_or_none(chosen.get("after", ""))
    shown = list(sort_by_call(rows, member.organization_id, after)[: MAX_CARDS + 1])
    tools = waiting.order_by("pk").values_list("tool_call__tool", flat=True)
    context = {
        "cards": load_cards(shown[:MAX_CARDS], with_earlier=False),
        "next_query": _build_next_query(request, shown, MAX_CARDS),
        "employees": Employee.objects.filter(organization_id=member.organization_id).values_list("pk", "name"),
        "tools": [(name, name) for name in sorted(set(tools[:MAX_CARDS_FOR_CHOICES]))],
        "levels": LEVELS.items(),
        "is_filtered": any(chosen.get(name) for name in WAITING_FILTERS),
        "chosen": chosen,
        "token": get_token(request),
    }
    return render_page(request, member, "approvals/list.html", context)


def _show_history(request: HttpRequest, member: Membership) -> HttpResponseBase:
    chosen = request.GET
    page = load_decision_page(_list_approvals(member).defer("preview", "params"), _read_filters(chosen))
    query = chosen.copy()
    query["after"] = str(page.after or "")
    people = Membership.objects.filter(organization_id=member.organization_id).order_by("user__username")
    tools = load_toolbox(member.organization_id).tools()
    context = {
        "decided": build_brief_cards(page.cards),
        "scanned_to": page.scanned_to,
        "max_scanned": f"{MAX_SCANNED:,}",
        "next_query": query.urlencode() if page.after else "",
        "employees": Employee.objects.filter(organization_id=member.organization_id).values_list("pk", "name"),
        "people": people.values_list("user_id", "user__username"),
        "tools": sorted({tool.name for tool in tools if tool.has_side_effects or tool.suspends}),
        "outcomes": [(name, statuses[0].label) for name, statuses in OUTCOMES.items()],
        "is_filtered": any(chosen.get(name) for name in HISTORY_FILTERS),
        "chosen": chosen,
    }
    return render_page(request, member, "approvals/history.html", context)


@member_view("GET")
def card_page(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Show one card with all the items that it affects."""
    card = find_card(member, approval_id, all_targets=True)
    return render_page(request, member, "approvals/one.html", build_card_context(request, card))


def build_card_context(request: HttpRequest, card: Card) -> dict[str, Any]:
    """Return the template variables for a card's own page."""
    return {
        "card": card,
        "call": card.call,
        "token": get_token(request),
        "place": "approvals",
        "refusal": None,
        "typed_texts": [],
    }


@member_view("GET")
def card_fragment(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Render the current card without a page around it, or with `?newest=1` the newest card of its call."""
    card = find_card(member, approval_id)
    if request.GET.get("newest") and card.successor is not None:
        card = find_card(member, card.successor.pk)
    return render_page(request, member, "approvals/fragment.html", {"card": card, "call": card.call, "token": ""})


def find_card(member: Membership, approval_id: int, *, all_targets: bool = False) -> Card:
    """Return the card with this id from the member's organization.

    Raises:
        NotFound: the organization has no such card.
    """
    row = _list_approvals(member).filter(pk=approval_id).first()
    if row is None:
        raise NotFound(f"There is no card {approval_id}.")
    card = load_cards([row], all_targets=all_targets)[0]
    return replace(card, report_text=load_report(row.tool_call_id)) if card.report else card


def _list_approvals(member: Membership) -> QuerySet[Approval]:
    rows = Approval.objects.filter(organization_id=member.organization_id)
    people = ("run__employee", "run__organization", "run__created_by", "decided_by")
    return rows.select_related("tool_call", *people).defer("tool_call__result", "tool_call__content")


def _filter_by_employee_and_tool(rows: QuerySet[Approval], chosen: QueryDict) -> QuerySet[Approval]:
    tool, employee = chosen.get("tool", "").replace("\0", ""), parse_row_id_or_none(chosen.get("employee", ""))
    if tool:
        rows = rows.filter(tool_call__tool=tool[:200])
    return rows if employee is None else rows.filter(run__employee_id=employee)


def _read_filters(chosen: QueryDict) -> DecisionFilter:
    first, last = _parse_day(chosen.get("from", "")), _parse_day(chosen.get("until", ""))
    return DecisionFilter(
        statuses=OUTCOMES.get(str(chosen.get("outcome")), ()),
        decided_by_id=parse_row_id_or_none(chosen.get("by", "")),
        employee_id=parse_row_id_or_none(chosen.get("employee", "")),
        tool=chosen.get("tool", "").replace("\0", "")[:200],
        since=_combine(first, time.min) if first else None,
        until=_combine(last, time.max) if last else None,
        after=parse_cursor(chosen.get("after", "")),
    )


def _build_next_query(request: HttpRequest, found: list[Approval], page_size: int) -> str:
    """Return the query string of the next page; empty on the last page."""
    if len(found) <= page_size:
        return ""
    query = request.GET.copy()
    query["after"] = str(found[page_size - 1].pk)
    return query.urlencode()


def _parse_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _combine(day: date, at: time) -> datetime:
    return datetime.combine(day, at, tzinfo=timezone.get_default_timezone())
