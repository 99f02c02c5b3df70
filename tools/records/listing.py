"""Lists of records for people: filtered, in an order that an index holds, paged by the place of the last row shown."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from django.db import connection
from django.db.models import BooleanField, Exists, F, Func, IntegerField, OuterRef, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast

from .models import SCORE_OR_LESS, ListEntry, Record, RecordList, Status
from .queries import mentions, records_of

PAGE_SIZE = 50
MOST_CHOICES = 200
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
"""One step in an index for each value, where DISTINCT would read every row."""


@dataclass(frozen=True)
class Wanted:
    """What a list shows; empty conditions hold for all. The status `archived` means what lists leave out otherwise."""

    text: str = ""
    region: str = ""
    category: str = ""
    status: str = ""
    list_id: int | None = None


@dataclass(frozen=True)
class Sort:
    """In which order; the id decides between equals."""

    by: str = "name"
    descending: bool = False

    @property
    def reversed(self) -> "Sort":
        return replace(self, descending=not self.descending)

    def __str__(self) -> str:
        return f"-{self.by}" if self.descending else self.by


@dataclass(frozen=True)
class Page:
    """Some records, and the place after which the next page begins; empty on the last one."""

    records: Sequence[Record]
    after: str


def wanted_records(organization_id: int, wanted: Wanted) -> QuerySet[Record]:
    """The organisation's records that fulfil all conditions, in no order."""
    found = records_of(organization_id).filter(archived_at__isnull=wanted.status != ARCHIVED)
    if wanted.status in Status.values:
        found = found.filter(status=wanted.status)
    if wanted.region:
        found = found.filter(region=wanted.region)
    if wanted.category:
        found = found.filter(category=wanted.category)
    if wanted.list_id is not None:
        entries = ListEntry.objects.filter(list_id=wanted.list_id, list__organization_id=organization_id)
        found = found.filter(Exists(entries.filter(record_id=OuterRef("pk"))))
    for word in wanted.text[:LONGEST_TEXT].split():
        found = found.filter(mentions(word))
    return found


def page_of(records: QuerySet[Record], sort: Sort, after: str = "", size: int = PAGE_SIZE) -> Page:
    """The records behind the place, at most `size`; an `after` that is no place of this order means the beginning."""
    key = KEYS[sort.by]
    place = _place_in(after, sort)
    keyed = records.annotate(key=key, key_text=Cast(key, TextField())).only(*SHOWN)
    if place is not None:
        keyed = keyed.filter(_beyond(sort, place))
    direction = "-" if sort.descending else ""
    rows = list(keyed.order_by(f"{direction}key", f"{direction}id")[: size + 1])
    last = rows[size - 1] if len(rows) > size else None
    return Page(rows[:size], f"{last.pk}.{last.key_text}" if last else "")


def sort_of(text: str) -> Sort:
    """`name`, `-score`…; anything else is by name."""
    by = text.removeprefix("-")
    return Sort(by, text.startswith("-")) if by in KEYS else Sort()


def values_in_use(organization_id: int, field: Literal["region", "category"]) -> list[str]:
    """The values that records have, sorted, at most 200."""
    statement = VALUES_IN_USE.format(field=field)
    with connection.cursor() as cursor:
        cursor.execute(statement, [organization_id, organization_id, MOST_CHOICES])
        return [value for (value,) in cursor.fetchall()]


def lists_in_use(organization_id: int) -> list[RecordList]:
    """The organisation's lists by name, at most 200."""
    return list(RecordList.objects.filter(organization_id=organization_id).order_by("name")[:MOST_CHOICES])


@dataclass(frozen=True)
class Place:
    """Where a row stands in an order: its key, as the database can compare it, and its id."""

    key: Value
    pk: int


def _place_in(after: str, sort: Sort) -> Place | None:
    pk, _, text = after.partition(".")
    try:
        return Place(READ_KEYS[sort.by](text), int(pk[:18]))
    except ValueError:
        return None


def _beyond(sort: Sort, place: Place) -> Q:
    """`(key, id) > (…)`: a comparison of rows, which PostgreSQL takes as one range of the index.

    SQLite sees that only of plain columns, so it is told the key's own range as well.
    """
    own = Func(F("key"), F("id"), template="(%(expressions)s)", output_field=TextField())
    others = Func(place.key, Value(place.pk), template="(%(expressions)s)", output_field=TextField())
    sign, towards = (" < ", "key__lte") if sort.descending else (" > ", "key__gte")
    is_beyond = Func(own, others, template="(%(expressions)s)", arg_joiner=sign, output_field=BooleanField())
    return Q(is_beyond, (towards, place.key))


def _name(text: str) -> Value:
    if "\0" in text:
        raise ValueError("no name holds a null character")
    return Value(text, output_field=TextField())


def _score(text: str) -> Value:
    return Value(int(text[:4]), output_field=IntegerField())


def _moment(text: str) -> Value:
    """The time as the database itself writes it: SQLite compares times as texts, of which it keeps every digit."""
    if not MOMENT.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a time")
    datetime.fromisoformat(text)
    return Value(text, output_field=TextField())


KEYS: Mapping[str, Any] = {
    "name": F("name"),
    "score": Func("score", template=SCORE_OR_LESS, output_field=IntegerField()),
    "changed": F("updated_at"),
}
READ_KEYS: Mapping[str, Callable[[str], Value]] = {"name": _name, "score": _score, "changed": _moment}
