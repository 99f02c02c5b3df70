"""The inbox of waiting cards, the history of decided cards, and the page of one card."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, time
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.middleware.csrf import get_token
from django.utils import timezone
from django.views.decorators.gzip import gzip_page

from agents.accounts.models import Membership
from agents.approvals.break_glass import MIN_REASON, explain_refusal
from agents.approvals.decisions import DENY_REASONS
from agents.approvals.saved_views import list_views
from agents.approvals.undoable import list_undoable
from agents.approvals.warnings.card_marks import CardFacts
from agents.approvals.withheld_bulks import WithheldState, read_state
from agents.employees.models import Employee
from agents.employees.toolboxes import load_toolbox
from agents.platform.refusals import NotFound
from agents.platform.row_ids import get_row, parse_row_id_or_none
from agents.runs.models import APPROVED_STATES, Approval, ApprovalStatus
from agents.web.cards.call_reports import load_report
from agents.web.cards.cards import Card, load_cards
from agents.web.cards.decided_cards import build_decided_cards
from agents.web.lists.days import parse_day
from agents.web.lists.decision_pages import DecisionFilter, load_decision_page, parse_cursor
from agents.web.lists.inbox_rows import (
    MAX_QUERY_LENGTH,
    MAX_ROWS,
    SORTS,
    Inbox,
    InboxFilter,
    load_inbox,
)
from agents.web.lists.run_pages import MAX_SCANNED
from agents.web.lists.today import describe_today
from agents.web.views.pages import member_view, render_page

OUTCOMES = {
    "approved": APPROVED_STATES,
    "denied": (ApprovalStatus.DENIED,),
    "answered": (ApprovalStatus.ANSWERED,),
    "expired": (ApprovalStatus.EXPIRED,),
    "cancelled": (ApprovalStatus.CANCELLED,),
    "superseded": (ApprovalStatus.SUPERSEDED,),
}
INBOX_PARAMS = ("employee", "tool", "level", "q", "sort", "snoozed")
HISTORY_FILTERS = ("outcome", "by", "employee", "tool", "from", "until", "after")


@gzip_page
@member_view("GET")
def inbox(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show the waiting cards as a list beside the selected card, or with `?history=1` the decided
    cards."""
    return (
        _show_history(request, member)
        if request.GET.get("history")
        else _show_waiting(request, member)
    )


def _show_waiting(request: HttpRequest, member: Membership) -> HttpResponseBase:
    chosen = request.GET
    criteria = _read_inbox_filter(chosen)
    found = load_inbox(member, criteria)
    card = _find_selected(member, found, parse_row_id_or_none(chosen.get("card", "")))
    context = {
        "inbox": found,
        "max_rows": f"{MAX_ROWS:,}",
        "sorts": [(name, label) for name, (label, _) in SORTS.items()],
        "card": card,
        "selected": card.approval.pk if card else None,
        "today": "" if card else describe_today(member),
        "undoable": list_undoable(member),
        "undone": _read_undone(member, chosen.get("undone", "")),
        "deny_reasons": DENY_REASONS,
        "query": _build_query(chosen),
        "views": list_views(member),
        "filter_query": partial(_build_filter_query, chosen),
        "is_filtered": criteria.is_active,
        "chosen": chosen,
        "token": get_token(request),
        "now": timezone.now(),
    }
    return render_page(request, member, "approvals/list.html", context)


def _read_undone(member: Membership, bulk_id: str) -> WithheldState | None:
    """Read the progress of undoing the bulk approval that the address names; None if there is no
    such bulk approval."""
    try:
        return read_state(member, UUID(bulk_id)) if bulk_id else None
    except (ValueError, NotFound):
        return None


def _read_inbox_filter(chosen: QueryDict) -> InboxFilter:
    sort = chosen.get("sort", "")
    return InboxFilter(
        employee_id=parse_row_id_or_none(chosen.get("employee", "")),
        tool=chosen.get("tool", "")[:200],
        level=chosen.get("level", "")[:20],
        query=chosen.get("q", "").replace("\0", "").strip()[:MAX_QUERY_LENGTH],
        sort=sort if sort in SORTS else "",
        is_snoozed=chosen.get("snoozed") == "1",
    )


