"""Holes in a log: ids that are missing, because their transaction is still open or was rolled back.

Ids are assigned before the commit, so a row may appear after others with higher ids. On PostgreSQL,
a transaction locks the table for writing before it gets an id, and keeps that lock until after its
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
    """The other transactions that have written to a table and are still open, and the database's
    time in seconds."""

    ids: frozenset[str]
    now: float


class Hole(NamedTuple):
    """Missing ids.

    Attributes:
        first, last: the ids, all of which are missing.
        seen_at: the time when they were first found missing, in seconds.
        writers: the transactions that were open then and may still add them.
    """

    first: int
    last: int
    seen_at: float
    writers: Sequence[str]

    def shrink(self, found: Collection[int], writers: Writers) -> list[Hole]:
        """Return the rest of the hole, without ids that were found and with the writers that are
        still open."""
        waits_for = sorted(writers.ids.intersection(self.writers))
        inside = sorted(pk for pk in found if self.first <= pk <= self.last)
        return [
            Hole(*gap, self.seen_at, waits_for)
            for gap in list_gaps(self.first - 1, [*inside, self.last + 1])
        ]


def find_writers(log: type[Model]) -> Writers:
    """Find the other transactions that may still add rows with ids that were missing before this
    was called."""
    if connection.vendor != "postgresql":
        return Writers(frozenset(), 0.0)
    with connection.cursor() as cursor:
        cursor.execute(_WRITERS, [log._meta.db_table])
        ids, now = cursor.fetchone()
    return Writers(frozenset(ids), now)


def list_gaps(after: int, ids: Sequence[int]) -> list[tuple[int, int]]:
    """List the first and last of the missing ids between `after` and the last of these ascending
    ids."""
    return [(lower + 1, upper - 1) for lower, upper in pairwise([after, *ids]) if upper - lower > 1]
