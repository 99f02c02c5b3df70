"""Empties the tables after each test that commits, in 10 ms on PostgreSQL and 1 ms on SQLite.

Django's flush truncates every table and writes types and permissions again, which takes 60 ms and
24 ms.
"""

from __future__ import annotations

import time
from functools import lru_cache

from django.db import OperationalError, connection, transaction
from django.test import TransactionTestCase
from psycopg.errors import LockNotAvailable

KEPT = frozenset({"django_content_type", "auth_permission"})
"""Tables that only migrations write."""
LOCK_TIMEOUT_MS = 200
"""Far below PostgreSQL's deadlock timeout of a second: in a deadlock, this side gives up, not the
tested process."""
PATIENCE_S = 60.0


def empty_tables_after_tests() -> None:
    """Empty the tables after each test that commits, from now on."""
    TransactionTestCase._fixture_teardown = lambda _: empty_tables()  # type: ignore[attr-defined]


def empty_tables() -> None:
    """Empty the tables now. Also needed after an installation that served several tests, because
    its sweeper writes until it ends.

    Raises:
        OperationalError: another process holds a table for a minute.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return _empty_tables()
        except OperationalError as error:
            if not isinstance(error.__cause__, LockNotAvailable) or time.monotonic() > deadline:
                raise


def _empty_tables() -> None:
    names = _list_tables()
    with transaction.atomic(), connection.cursor() as cursor:
        # The lock keeps another process from writing rows meanwhile, which would stay.
        if connection.vendor == "postgresql":
            cursor.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
            cursor.execute(f"LOCK TABLE {', '.join(names)} IN ACCESS EXCLUSIVE MODE")
        cursor.execute(
            " UNION ALL ".join(
                f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})" for name in names
            )
        )
        for (name,) in cursor.fetchall():
            cursor.execute(f"DELETE FROM {name}")


@lru_cache(maxsize=1)
def _list_tables() -> tuple[str, ...]:
    found = connection.introspection.django_table_names(only_existing=True, include_views=False)
    return tuple(name for name in found if name not in KEPT)
