"""Backups of SQLite: copy the database as of one moment, and restore it into the file that Gadget
uses."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from django.core.management import call_command
from django.db import connection, connections

from agents.restores.lines import NewerLimits, write_lines
from gadget_site.backup import facts, restored
from gadget_site.backup.archive import BackupError, Manifest

COPY = "gadget.sqlite3"
_PATIENCE_S = 20
_CLOSING_S = 3.0
"""Seconds to wait for a stopped process that is still closing the database."""
_LOOK_EVERY_S = 0.1


class SqliteSnapshot:
    """The database as it was when the snapshot was opened."""

    def __init__(self, source: sqlite3.Connection) -> None:
        self._source = source
        self.migrations = list(source.execute(facts.MIGRATIONS))
        self.heads = [f"{slug}:{seq}:{hash_}" for slug, seq, hash_ in source.execute(facts.HEADS)]
        self.columns: dict[str, list[str]] = {}
        self.sequences: dict[str, int] = {}

    def dump(self, folder: Path) -> None:
        """Write the copy as one self-contained file."""
        with closing(sqlite3.connect(folder / COPY)) as copy:
            self._source.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")


@contextmanager
def snapshot() -> Iterator[SqliteSnapshot]:
    """Open a read transaction on a separate connection. SQLite's write-ahead log preserves what the
    transaction sees, while writers continue."""
    with closing(sqlite3.connect(_get_file(), timeout=_PATIENCE_S, isolation_level=None)) as source:
        source.execute("BEGIN")
        yield SqliteSnapshot(source)
        source.execute("ROLLBACK")


def refuse_while_used() -> None:
    """Raise BackupError if another process keeps the database open. To test this, leave WAL mode,
    which is possible only for the sole user of the database."""
    connections.close_all()
    deadline = time.monotonic() + _CLOSING_S
    with closing(sqlite3.connect(_get_file(), timeout=0)) as alone:
        while True:
            try:
                alone.execute("PRAGMA journal_mode=DELETE")
                return
            except sqlite3.OperationalError as error:
                if time.monotonic() > deadline:
                    fault = f"Gadget is still running, or something else uses {_get_file()}. Stop it first."
                    raise BackupError(fault) from error
            time.sleep(_LOOK_EVERY_S)


def load(folder: Path, _: Manifest, newer: NewerLimits) -> None:
    """Replace the database. It is migrated and stopped before it is put in place, so nothing can
    start too early.

    Raises:
        BackupError: the copy is damaged.
    """
    staged = folder / COPY
    with _use_database(staged):
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA quick_check")
            if (verdict := cursor.fetchone()[0]) != "ok":
                raise BackupError(f"The database in the backup is damaged: {verdict}.")
        call_command("migrate", verbosity=0)
        restored.stop_everything()
        write_lines(newer)
    refuse_while_used()
    with (
        closing(sqlite3.connect(staged)) as source,
        closing(sqlite3.connect(_get_file(), timeout=_PATIENCE_S)) as target,
    ):
        source.backup(target)


@contextmanager
def _use_database(path: Path) -> Iterator[None]:
    """Make Django use the database in this file within the block."""
    ours = connection.settings_dict["NAME"]
    connections.close_all()
    connection.settings_dict["NAME"] = str(path)
    try:
        yield
    finally:
        connections.close_all()
        connection.settings_dict["NAME"] = ours


def _get_file() -> str:
    return str(connection.settings_dict["NAME"])
