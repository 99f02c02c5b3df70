"""Lists of records for people: filtered, sorted by an index, and paged by a cursor."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from django.db import connection
from django.db.models import (
    BooleanField,
    Exists,
    F,
    Func,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    TextField,
    Value,
)
from django.db.models.functions import Cast

from tools.office.records.models import SCORE_OR_LESS, ListEntry, Record, RecordList, Status
from tools.office.records.queries import build_text_condition, get_records
from tools.registries.records import MAX_CHOICES, RecordListQuery, RecordPage, SortOrder

PAGE_SIZE = 50
LONGEST_TEXT = 200
ARCHIVED = "archived"
SHOWN = ("name", "region", "category", "status", "score", "domain", "updated_at", "archived_at")
MOMENT = re.compile(r"[0-9]{4}(-[0-9]{2}){2} [0-9]{2}(:[0-9]{2}){2}(\.[0-9]{1,6})?(\+00)?")

VALUES_IN_USE = """
WITH RECURSIVE used(value) AS (
  SELECT MIN({field}) FROM records_record WHERE organization_id = %s AND {field} > ''
  UNION ALL
  SELECT (SELECT MIN({field}) FROM records_record WHERE organization_id = %s AND {field} > used.value)
  FROM used WHERE used.value IS NOT NULL
)
SELECT value FROM used WHERE value IS NOT NULL LIMIT %s
"""
"""A query that takes one index lookup for each value, whereas DISTINCT would read every row."""


def filter_records(organization_id: int, query: RecordListQuery) -> QuerySet[Record]:
    """Return the organization's records that meet all conditions, unordered."""
    found = get_records(organization_id).filter(archived_at__isnull=query.status != ARCHIVED)
    if query.status in Status.values:
        found = found.filter(status=query.status)
    if query.region:
        found = found.filter(region=query.region)
    if query.category:
        found = found.filter(category=query.category)
    if query.list_id is not None:
        entries = ListEntry.objects.filter(
            list_id=query.list_id, list__organization_id=organization_id
        )
        found = found.filter(Exists(entries.filter(record_id=OuterRef("pk"))))
    for word in query.text[:LONGEST_TEXT].split():
        found = found.filter(build_text_condition(word))
    return found


def load_page(
    records: QuerySet[Record], sort: SortOrder, after: str = "", size: int = PAGE_SIZE
) -> RecordPage:
    """Load at most `size` records after the cursor; an invalid cursor means the first page."""
    key = KEYS[sort.by]
    position = _parse_cursor(after, sort)
    keyed = records.annotate(key=key, key_text=Cast(key, TextField())).only(*SHOWN)
    if position is not None:
        keyed = keyed.filter(_filter_after(sort, position))
    direction = "-" if sort.descending else ""
    rows = list(keyed.order_by(f"{direction}key", f"{direction}id")[: size + 1])
    last = rows[size - 1] if len(rows) > size else None
    return RecordPage(rows[:size], f"{last.pk}.{last.key_text}" if last else "")


def parse_sort(text: str) -> SortOrder:
    """Parse an order such as `name` or `-score`; anything else sorts by name."""
    by = text.removeprefix("-")
    return SortOrder(by, text.startswith("-")) if by in KEYS else SortOrder()


def list_values_in_use(organization_id: int, field: Literal["region", "category"]) -> list[str]:
    """List the field's values in the organization's records, sorted, at most 200."""
    statement = VALUES_IN_USE.format(field=field)
    with connection.cursor() as cursor:
        cursor.execute(statement, [organization_id, organization_id, MAX_CHOICES])
        return [value for (value,) in cursor.fetchall()]


def list_record_lists(organization_id: int) -> list[RecordList]:
    """List the organization's record lists, sorted by name, at most 200."""
    return list(
        RecordList.objects.filter(organization_id=organization_id).order_by("name")[:MAX_CHOICES]
    )


@dataclass(frozen=True)
class RecordCursor:
    """The position of a row in an order: its sort key, as the database compares it, and its id."""

    key: Value
    pk: int


def _parse_cursor(after: str, sort: SortOrder) -> RecordCursor | None:
    pk, _, text = after.partition(".")
    try:
        return RecordCursor(READ_KEYS[sort.by](text), int(pk[:18]))
    except ValueError:
        return None


def _filter_after(sort: SortOrder, position: RecordCursor) -> Q:
    """Build the row comparison `(key, id) > (…)`, or `<` for a descending order, which PostgreSQL
    maps to one range of the index.

    SQLite does so only for plain columns, so the condition also contains the range of the key.
    """
    own = Func(F("key"), F("id"), template="(%(expressions)s)", output_field=TextField())
    others = Func(
        position.key, Value(position.pk), template="(%(expressions)s)", output_field=TextField()
    )
    sign, toward = (" < ", "key__lte") if sort.descending else (" > ", "key__gte")
    is_beyond = Func(
        own, others, template="(%(expressions)s)", arg_joiner=sign, output_field=BooleanField()
    )
    return Q(is_beyond, (toward, position.key))


def _parse_name(text: str) -> Value:
    if "\0" in text:
        raise ValueError("no name contains a null character")
    return Value(text, output_field=TextField())


def _parse_score(text: str) -> Value:
    return Value(int(text[:4]), output_field=IntegerField())


def _parse_time(text: str) -> Value:
    """Parse a time in the database's format: SQLite compares times as text, digit by digit."""
    if not MOMENT.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a time")
    datetime.fromisoformat(text)
    return Value(text, output_field=TextField())


KEYS: Mapping[str, Any] = {
    "name": F("name"),
    "score": Func("score", template=SCORE_OR_LESS, output_field=IntegerField()),
    "changed": F("updated_at"),
}
READ_KEYS: Mapping[str, Callable[[str], Value]] = {
    "name": _parse_name,
    "score": _parse_score,
    "changed": _parse_time,
}
