"""Real error conditions of the tests' database: it is locked, full or read-only. PostgreSQL can
also be told to report any other error."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager

from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.postgresql.base import DatabaseWrapper as PostgreSQL
from django.db.backends.signals import connection_created

_IMPATIENT = {"sqlite": "PRAGMA busy_timeout = 50", "postgresql": "SET lock_timeout = '50ms'"}
_READ_ONLY = {
    "sqlite": "PRAGMA query_only = ON",
    "postgresql": "SET default_transaction_read_only = on",
}
_LARGER_THAN_THE_FILE = (
    "INSERT INTO filling SELECT zeroblob((page_count + 1) * page_size) "
    "FROM pragma_page_count, pragma_page_size"
)
_WRITE = "UPDATE runs_run SET problem = problem || 'x'"

Provoke = Callable[[], None]


def execute(*statements: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def be_read_only() -> None:
    if connection.vendor == "postgresql":
        execute("SET TRANSACTION READ ONLY", _WRITE)
    execute("PRAGMA query_only = ON", _WRITE)


def be_full() -> None:
    """Keep SQLite's file from growing, and then write to it. PostgreSQL only raises the error for a
    full disk, because the tests must not fill the disk."""
    if connection.vendor == "postgresql":
        say("53100")
    execute("CREATE TABLE filling (text)", "PRAGMA max_page_count = 1", _LARGER_THAN_THE_FILE)


def be_locked() -> None:
    with impatience(), locked_database():
        connection.close()
        execute(_WRITE)


def say(state: str) -> None:
    """Let PostgreSQL raise an error with this state."""
    execute(f"DO $$ BEGIN RAISE EXCEPTION 'as asked' USING ERRCODE = '{state}'; END $$")


def impatience() -> AbstractContextManager[None]:
    """Let new connections wait only 50 ms for a lock during the block."""
    return _connections_with(_IMPATIENT)


def read_only_connections() -> AbstractContextManager[None]:
    """Make new connections read-only during the block."""
    return _connections_with(_READ_ONLY)


@contextmanager
def _connections_with(statements: dict[str, str]) -> Iterator[None]:
    def prepare(connection: BaseDatabaseWrapper, **_: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statements[connection.vendor])

    connection_created.connect(prepare)
    connection.close()
    try:
        yield
    finally:
        connection_created.disconnect(prepare)
        connection.close()
        default = connections["default"]
        if isinstance(default, PostgreSQL):
            default.close_pool()  # the pool's connections would keep the old settings


@contextmanager
def locked_database(table: str = "runs_run") -> Iterator[None]:
    """Lock a table from another connection, as a migration does; on SQLite, take the only write
    lock."""
    if connection.vendor == "sqlite":
        with closing(
            sqlite3.connect(connection.settings_dict["NAME"], timeout=20, isolation_level=None)
        ) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")
        return
    with closing(connection.copy()) as other:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
            yield
        other.rollback()
