"""The migrated SQLite database of the tests, copied from an earlier run: a new migration would take
7 s.

A copy is used only while no migration and no installed package has changed.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.backends.sqlite3.creation import DatabaseCreation
from django.db.migrations.loader import MigrationLoader

from agents.platform import schema_version
from agents.readers import beginnings
from tests.source_tree import ROOT

FOLDER = ROOT / ".pytest_cache" / "migrated"
_migrate = DatabaseCreation.create_test_db


def copy_migrated_databases() -> None:
    """Make every test database on SQLite, from now on, a copy of a migrated database."""
    DatabaseCreation.create_test_db = _copy_or_migrate  # type: ignore[assignment]


def get_source() -> Path:
    """Return the file to copy, which may not exist yet; its name is the hash of the files that it
    depends on."""
    migrations = MigrationLoader(None).disk_migrations.values()
    modules = {sys.modules[each.__module__].__file__ or "" for each in migrations}
    parts = (schema_version.__file__, beginnings.__file__, str(ROOT / "requirements-dev.lock"))
    made_from = [*sorted(modules), *parts]
    text = b"\0".join(Path(file).read_bytes() for file in made_from)
    return FOLDER / f"{hashlib.sha256(text).hexdigest()}.sqlite3"


def _copy_or_migrate(self: DatabaseCreation, *args: Any, **more: Any) -> str:
    source, connection = get_source(), self.connection
    if source.exists():
        name: str = self._get_test_db_name()  # type: ignore[attr-defined]  # the stubs lack it
        connection.close()
        Path(name).unlink(missing_ok=True)
        _copy(source, Path(name))
        settings.DATABASES[connection.alias]["NAME"] = connection.settings_dict["NAME"] = name
        return name
    name = _migrate(self, *args, **more)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.sqlite3"):
        old.unlink(missing_ok=True)
    unfinished = source.with_suffix(f".{os.getpid()}")
    _copy(Path(name), unfinished)
    unfinished.replace(source)
    return name


def _copy(source: Path, target: Path) -> None:
    """Copy a database, including changes that are only in its write-ahead log so far."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
