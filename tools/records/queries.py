"""Questions to an organisation's records; every one is scoped by the organisation."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import Count, Q, QuerySet

from tools.contract import ErrorCode, ToolError

from .fields import RecordFilters, Selection
from .models import Record, RecordChange

MOST_TARGETS = 1_000
NEWEST_CHANGES = 20
MOST_GROUPS = 100
SCORE_BANDS = ((0, 19), (20, 39), (40, 59), (60, 79), (80, 100))


def records_of(organization_id: int) -> QuerySet[Record]:
    """All records of one organisation, archived ones included."""
    return Record.objects.filter(organization_id=organization_id)


def matching(organization_id: int, filters: RecordFilters) -> QuerySet[Record]:
    """The records that are not archived and fulfil all conditions."""
    found = records_of(organization_id).filter(archived_at__isnull=True)
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
        found = found.filter(mentions(word))
    return found


def mentions(word: str) -> Q:
    """The word appears in one of the fields that people search."""
    fields = ("name", "email", "domain", "notes", "category")
    return Q(*((f"{field}__icontains", word) for field in fields), _connector=Q.OR)


def locked(records: QuerySet[Record]) -> QuerySet[Record]:
    """The records in the order of their ids, locked against other writers if a transaction is open."""
    ordered = records.order_by("id")
    return ordered.select_for_update(no_key=True) if connection.in_atomic_block else ordered


def one_record(organization_id: int, record_id: str) -> Record:
    """The record, locked as `locked` does.

    Raises:
        ToolError: NOT_FOUND, also for another organisation's record.
    """
    record = locked(records_of(organization_id).filter(pk=int(record_id))).first()
    if record is None:
        raise missing([record_id])
    return record


def chosen(organization_id: int, selection: Selection) -> list[Record]:
    """The records that the selection names, locked as `locked` does, in the order of their ids.

    Raises:
        ToolError: NOT_FOUND for an id without a record, LIMIT_EXCEEDED beyond 1,000, NOT_FOUND when nothing matches.
    """
    if selection.record_ids is not None:
        return _by_ids(organization_id, selection.record_ids)
    found = matching(organization_id, selection.filters or RecordFilters())
    records = list(locked(found)[: MOST_TARGETS + 1])
    if len(records) > MOST_TARGETS:
        raise ToolError(
            ErrorCode.LIMIT_EXCEEDED,
            f"The filters match {found.count():,} records; one call may touch at most {MOST_TARGETS:,}.",
            parameter="filters",
            recovery_hint="Narrow the filters and work in several calls.",
            attempted=False,
        )
    if not records:
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"No record matches the filters ({selection.filters.in_words() if selection.filters else 'none'}).",
            parameter="filters",
            recovery_hint="Look with data.searchRecords first.",
            attempted=False,
        )
    return records


def _by_ids(organization_id: int, record_ids: list[str]) -> list[Record]:
    wanted = [int(record_id) for record_id in record_ids]
    records = list(locked(records_of(organization_id).filter(pk__in=wanted)))
    found = {record.pk for record in records}
    if absent := [str(pk) for pk in wanted if pk not in found]:
        raise missing(absent)
    return records


def existing_ids(organization_id: int, record_ids: list[str]) -> tuple[int, ...]:
    """The ids as numbers.

    Raises:
        ToolError: NOT_FOUND for an id without a record in this organisation.
    """
    wanted = tuple(int(record_id) for record_id in record_ids)
    found = set(records_of(organization_id).filter(pk__in=wanted).values_list("pk", flat=True))
    if absent := [str(pk) for pk in wanted if pk not in found]:
        raise missing(absent)
    return wanted


def missing(record_ids: list[str]) -> ToolError:
    """NOT_FOUND that names the ids, at most five of them."""
    named = ", ".join(record_ids[:5]) + (f" and {len(record_ids) - 5} more" if len(record_ids) > 5 else "")
    noun = "no record with the id" if len(record_ids) == 1 else "no records with the ids"
    return ToolError(
        ErrorCode.NOT_FOUND,
        f"There is {noun} {named}." if len(record_ids) == 1 else f"There are {noun} {named}.",
        parameter="record_id" if len(record_ids) == 1 else "record_ids",
        recovery_hint="Find the right id with data.searchRecords.",
        attempted=False,
    )


def row_of(record: Record) -> dict[str, Any]:
    """A record in a list: {id, name, region, category, status, score, email, domain, phone, qualification, version,
    updated_at}."""
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
        "updated_at": when(record.updated_at),
    }


def detail_of(record: Record) -> dict[str, Any]:
    """All of a record: its row, the long fields, `lists` by name, and `history`, newest first, at most 20 steps."""
    return {
        **row_of(record),
        "notes": record.notes,
        "attributes": record.attributes,
        "qualification_reason": record.qualification_reason,
        "created_at": when(record.created_at),
        "archived_at": when(record.archived_at),
        "lists": list(record.list_entries.order_by("list__name").values_list("list__name", flat=True)),
        "history": [_step(change) for change in record.changes.all()[:NEWEST_CHANGES]],
    }


def _step(change: RecordChange) -> dict[str, Any]:
    return {
        "at": when(change.at),
        "actor": change.actor,
        "version": change.version,
        "before": change.before,
        "after": change.after,
        "call_id": change.call_id,
        "run_id": change.run_id,
    }


def when(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC."""
    return moment.astimezone(UTC).isoformat() if moment else None


def counts_by(records: QuerySet[Record], field: str) -> dict[str, int]:
    """How many records have each value of the field, the most frequent first, at most 100 values."""
    rows = records.order_by().values_list(field).annotate(records=Count("id")).order_by("-records", field)
    return {value or "(none)": count for value, count in rows[:MOST_GROUPS]}


def counts_by_score(records: QuerySet[Record]) -> dict[str, int]:
    """How many records fall into each band of the score, and how many have none."""
    bands = {f"from_{low}": Count("id", filter=Q(score__gte=low, score__lte=high)) for low, high in SCORE_BANDS}
    counted = records.aggregate(**bands, unscored=Count("id", filter=Q(score__isnull=True)))
    return {f"{low}-{high}": counted[f"from_{low}"] for low, high in SCORE_BANDS} | {"none": counted["unscored"]}


def known_values(organization_id: int, field: str, limit: int = 20) -> list[str]:
    """Values of the field that are in use, for a hint when nothing was found."""
    values: Iterable[str] = (
        records_of(organization_id)
        .filter(archived_at__isnull=True)
        .exclude(**{field: ""})
        .order_by(field)
        .values_list(field, flat=True)
        .distinct()[:limit]
    )
    return list(values)
