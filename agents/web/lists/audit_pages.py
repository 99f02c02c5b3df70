"""Pages of the audit: by who, what and day, newest first, each behind the one before; and what an export holds.

Indexes answer for a name, an act and a day. Who and what together look through a limited number of the act's entries,
as in `run_pages`, and the page says how far back it came.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import BigIntegerField, BooleanField, F, Func, Q, QuerySet, TextField, Value

from agents.accounts.models import AuditEntry
from agents.web.lists.audit_lines import ACTORS
from agents.web.lists.run_pages import MOST_LOOKED_THROUGH

PAGE_SIZE = 50
LAST = 2**62
OUT_OF_TURN = timedelta(hours=1)
"""Entries are numbered in the order of their times, but for those that waited for their turn: never as long as this."""


@dataclass(frozen=True)
class Wanted:
    """Which entries; empty means any.

    Attributes:
        since, until: bounds of the time, the second excluded.
        before: the number of the last entry that was looked at.
    """

    actor: str = ""
    action: str = ""
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = None

    @property
    def actors(self) -> tuple[str, ...]:
        """What the audit may call this person, employee or part of Gadget."""
        return (self.actor, *(f"{kind}:{self.actor}" for kind in ACTORS)) if self.actor else ()


@dataclass(frozen=True)
class AuditPage:
    """Entries of one page.

    Attributes:
        next_before: where the next page begins; None after the last.
        looked_back_to: the time of the oldest entry that was looked at; None if the search went to its end.
    """

    entries: list[AuditEntry]
    next_before: int | None
    looked_back_to: datetime | None = None


def page_of_entries(organization_id: int, wanted: Wanted, most: int = MOST_LOOKED_THROUGH) -> AuditPage:
    """One page of the organization's entries; by actor and action together, of the next `most` with the action."""
    rows, numbers = _of_days(organization_id, wanted)
    edge: list[tuple[int, datetime]] = []
    if wanted.action:
        rows = _exactly(rows, "action", wanted.action, numbers)
        if wanted.actors:
            edge = list(rows.values_list("seq", "at")[most - 1 : most + 1])
            rows = rows.filter(actor__in=wanted.actors, **({"seq__gte": edge[0][0]} if len(edge) > 1 else {}))
        found = list(rows[: PAGE_SIZE + 1])
    elif wanted.actors:
        each = [_exactly(rows, "actor", actor, numbers)[: PAGE_SIZE + 1] for actor in wanted.actors]
        found = sorted((row for some in each for row in some), key=lambda row: -row.seq)
    else:
        found = list(rows.filter(seq__gt=numbers[0], seq__lt=numbers[1]).order_by("-seq")[: PAGE_SIZE + 1])
    if len(found) > PAGE_SIZE:
        return AuditPage(found[:PAGE_SIZE], found[PAGE_SIZE - 1].seq)
    return AuditPage(found, *edge[0]) if len(edge) > 1 else AuditPage(found, None)


def entries_wanted(organization_id: int, wanted: Wanted) -> QuerySet[AuditEntry]:
    """All entries that fit, oldest first."""
    rows, (behind, before) = _of_days(organization_id, wanted)
    rows = rows.filter(seq__gt=behind, seq__lt=before)
    if wanted.actors:
        rows = rows.filter(actor__in=wanted.actors)
    if wanted.action:
        rows = rows.filter(action=wanted.action)
    return rows.order_by("seq")


def _of_days(organization_id: int, wanted: Wanted) -> tuple[QuerySet[AuditEntry], tuple[int, int]]:
    """The entries of these days, and the numbers between which they are, both excluded."""
    rows = every = AuditEntry.objects.filter(organization_id=organization_id)
    behind, before = 0, wanted.before or LAST
    if wanted.since is not None:
        rows = rows.filter(at__gte=wanted.since)
        earlier = every.filter(at__lt=wanted.since - OUT_OF_TURN).order_by("-at", "-seq")
        behind = earlier.values_list("seq", flat=True).first() or 0
    if wanted.until is not None:
        rows = rows.filter(at__lt=wanted.until)
        later = every.filter(at__gte=wanted.until + OUT_OF_TURN).order_by("at", "seq")
        before = min(before, later.values_list("seq", flat=True).first() or LAST)
    return rows, (behind, before)


def _exactly(rows: QuerySet[AuditEntry], field: str, value: str, numbers: tuple[int, int]) -> QuerySet[AuditEntry]:
    """Those with this value between these numbers, newest first, in the order of the index by this field.

    As in `run_pages.with_status`, a rare value must not be looked for through all entries: between two rows
    (value, number), only this index has them in order.
    """
    own = _row(F(field), F("seq"))
    bounds = [
        Func(
            own,
            _row(Value(value), Value(number, output_field=BigIntegerField())),
            template="(%(expressions)s)",
            arg_joiner=f" {sign} ",
            output_field=BooleanField(),
        )
        for sign, number in zip((">", "<"), numbers, strict=True)
    ]
    return rows.filter(*(Q(bound) for bound in bounds)).order_by(f"-{field}", "-seq")


def _row(*parts: F | Value) -> Func:
    return Func(*parts, template="(%(expressions)s)", output_field=TextField())
