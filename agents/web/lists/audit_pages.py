"""Pages of the audit, newest first, filtered by actor, action and day, and the entries of an
export.

Indexes serve a filter by actor, by action or by day. A filter by both actor and action scans a
limited number of the action's entries, as in `run_pages`, and the page says how far back it
searched.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import BigIntegerField, F, Q, QuerySet, Value

from agents.accounts.models import AuditEntry
from agents.web.lists.audit_lines import ACTOR_KINDS
from agents.web.lists.row_values import build_row, compare_rows
from agents.web.lists.run_pages import MAX_SCANNED

PAGE_SIZE = 50
MAX_SEQ = 2**62
MAX_DELAY = timedelta(hours=1)
"""A time longer than any entry waits for a lock. Entries are numbered in the order of their times,
except entries that waited for a lock."""


@dataclass(frozen=True)
class AuditFilter:
    """A filter of entries; an empty field matches any entry.

    Attributes:
        since, until: bounds of the time; `until` is excluded.
        before: the number of the last entry on the previous page.
    """

    actor: str = ""
    action: str = ""
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = None

    @property
    def actors(self) -> tuple[str, ...]:
        """The names under which the audit may list this person, employee or process."""
        return (self.actor, *(f"{kind}:{self.actor}" for kind in ACTOR_KINDS)) if self.actor else ()


@dataclass(frozen=True)
class AuditPage:
    """One page of entries.

    Attributes:
        next_before: the cursor of the next page; None on the last page.
        scanned_to: the time of the oldest scanned entry; None if the scan reached the end.
    """

    entries: list[AuditEntry]
    next_before: int | None
    scanned_to: datetime | None = None


def load_audit_page(
    organization_id: int, criteria: AuditFilter, max_scanned: int = MAX_SCANNED
) -> AuditPage:
    """Load one page of the organization's entries.

    Args:
        max_scanned: the number of entries to scan for a filter by both actor and action.
    """
    rows, seq_bounds = _filter_days(organization_id, criteria)
    scan_end: tuple[int, datetime] | None = None
    if criteria.action:
        rows = _filter_by_index(rows, "action", criteria.action, seq_bounds)
        if criteria.actors:
            scan_end = _find_scan_end(rows, max_scanned)
            rows = rows.filter(
                actor__in=criteria.actors, **({"seq__gte": scan_end[0]} if scan_end else {})
            )
        found = list(rows[: PAGE_SIZE + 1])
    elif criteria.actors:
        by_actor = [
            _filter_by_index(rows, "actor", actor, seq_bounds)[: PAGE_SIZE + 1]
            for actor in criteria.actors
        ]
        found = sorted(
            (entry for entries in by_actor for entry in entries), key=lambda entry: -entry.seq
        )
    else:
        found = list(
            rows.filter(seq__gt=seq_bounds[0], seq__lt=seq_bounds[1]).order_by("-seq")[
                : PAGE_SIZE + 1
            ]
        )
    if len(found) > PAGE_SIZE:
        return AuditPage(found[:PAGE_SIZE], found[PAGE_SIZE - 1].seq)
    return AuditPage(found, *scan_end) if scan_end else AuditPage(found, None)


def find_entries(organization_id: int, criteria: AuditFilter) -> QuerySet[AuditEntry]:
    """Find all matching entries, oldest first."""
    rows, (after, before) = _filter_days(organization_id, criteria)
    rows = rows.filter(seq__gt=after, seq__lt=before)
    if criteria.actors:
        rows = rows.filter(actor__in=criteria.actors)
    if criteria.action:
        rows = rows.filter(action=criteria.action)
    return rows.order_by("seq")


def _find_scan_end(rows: QuerySet[AuditEntry], max_scanned: int) -> tuple[int, datetime] | None:
    """Find the number and time of the last entry to scan; None if there are at most `max_scanned`
    entries."""
    last_two = list(rows.values_list("seq", "at")[max_scanned - 1 : max_scanned + 1])
    return last_two[0] if len(last_two) > 1 else None


def _filter_days(
    organization_id: int, criteria: AuditFilter
) -> tuple[QuerySet[AuditEntry], tuple[int, int]]:
    """Return the entries of these days, and exclusive bounds for their numbers."""
    rows = every = AuditEntry.objects.filter(organization_id=organization_id)
    after, before = 0, criteria.before or MAX_SEQ
    if criteria.since is not None:
        rows = rows.filter(at__gte=criteria.since)
        earlier = every.filter(at__lt=criteria.since - MAX_DELAY).order_by("-at", "-seq")
        after = earlier.values_list("seq", flat=True).first() or 0
    if criteria.until is not None:
        rows = rows.filter(at__lt=criteria.until)
        later = every.filter(at__gte=criteria.until + MAX_DELAY).order_by("at", "seq")
        before = min(before, later.values_list("seq", flat=True).first() or MAX_SEQ)
    return rows, (after, before)


def _filter_by_index(
    rows: QuerySet[AuditEntry], field: str, value: str, seq_bounds: tuple[int, int]
) -> QuerySet[AuditEntry]:
    """Filter by a field's value and exclusive bounds of the numbers, newest first, in the order of
    the field's index.

    As in `run_pages.filter_by_status`, the database must not scan all entries for a rare value. It
    uses this index, because only this index has the rows between two pairs of value and number in
    order.
    """
    pair = build_row(F(field), F("seq"))
    limits = [
        build_row(Value(value), Value(seq, output_field=BigIntegerField())) for seq in seq_bounds
    ]
    after, before = compare_rows(pair, ">", limits[0]), compare_rows(pair, "<", limits[1])
    return rows.filter(Q(after), Q(before)).order_by(f"-{field}", "-seq")
