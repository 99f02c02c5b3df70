"""Back up and restore PostgreSQL with COPY, all tables in one transaction. No other program is
needed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connection, connections, transaction
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from psycopg import sql

from agents.restores.lines import NewerLimits, write_lines
from gadget_site.backup import facts, restored
from gadget_site.backup.archive import BackupError, Manifest

_PART = 1 << 20
_DISCONNECT_S = 2.0
"""Seconds to wait until the server no longer lists closed connections."""
_NO_LIMITS = (
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL idle_in_transaction_session_timeout = 0",
    "SET LOCAL datestyle = 'ISO'",
)
_COLUMNS = """
    SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND is_generated = 'NEVER' ORDER BY table_name, ordinal_position
"""
_SEQUENCES = "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = current_schema()"
_OTHERS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'gadget'
"""


class PostgresqlSnapshot:
    """The database as it was when the snapshot was opened."""

    def __init__(self) -> None:
        self.migrations = list(_query_rows(facts.MIGRATIONS))
        self.heads = [f"{slug}:{seq}:{hash_}" for slug, seq, hash_ in _query_rows(facts.HEADS)]
        tables = set(_list_tables())
        self.columns: dict[str, list[str]] = {}
        for table, column in _query_rows(_COLUMNS):
            if table in tables:
                self.columns.setdefault(table, []).append(column)
        self.sequences = {name: last for name, last in _query_rows(_SEQUENCES) if last is not None}

    def dump(self, folder: Path) -> None:
        """Write one file for each table, in the server's text format, which preserves values of
        every type exactly."""
        for table, columns in self.columns.items():
            with (
                (folder / table).open("wb") as file,
                _copy("COPY {} ({}) TO STDOUT", table, columns) as copy,
            ):
                for part in copy:
                    file.write(part)


@contextmanager
def snapshot() -> Iterator[PostgresqlSnapshot]:
    """Open a read-only transaction that does not see later commits."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        _lift_time_limits(cursor)
        yield PostgresqlSnapshot()


def refuse_while_used() -> None:
    """Raise BackupError if another process of Gadget is connected to the database."""
    _connect_under_another_name()
    deadline = time.monotonic() + _DISCONNECT_S
    while (others := _query_rows(_OTHERS)[0][0]) and time.monotonic() < deadline:
        time.sleep(0.05)
    if others:
        raise BackupError(
            f"Gadget is still running, with {others} connections to the database. Stop it everywhere."
        )


def load(folder: Path, manifest: Manifest, newer: NewerLimits) -> None:
    """Replace the contents of the database, migrate it and stop everything, all in one
    transaction."""
    with transaction.atomic(), connection.cursor() as cursor:
        _lift_time_limits(cursor)
        _create_empty_tables(cursor, manifest)
        # After the migrations, foreign keys are checked immediately, but rows refer to rows that
        # are loaded later.
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        for table, columns in manifest.columns.items():
            with (
                (folder / table).open("rb") as file,
                _copy("COPY {} ({}) FROM STDIN", table, columns) as copy,
            ):
                while part := file.read(_PART):
                    copy.write(part)
        for name, last in manifest.sequences.items():
            cursor.execute("SELECT setval(quote_ident(%s)::regclass, %s)", [name, last])
        # Check now, because a table with pending constraint checks cannot be altered.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        call_command("migrate", verbosity=0)
        restored.stop_everything()
        write_lines(newer)


def _lift_time_limits(cursor: Any) -> None:
    """Lift both time limits of this transaction: the server's limits, and our limit on waiting for
    the server's responses."""
    for setting in _NO_LIMITS:
        cursor.execute(setting)
    connection.connection.response_timeout_s = None  # see gadget_site/response_timeout.py


def _connect_under_another_name() -> None:
    """Reconnect under another application name, which sets our pooled connections apart from those
    of other processes."""
    connections.close_all()
    connection.settings_dict["OPTIONS"]["application_name"] = "gadget restore"
    wrapper = connections["default"]
    if isinstance(wrapper, DatabaseWrapper):
        wrapper.close_pool()


def _create_empty_tables(cursor: Any, manifest: Manifest) -> None:
    """Create empty tables, as they were in the version that the manifest names."""
    applied = set(MigrationRecorder(connection).applied_migrations())
    if applied != set(manifest.migrations):
        _create_tables(cursor, manifest, applied)
    tables = sorted({*manifest.columns, *_list_tables()})
    cursor.execute(sql.SQL("TRUNCATE {}").format(_join_names(tables)))  # some migrations write rows


def _create_tables(cursor: Any, manifest: Manifest, applied: set[tuple[str, str]]) -> None:
    newer = applied - MigrationLoader(None).disk_migrations.keys()
    if tables := _list_tables() + _list_unknown_tables({app for app, _ in newer}):
        cursor.execute(sql.SQL("DROP TABLE {}").format(_join_names(tables)))
    cursor.execute("DROP TABLE IF EXISTS django_migrations")
    MigrationExecutor(connection).migrate(manifest.migrations)


def _list_unknown_tables(apps: set[str]) -> list[str]:
    """List the tables that exist only in a newer version of these apps; they may refer to known
    tables."""
    own, known = tuple(f"{app}_" for app in apps), _list_tables()
    return [
        name
        for name in connection.introspection.table_names()
        if name.startswith(own) and name not in known
    ]


def _list_tables() -> list[str]:
    return sorted(
        connection.introspection.django_table_names(only_existing=True, include_views=False)
    )


def _join_names(names: list[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _query_rows(statement: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


@contextmanager
def _copy(statement: str, table: str, columns: list[str]) -> Iterator[Any]:
    connection.ensure_connection()
    with (
        connection.connection.cursor() as cursor,
        cursor.copy(sql.SQL(statement).format(sql.Identifier(table), _join_names(columns))) as copy,
    ):
        yield copy
