"""Pages of the audit, newest first, filtered by actor, action and day; and the entries of an export.

Indexes answer an actor, an action and a day. Actor and action together scan a limited number of the action's entries,
as in `run_pages`, and the page says how far back it searched.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import BigIntegerField, BooleanField, F, Func, Q, QuerySet, TextField, Value

from agents.accounts.models import AuditEntry
from agents.web.lists.audit_lines import ACTORS
from agents.web.lists.run_pages import MAX_SCANNED

PAGE_SIZE = 50
LAST = 2**62
MAX_DELAY = timedelta(hours=1)
"""Entries are numbered in the order of their times, except for those that waited for a lock: never this long."""


@dataclass(frozen=True)
class AuditFilter:
    """A filter of entries; empty fields match any.

    Attributes:
        since, until: bounds of the time, `until` excluded.
        before: the number of the last entry of the page before.
    """

    actor: str = ""
    action: str = ""
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = None

    @property
    def actors(self) -> tuple[str, ...]:
        """The names that the audit may use for this person, employee or process."""
        return (self.actor, *(f"{kind}:{self.actor}" for kind in ACTORS)) if self.actor else ()


@dataclass(frozen=True)
class AuditPage:
    """Entries of one page.

    Attributes:
        next_before: the cursor of the next page; None on the last page.
        scanned_to: the time of the oldest scanned entry; None if the scan reached the end.
    """

    entries: list[AuditEntry]
    next_before: int | None
    scanned_to: datetime | None = None


def load_audit_page(organization_id: int, wanted: AuditFilter, most: int = MAX_SCANNED) -> AuditPage:
    """Load one page of the organization's entries; actor and action together scan the next `most` with the action."""
    rows, numbers = _filter_days(organization_id, wanted)
    edge: list[tuple[int, datetime]] = []
    if wanted.action:
        rows = _filter_exactly(rows, "action", wanted.action, numbers)
        if wanted.actors:
            edge = list(rows.values_list("seq", "at")[most - 1 : most + 1])
            rows = rows.filter(actor__in=wanted.actors, **({"seq__gte": edge[0][0]} if len(edge) > 1 else {}))
        found = list(rows[: PAGE_SIZE + 1])
    elif wanted.actors:
        each = [_filter_exactly(rows, "actor", actor, numbers)[: PAGE_SIZE + 1] for actor in wanted.actors]
        found = sorted((row for some in each for row in some), key=lambda row: -row.seq)
    else:
        found = list(rows.filter(seq__gt=numbers[0], seq__lt=numbers[1]).order_by("-seq")[: PAGE_SIZE + 1])
    if len(found) > PAGE_SIZE:
        return AuditPage(found[:PAGE_SIZE], found[PAGE_SIZE - 1].seq)
    return AuditPage(found, *edge[0]) if len(edge) > 1 else AuditPage(found, None)


def find_entries(organization_id: int, wanted: AuditFilter) -> QuerySet[AuditEntry]:
    """Find all matching entries, oldest first."""
    rows, (behind, before) = _filter_days(organization_id, wanted)
    rows = rows.filter(seq__gt=behind, seq__lt=before)
    if wanted.actors:
        rows = rows.filter(actor__in=wanted.actors)
    if wanted.action:
        rows = rows.filter(action=wanted.action)
    return rows.order_by("seq")


def _filter_days(organization_id: int, wanted: AuditFilter) -> tuple[QuerySet[AuditEntry], tuple[int, int]]:
    """Return the entries of these days, and exclusive bounds of their numbers."""
    rows = every = AuditEntry.objects.filter(organization_id=organization_id)
    behind, before = 0, wanted.before or LAST
    if wanted.since is not None:
        rows = rows.filter(at__gte=wanted.since)
        earlier = every.filter(at__lt=wanted.since - MAX_DELAY).order_by("-at", "-seq")
        behind = earlier.values_list("seq", flat=True).first() or 0
    if wanted.until is not None:
        rows = rows.filter(at__lt=wanted.until)
        later = every.filter(at__gte=wanted.until + MAX_DELAY).order_by("at", "seq")
        before = min(before, later.values_list("seq", flat=True).first() or LAST)
    return rows, (behind, before)


def _filter_exactly(
    rows: QuerySet[AuditEntry], field: str, value: str, numbers: tuple[int, int]
) -> QuerySet[AuditEntry]:
    """Filter by a value and bounds of numbers, newest first, in the order of the field's index.

    As in `run_pages.filter_by_status`, a rare value must not be searched through all entries: between two rows
    (value, number), only this index has them in order.
    """
    own = _build_row(F(field), F("seq"))
    bounds = [
        Func(
            own,
            _build_row(Value(value), Value(number, output_field=BigIntegerField())),
            template="(%(expressions)s)",
            arg_joiner=f" {sign} ",
            output_field=BooleanField(),
        )
        for sign, number in zip((">", "<"), numbers, strict=True)
    ]
    return rows.filter(*(Q(bound) for bound in bounds)).order_by(f"-{field}", "-seq")


def _build_row(*parts: F | Value) -> Func:
    return Func(*parts, template="(%(expressions)s)", output_field=TextField())
