"""Pages of the decision history, newest decision first.

An index has the cards in this order and serves filters by day. A filter by outcome, person,
employee or tool scans a limited number of cards, as in `run_pages`, and the page says how far back
it searched.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import (
    BigIntegerField,
    BooleanField,
    F,
    Func,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
)
from django.db.models.functions import Cast, Coalesce

from agents.runs.models import Approval, ToolCall
from agents.web.lists.row_values import build_row, compare_rows
from agents.web.lists.run_pages import MAX_SCANNED

PAGE_SIZE = 50
MOMENT = re.compile(r"[0-9]{4}(-[0-9]{2}){2} [0-9]{2}(:[0-9]{2}){2}(\.[0-9]{1,6})?(\+00)?")
"""A time as the databases format it."""
ENDED_AT = Coalesce("decided_at", "requested_at")
"""The time of the decision or, without a decision, of the request. This expression is indexed."""
HAS_ENDED = Func(
    "status", template="NOT (%(expressions)s = 'pending')", output_field=BooleanField()
)
"""The condition that a card no longer waits, as literal SQL: with a parameter, a prepared statement
could not use the partial index."""


@dataclass(frozen=True)
class DecisionCursor:
    """The position of a card in the history: its time, as the database formats it, and its id."""

    moment: str
    pk: int

    def __str__(self) -> str:
        return f"{self.pk}.{self.moment}"


@dataclass(frozen=True)
class DecisionFilter:
    """A filter of decided cards; an empty field matches any card.

    Attributes:
        since, until: bounds of the decision's time, both included.
        after: the position of the last card on the previous page.
    """

    statuses: Collection[str] = ()
    decided_by_id: int | None = None
    employee_id: int | None = None
    tool: str = ""
    since: datetime | None = None
    until: datetime | None = None
    after: DecisionCursor | None = None

    @property
    def needs_scan(self) -> bool:
        """True if no index serves the filter."""
        return (
            bool(self.statuses or self.tool)
            or self.decided_by_id is not None
            or self.employee_id is not None
        )


@dataclass(frozen=True)
class DecisionPage:
    """One page of decided cards.

    Attributes:
        after: the cursor of the next page; None on the last page.
        scanned_to: the time of the last scanned card; None if the scan reached the end.
    """

    cards: list[Approval]
    after: DecisionCursor | None
    scanned_to: datetime | None = None


def load_decision_page(
    cards: QuerySet[Approval], criteria: DecisionFilter, max_scanned: int = MAX_SCANNED
) -> DecisionPage:
    """Load one page of these cards, all of one organization.

    Args:
        max_scanned: the number of cards to scan for a filter without an index.
    """
    rows: QuerySet[Any] = cards.filter(HAS_ENDED).annotate(
        ended_at=ENDED_AT, moment=Cast(ENDED_AT, TextField())
    )
    rows = _apply_bounds(rows.order_by("-ended_at", "-pk"), criteria)
    scan_end = _find_scan_end(rows, max_scanned) if criteria.needs_scan else None
    if scan_end is not None:
        rows = rows.filter(_compare_position(">=", scan_end[0]))
    found = list(_apply_filter(rows, criteria)[: PAGE_SIZE + 1])
    if len(found) > PAGE_SIZE:
        last = found[PAGE_SIZE - 1]
        return DecisionPage(found[:PAGE_SIZE], DecisionCursor(last.moment, last.pk))
    return DecisionPage(found, *scan_end) if scan_end is not None else DecisionPage(found, None)


def parse_cursor(text: str) -> DecisionCursor | None:
    """Parse the cursor in a page's address; None if it is invalid."""
    pk, _, moment = text.partition(".")
    try:
        datetime.fromisoformat(moment)
        return DecisionCursor(moment, int(pk[:18])) if MOMENT.fullmatch(moment) else None
    except ValueError:
        return None


def _find_scan_end(rows: QuerySet[Any], max_scanned: int) -> tuple[DecisionCursor, datetime] | None:
    """Find the position and time of the last card to scan; None if there are at most `max_scanned`
    cards."""
    last_two = list(rows.values_list("moment", "pk", "ended_at")[max_scanned - 1 : max_scanned + 1])
    if len(last_two) < 2:
        return None
    moment, pk, ended_at = last_two[0]
    return DecisionCursor(moment, pk), ended_at


def _apply_bounds(rows: QuerySet[Any], criteria: DecisionFilter) -> QuerySet[Any]:
    if criteria.after is not None:
        rows = rows.filter(_compare_position("<", criteria.after))
    if criteria.since is not None:
        rows = rows.filter(ended_at__gte=criteria.since)
    return rows if criteria.until is None else rows.filter(ended_at__lte=criteria.until)


def _apply_filter(rows: QuerySet[Any], criteria: DecisionFilter) -> QuerySet[Any]:
    if criteria.statuses:
        rows = rows.filter(status__in=criteria.statuses)
    if criteria.decided_by_id is not None:
        rows = rows.filter(decided_by_id=criteria.decided_by_id)
    if criteria.employee_id is not None:
        rows = rows.filter(run__employee_id=criteria.employee_id)
    return filter_by_tool(rows, criteria.tool) if criteria.tool else rows


def filter_by_tool(rows: QuerySet[Any], tool: str) -> QuerySet[Any]:
    """Filter cards by the tool of their call, which is read separately for each card.

    With a join, the database would look through all calls for a tool that it expects to be rare.
    """
    of_call = ToolCall.objects.filter(pk=OuterRef("tool_call_id")).values("tool")
    filtered: QuerySet[Any] = rows.alias(tool_of_call=Subquery(of_call)).filter(tool_of_call=tool)
    return filtered


def _compare_position(sign: str, cursor: DecisionCursor) -> Q:
    """Build `(ended_at, id) < (…)`, a row comparison that PostgreSQL reads as one range of the
    index.

    SQLite uses its index only for comparisons of plain columns, so the condition also limits
    `ended_at` alone.
    """
    moment = Value(cursor.moment, output_field=TextField())
    position = build_row(moment, Value(cursor.pk, output_field=BigIntegerField()))
    is_in_range = compare_rows(build_row(F("ended_at"), F("id")), sign, position)
    return Q(is_in_range, ("ended_at__lte" if sign == "<" else "ended_at__gte", moment))