def _find_selected(member: Membership, found: Inbox, wanted: int | None) -> Card | None:
    """Find the card to show beside the list: the wanted card, even if it is decided, or else the
    first card of the list; None if there is no such card."""
    rows = found.rows
    row_id = wanted if wanted is not None else (rows[0].pk if rows else None)
    try:
        return None if row_id is None else find_card(member, row_id, listed=found.facts)
    except NotFound:
        return find_card(member, rows[0].pk, listed=found.facts) if rows else None


def _build_query(chosen: QueryDict, **changes: str) -> str:
    """Build a query string with the filters that are set, after these changes; it ends in `&`
    unless it is empty."""
    values = {name: chosen.get(name, "") for name in INBOX_PARAMS} | changes
    query = urlencode({name: value for name, value in values.items() if value})
    return f"{query}&" if query else ""


def _build_filter_query(chosen: QueryDict, name: str, value: object) -> str:
    """Build the query string with this filter changed; if the name is empty, keep only the
    order."""
    if not name:
        return _build_query(QueryDict(), sort=chosen.get("sort", ""))
    return _build_query(chosen, **{name: str(value)})


def _show_history(request: HttpRequest, member: Membership) -> HttpResponseBase:
    chosen = request.GET
    page = load_decision_page(
        _list_approvals(member).defer("preview", "params"), _read_filters(chosen)
    )
    query = chosen.copy()
    query["after"] = str(page.after or "")
    people = Membership.objects.filter(organization_id=member.organization_id).order_by(
        "user__username"
    )
    tools = load_toolbox(member.organization_id).tools()
    context = {
        "decided": build_decided_cards(page.cards),
        "scanned_to": page.scanned_to,
        "max_scanned": f"{MAX_SCANNED:,}",
        "next_query": query.urlencode() if page.after else "",
        "employees": Employee.objects.filter(organization_id=member.organization_id).values_list(
            "pk", "name"
        ),
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
    return render_page(
        request, member, "approvals/one.html", build_card_context(request, member, card)
    )


def build_card_context(request: HttpRequest, member: Membership, card: Card) -> dict[str, Any]:
    """Return the template variables for a card's own page."""
    is_refused = card.is_open and explain_refusal(
        member, member.organization, card.approval, card.standing
    )
    return {
        "card": card,
        "call": card.call,
        "may_break_glass": card.is_open and not is_refused,
        "shortest_reason": MIN_REASON,
        "decision_id": uuid4().hex,
        "token": get_token(request),
        "place": "approvals",
        "refusal": None,
        "typed_texts": [],
    }


@gzip_page
@member_view("GET")
def card_fragment(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Render the current card without a page around it, or with `?newest=1` the newest card of its
    call."""
    card = find_card(member, approval_id)
    if request.GET.get("newest") and card.successor is not None:
        card = find_card(member, card.successor.pk)
    return render_page(
        request, member, "approvals/fragment.html", {"card": card, "call": card.call, "token": ""}
    )


def find_card(
    member: Membership,
    approval_id: int,
    *,
    all_targets: bool = False,
    listed: CardFacts | None = None,
) -> Card:
    """Return the card with this id from the member's organization.

    Args:
        listed: the facts already loaded for a list that may contain the card.

    Raises:
        NotFound: the organization has no such card.
    """
    row = get_row(_list_approvals(member), approval_id, "card")
    card = load_cards([row], all_targets=all_targets, listed=listed)[0]
    return replace(card, report_text=load_report(row.tool_call_id)) if card.report else card


def _list_approvals(member: Membership) -> QuerySet[Approval]:
    rows = Approval.objects.filter(organization_id=member.organization_id)
    people = ("run__employee", "run__organization", "run__created_by", "decided_by")
    return rows.select_related("tool_call", *people).defer(
        "tool_call__result", "tool_call__content"
    )


def _read_filters(chosen: QueryDict) -> DecisionFilter:
    first, last = parse_day(chosen.get("from", "")), parse_day(chosen.get("until", ""))
    return DecisionFilter(
        statuses=OUTCOMES.get(str(chosen.get("outcome")), ()),
        decided_by_id=parse_row_id_or_none(chosen.get("by", "")),
        employee_id=parse_row_id_or_none(chosen.get("employee", "")),
        tool=chosen.get("tool", "").replace("\0", "")[:200],
        since=_combine(first, time.min) if first else None,
        until=_combine(last, time.max) if last else None,
        after=parse_cursor(chosen.get("after", "")),
    )


def _combine(day: date, at: time) -> datetime:
    return datetime.combine(day, at, tzinfo=timezone.get_default_timezone())
