"""Queries for an organization's records; no query returns records of another organization."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import Count, Q, QuerySet

from tools.contract import ErrorCode, ToolError
from tools.office.records.fields import RecordFilters, Selection
from tools.office.records.models import Record, RecordChange

MAX_TARGETS = 1_000
CHANGES_SHOWN = 20
MAX_GROUPS = 100
SCORE_BANDS = ((0, 19), (20, 39), (40, 59), (60, 79), (80, 100))


def get_records(organization_id: int) -> QuerySet[Record]:
    """Return all records of one organization, including archived ones."""
    return Record.objects.filter(organization_id=organization_id)


def find_records(organization_id: int, filters: RecordFilters) -> QuerySet[Record]:
    """Return the records that are not archived and meet all conditions."""
    found = get_records(organization_id).filter(archived_at__isnull=True)
    if filters.region:
        found = found.filter(region__iexact=filters.region)
    if filters.category:
        found = found.filter(category__iexact=filters.category)
    if filters.status:
        found = found.filter(status=filters.status)
    if filters.qualification:
        found = found.filter(qualification=filters.qualification)
    if filters.min_score is not None:
        found = found.filter(score__gte=filters.min_score)
    if filters.max_score is not None:
        found = found.filter(score__lte=filters.max_score)
    for word in (filters.text or "").split():
        found = found.filter(build_text_condition(word))
    return found


def build_text_condition(word: str) -> Q:
    """Build the condition that the word appears in one of the searched fields."""
    fields = ("name", "email", "domain", "notes", "category")
    return Q(*((f"{field}__icontains", word) for field in fields), _connector=Q.OR)


def lock_records(records: QuerySet[Record]) -> QuerySet[Record]:
    """Order the records by id, and lock them against other writers if a transaction is open."""
    ordered = records.order_by("id")
    return ordered.select_for_update(no_key=True) if connection.in_atomic_block else ordered


def load_record(organization_id: int, record_id: str) -> Record:
    """Load one record, locked as by `lock_records`.

    Raises:
        ToolError: NOT_FOUND, including for a record of another organization.
    """
    record = lock_records(get_records(organization_id).filter(pk=int(record_id))).first()
    if record is None:
        raise build_missing_error([record_id])
    return record


def load_selection(organization_id: int, selection: Selection) -> list[Record]:
    """Load the selected records, locked as by `lock_records` and ordered by id.

    Raises:
        ToolError: NOT_FOUND for an id without a record or if nothing matches, LIMIT_EXCEEDED beyond
            1,000 records.
    """
    if selection.record_ids is not None:
        return _load_by_ids(organization_id, selection.record_ids)
    found = find_records(organization_id, selection.filters or RecordFilters())
    records = list(lock_records(found)[: MAX_TARGETS + 1])
    if len(records) > MAX_TARGETS:
        raise ToolError(
            ErrorCode.LIMIT_EXCEEDED,
            f"The filters match {found.count():,} records; the limit for one call is {MAX_TARGETS:,}.",
            parameter="filters",
            recovery_hint="Narrow the filters and use several calls.",
            attempted=False,
        )
    if not records:
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"No record matches the filters ({selection.filters.describe() if selection.filters else 'none'}).",
            parameter="filters",
            recovery_hint="Use data.searchRecords first.",
            attempted=False,
        )
    return records


def _load_by_ids(organization_id: int, record_ids: list[str]) -> list[Record]:
    ids = [int(record_id) for record_id in record_ids]
    records = list(lock_records(get_records(organization_id).filter(pk__in=ids)))
    found = {record.pk for record in records}
    if absent := [str(pk) for pk in ids if pk not in found]:
        raise build_missing_error(absent)
    return records


def check_ids(organization_id: int, record_ids: list[str]) -> tuple[int, ...]:
    """Check that the ids exist, and return them as numbers.

    Raises:
        ToolError: NOT_FOUND for an id without a record in this organization.
    """
    ids = tuple(int(record_id) for record_id in record_ids)
    found = set(get_records(organization_id).filter(pk__in=ids).values_list("pk", flat=True))
    if absent := [str(pk) for pk in ids if pk not in found]:
        raise build_missing_error(absent)
    return ids


def build_missing_error(record_ids: list[str]) -> ToolError:
    """Build a NOT_FOUND error that names up to five of the ids."""
    named = ", ".join(record_ids[:5]) + (
        f" and {len(record_ids) - 5} more" if len(record_ids) > 5 else ""
    )
    noun = "no record with the id" if len(record_ids) == 1 else "no records with the ids"
    return ToolError(
        ErrorCode.NOT_FOUND,
        f"There is {noun} {named}." if len(record_ids) == 1 else f"There are {noun} {named}.",
        parameter="record_id" if len(record_ids) == 1 else "record_ids",
        recovery_hint="Find the right id with data.searchRecords.",
        attempted=False,
    )


def build_row(record: Record) -> dict[str, Any]:
    """Build a record's row: {id, name, region, category, status, score, email, domain, phone,
    qualification, version, updated_at}."""
    return {
        "id": str(record.pk),
        "name": record.name,
        "region": record.region,
        "category": record.category,
        "status": record.status,
        "score": record.score,
        "email": record.email,
        "domain": record.domain,
        "phone": record.phone,
        "qualification": record.qualification,
        "version": record.version,
        "updated_at": format_time(record.updated_at),
    }


def build_detail(record: Record) -> dict[str, Any]:
    """Build the full record: its row, the long fields, the names of its lists, and the newest 20
    entries of its history."""
    return {
        **build_row(record),
        "notes": record.notes,
        "attributes": record.attributes,
        "qualification_reason": record.qualification_reason,
        "created_at": format_time(record.created_at),
        "archived_at": format_time(record.archived_at),
        "lists": list(
            record.list_entries.order_by("list__name").values_list("list__name", flat=True)
        ),
        "history": [
            _build_history_entry(change) for change in record.changes.all()[:CHANGES_SHOWN]
        ],
    }


def _build_history_entry(change: RecordChange) -> dict[str, Any]:
    return {
        "at": format_time(change.at),
        "actor": change.actor,
        "version": change.version,
        "before": change.before,
        "after": change.after,
        "call_id": change.call_id,
        "run_id": change.run_id,
    }


def format_time(moment: datetime | None) -> str | None:
    """Format the time as ISO 8601 in UTC; None stays None."""
    return moment.astimezone(UTC).isoformat() if moment else None


def count_by_field(records: QuerySet[Record], field: str) -> dict[str, int]:
    """Count the records with each value of the field; return at most 100 values, the most frequent
    first."""
    rows = (
        records.order_by()
        .values_list(field)
        .annotate(records=Count("id"))
        .order_by("-records", field)
    )
    return {value or "(none)": count for value, count in rows[:MAX_GROUPS]}


def count_by_score(records: QuerySet[Record]) -> dict[str, int]:
    """Count the records in each band of the score, and those without a score."""
    bands = {
        f"from_{low}": Count("id", filter=Q(score__gte=low, score__lte=high))
        for low, high in SCORE_BANDS
    }
    counted = records.aggregate(**bands, unscored=Count("id", filter=Q(score__isnull=True)))
    return {f"{low}-{high}": counted[f"from_{low}"] for low, high in SCORE_BANDS} | {
        "none": counted["unscored"]
    }


def list_known_values(organization_id: int, field: str, limit: int = 20) -> list[str]:
    """List up to `limit` values of the field that are in use, for a hint after an empty search."""
    values: Iterable[str] = (
        get_records(organization_id)
        .filter(archived_at__isnull=True)
        .exclude(**{field: ""})
        .order_by(field)
        .values_list(field, flat=True)
        .distinct()[:limit]
    )
    return list(values)
