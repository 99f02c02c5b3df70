"""Copies of rows, inserted by the database itself: the engine would need days for a million
runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, models
from django.db.backends.utils import CursorWrapper


@contextmanager
def copying() -> Iterator[CursorWrapper]:
    """Yield a cursor for copying: it has no timeout, does not check foreign keys, and does not wait
    for the disk at a commit."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("SET statement_timeout = 0")
        cursor.execute("SET synchronous_commit = off")
        yield cursor
        cursor.execute("SET session_replication_role = origin")
        cursor.execute("SET statement_timeout TO DEFAULT")
        cursor.execute("SET synchronous_commit TO DEFAULT")
        cursor.execute("ANALYZE")


def insert(
    cursor: CursorWrapper, values: dict[str, str], model: type[models.Model], source: str
) -> None:
    """Insert one row for each row of the source; the values give an SQL expression for
    each column."""
    names = ", ".join(f'"{column}"' for column in values)
    cursor.execute(
        f"INSERT INTO {model._meta.db_table} ({names}) SELECT {', '.join(values.values())} FROM {source}"
    )


def copied(
    model: type[models.Model], changed: dict[str, str], with_id: bool = False
) -> dict[str, str]:
    """Return an SQL expression for each column: the changed expression if given, otherwise the
    source's own column. The primary key is omitted unless requested."""
    fields = [field for field in model._meta.concrete_fields if with_id or not field.primary_key]
    return {
        str(each.column): changed.get(str(each.column), f'source."{each.column}"')
        for each in fields
    }
