"""Holes in a log: ids that are missing because their transaction is still open or was rolled back.

Ids are assigned before the commit, so a row may appear after rows with higher ids. On PostgreSQL, a
transaction locks the table for writing before it gets an id, and keeps that lock until after its
commit. So a transaction that does not hold the lock when a row is found missing can no longer add
it. SQLite has one writer at a time, so no row appears late.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from django.db import connection
from django.db.models import Model

_WRITERS = """
SELECT coalesce(json_agg(DISTINCT virtualtransaction), '[]'), extract(epoch FROM clock_timestamp())::float8
FROM pg_locks
WHERE locktype = 'relation' AND relation = %s::regclass AND mode = 'RowExclusiveLock'
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND pid IS DISTINCT FROM pg_backend_pid()
"""


class Writers(NamedTuple):
    """The other open transactions that have written to a table, and the database's time in
    seconds."""

    ids: frozenset[str]
    now: float


class Hole(NamedTuple):
    """A range of missing ids in a log.

    Attributes:
        first, last: the first and last id of the range.
        seen_at: the time when the ids were first found missing, in seconds.
        writers: the transactions that were open then and may still add these ids.
    """

    first: int
    last: int
    seen_at: float
    writers: Sequence[str]

    def shrink(self, found: Collection[int], writers: Writers) -> list[Hole]:
        """Return the ranges of the hole that are still missing, each with the writers that are
        still open."""
        waits_for = sorted(writers.ids.intersection(self.writers))
        inside = sorted(pk for pk in found if self.first <= pk <= self.last)
        return [
            Hole(*gap, self.seen_at, waits_for)
            for gap in list_gaps(self.first - 1, [*inside, self.last + 1])
        ]


def find_writers(log: type[Model]) -> Writers:
    """Find the other transactions that may still add the ids that are missing now."""
    if connection.vendor != "postgresql":
        return Writers(frozenset(), 0.0)
    with connection.cursor() as cursor:
        cursor.execute(_WRITERS, [log._meta.db_table])
        ids, now = cursor.fetchone()
    return Writers(frozenset(ids), now)


def list_gaps(after: int, ids: Sequence[int]) -> list[tuple[int, int]]:
    """List the ranges of ids that are missing between `after` and the last of these ascending ids.
    Each range has its first and last id."""
    return [(lower + 1, upper - 1) for lower, upper in pairwise([after, *ids]) if upper - lower > 1]
