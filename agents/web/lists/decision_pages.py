"""Pages of the decision history, newest decision first.

An index has the cards in this order, and answers filters by day. Filters by outcome, person, employee or tool scan a
limited number of cards, as in `run_pages`, and the page says how far back it searched.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import BigIntegerField, BooleanField, F, Func, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast, Coalesce

from agents.approvals.models import Approval
from agents.web.lists.run_pages import MAX_SCANNED

PAGE_SIZE = 50
MOMENT = re.compile(r"[0-9]{4}(-[0-9]{2}){2} [0-9]{2}(:[0-9]{2}){2}(\.[0-9]{1,6})?(\+00)?")
"""A time as the databases write it."""
ENDED_AT = Coalesce("decided_at", "requested_at")
"""The time of the decision; of a card without one, the time of the request. This expression is indexed."""
HAS_ENDED = Func("status", template="NOT (%(expressions)s = 'pending')", output_field=BooleanField())
"""Literal SQL: with a parameter, a prepared statement could not use the partial index."""


@dataclass(frozen=True)
class DecisionCursor:
    """The position of a card in this order: its time, as the database writes it, and its id."""

    moment: str
    pk: int

    def __str__(self) -> str:
        return f"{self.pk}.{self.moment}"


@dataclass(frozen=True)
class DecisionFilter:
    """A filter of decided cards; empty fields match any.

    Attributes:
        since, until: bounds of the decision's time, both included.
        after: the position of the last card of the page before.
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
        """True if no index answers the filter."""
        return bool(self.statuses or self.tool) or self.decided_by_id is not None or self.employee_id is not None


@dataclass(frozen=True)
class DecidedPage:
    """Cards of one page.

    Attributes:
        after: the position after which the next page begins; None on the last page.
        scanned_to: the time of the last scanned card; None if the scan reached the end.
    """

    cards: list[Approval]
    after: DecisionCursor | None
    scanned_to: datetime | None = None


def load_decision_page(cards: QuerySet[Approval], wanted: DecisionFilter, most: int = MAX_SCANNED) -> DecidedPage:
    """Load one page of these cards of one organization; a filter without an index scans the next `most` of them."""
    rows: QuerySet[Any] = cards.filter(HAS_ENDED).annotate(ended_at=ENDED_AT, moment=Cast(ENDED_AT, TextField()))
    rows = _apply_bounds(rows.order_by("-ended_at", "-pk"), wanted)
    edge = list(rows.values_list("moment", "pk", "ended_at")[most - 1 : most + 1]) if wanted.needs_scan else []
    if len(edge) > 1:
        rows = rows.filter(_compare(">=", DecisionCursor(*edge[0][:2])))
    shown = list(_apply_filter(rows, wanted)[: PAGE_SIZE + 1])
    if len(shown) > PAGE_SIZE:
        last = shown[PAGE_SIZE - 1]
        return DecidedPage(shown[:PAGE_SIZE], DecisionCursor(last.moment, last.pk))
    if len(edge) > 1:
        return DecidedPage(shown, DecisionCursor(*edge[0][:2]), edge[0][2])
    return DecidedPage(shown, None)


def parse_cursor(text: str) -> DecisionCursor | None:
    """Parse the position in a page's address; None if it is invalid."""
    pk, _, moment = text.partition(".")
    try:
        datetime.fromisoformat(moment)
        return DecisionCursor(moment, int(pk[:18])) if MOMENT.fullmatch(moment) else None
    except ValueError:
        return None


def _apply_bounds(rows: QuerySet[Any], wanted: DecisionFilter) -> QuerySet[Any]:
    if wanted.after is not None:
        rows = rows.filter(_compare("<", wanted.after))
    if wanted.since is not None:
        rows = rows.filter(ended_at__gte=wanted.since)
    return rows if wanted.until is None else rows.filter(ended_at__lte=wanted.until)


def _apply_filter(rows: QuerySet[Any], wanted: DecisionFilter) -> QuerySet[Any]:
    if wanted.statuses:
        rows = rows.filter(status__in=wanted.statuses)
    if wanted.decided_by_id is not None:
        rows = rows.filter(decided_by_id=wanted.decided_by_id)
    if wanted.employee_id is not None:
        rows = rows.filter(run__employee_id=wanted.employee_id)
    return rows.filter(tool_call__tool=wanted.tool) if wanted.tool else rows


def _compare(sign: str, place: DecisionCursor) -> Q:
    """Build `(ended_at, id) < (…)`, a comparison of rows that PostgreSQL reads as one range of the index.

    SQLite does so only for plain columns, so the condition also names the range of times.
    """
    moment = Value(place.moment, output_field=TextField())
    own = Func(F("ended_at"), F("id"), template="(%(expressions)s)", output_field=TextField())
    others = Func(
        moment, Value(place.pk, output_field=BigIntegerField()), template="(%(expressions)s)", output_field=TextField()
    )
    is_there = Func(own, others, template="(%(expressions)s)", arg_joiner=f" {sign} ", output_field=BooleanField())
    return Q(is_there, ("ended_at__lte" if sign == "<" else "ended_at__gte", moment))
