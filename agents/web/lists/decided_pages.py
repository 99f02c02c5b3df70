"""Pages of the approvals' history: the decision that was made last stands first, each page behind the one before.

An index has the cards in this order, and the days lead into it. By outcome, person, employee and tool a limited number
of cards is looked through, as in `run_pages`, and the page says how far back it came.
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
from agents.web.lists.run_pages import MOST_LOOKED_THROUGH

PAGE_SIZE = 50
MOMENT = re.compile(r"[0-9]{4}(-[0-9]{2}){2} [0-9]{2}(:[0-9]{2}){2}(\.[0-9]{1,6})?(\+00)?")
"""A time as the databases write it."""
ENDED_AT = Coalesce("decided_at", "requested_at")
"""When it was decided; of a card that ended without a decision, when it was asked. An index is made of this."""
HAS_ENDED = Func("status", template="NOT (%(expressions)s = 'pending')", output_field=BooleanField())
"""Written out, because a prepared statement with a parameter here would not know that the index holds these only."""


@dataclass(frozen=True)
class Place:
    """Where a card stands in the order: its time as the database writes it, and its id."""

    moment: str
    pk: int

    def __str__(self) -> str:
        return f"{self.pk}.{self.moment}"


@dataclass(frozen=True)
class Wanted:
    """Which decided cards; empty means any.

    Attributes:
        since, until: bounds of the time of the decision, both included.
        after: the place of the last card that was looked at.
    """

    statuses: Collection[str] = ()
    decided_by_id: int | None = None
    employee_id: int | None = None
    tool: str = ""
    since: datetime | None = None
    until: datetime | None = None
    after: Place | None = None

    @property
    def needs_looking(self) -> bool:
        """Whether no index leads to them."""
        return bool(self.statuses or self.tool) or self.decided_by_id is not None or self.employee_id is not None


@dataclass(frozen=True)
class DecidedPage:
    """Cards of one page.

    Attributes:
        after: the place behind which the next page begins; None after the last.
        looked_back_to: the time of the last card that was looked at; None if the search went to its end.
    """

    cards: list[Approval]
    after: Place | None
    looked_back_to: datetime | None = None


def page_of_decided(cards: QuerySet[Approval], wanted: Wanted, most: int = MOST_LOOKED_THROUGH) -> DecidedPage:
    """One page of these cards of one organization; with a filter, of the next `most` of them."""
    rows: QuerySet[Any] = cards.filter(HAS_ENDED).annotate(ended_at=ENDED_AT, moment=Cast(ENDED_AT, TextField()))
    rows = _within(rows.order_by("-ended_at", "-pk"), wanted)
    edge = list(rows.values_list("moment", "pk", "ended_at")[most - 1 : most + 1]) if wanted.needs_looking else []
    if len(edge) > 1:
        rows = rows.filter(_compared(">=", Place(*edge[0][:2])))
    shown = list(_fitting(rows, wanted)[: PAGE_SIZE + 1])
    if len(shown) > PAGE_SIZE:
        last = shown[PAGE_SIZE - 1]
        return DecidedPage(shown[:PAGE_SIZE], Place(last.moment, last.pk))
    if len(edge) > 1:
        return DecidedPage(shown, Place(*edge[0][:2]), edge[0][2])
    return DecidedPage(shown, None)


def place_in(text: str) -> Place | None:
    """The place that a page's address names; None if it is none."""
    pk, _, moment = text.partition(".")
    try:
        datetime.fromisoformat(moment)
        return Place(moment, int(pk[:18])) if MOMENT.fullmatch(moment) else None
    except ValueError:
        return None


def _within(rows: QuerySet[Any], wanted: Wanted) -> QuerySet[Any]:
    if wanted.after is not None:
        rows = rows.filter(_compared("<", wanted.after))
    if wanted.since is not None:
        rows = rows.filter(ended_at__gte=wanted.since)
    return rows if wanted.until is None else rows.filter(ended_at__lte=wanted.until)


def _fitting(rows: QuerySet[Any], wanted: Wanted) -> QuerySet[Any]:
    if wanted.statuses:
        rows = rows.filter(status__in=wanted.statuses)
    if wanted.decided_by_id is not None:
        rows = rows.filter(decided_by_id=wanted.decided_by_id)
    if wanted.employee_id is not None:
        rows = rows.filter(run__employee_id=wanted.employee_id)
    return rows.filter(tool_call__tool=wanted.tool) if wanted.tool else rows


def _compared(sign: str, place: Place) -> Q:
    """`(ended_at, id) < (…)`: a comparison of rows, which PostgreSQL takes as one range of the index.

    SQLite sees that only of plain columns, so it is told the range of the times as well.
    """
    moment = Value(place.moment, output_field=TextField())
    own = Func(F("ended_at"), F("id"), template="(%(expressions)s)", output_field=TextField())
    others = Func(
        moment, Value(place.pk, output_field=BigIntegerField()), template="(%(expressions)s)", output_field=TextField()
    )
    is_there = Func(own, others, template="(%(expressions)s)", arg_joiner=f" {sign} ", output_field=BooleanField())
    return Q(is_there, ("ended_at__lte" if sign == "<" else "ended_at__gte", moment))
