"""A database of the first release is migrated to today's schema with every row, and its migrations
never change."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from django.apps import apps
from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from tests.features import feature
from tests.first_release.frozen import get_file, read_tables, render_migration
from tests.gadget_site.backups.places import count_rows, empty_database

LATER_TABLES: frozenset[str] = frozenset()
"""Tables that were added after the release and so have no rows from it; add each new table here."""
LATER_READERS = 1
"""The number of readers added after the release; the migration that adds a reader writes its
cursor."""
NEXT_MIGRATION = "SELECT setval(pg_get_serial_sequence('django_migrations', 'id'), max(id)) FROM django_migrations"
"""The statement that the frozen rows lack: it gives the next migration the next free id."""
COLUMNS = {
    "sqlite": "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'",
    "postgresql": "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'",
}


def build_release(url: str) -> None:
    """Build the release's tables with its rows in the empty database at this address."""
    tables, rows = (get_file(kind).read_text() for kind in ("tables", "rows"))
    if connection.vendor == "sqlite":
        Path(url.removeprefix("sqlite:///")).parent.mkdir()
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            database.executescript(tables + rows)
        return
    with psycopg.connect(url) as database:
        database.execute(tables.encode())
        # Some statements make foreign keys immediate until the end of their transaction.
        database.commit()
        database.execute(rows.encode())
        database.execute(NEXT_MIGRATION)


def run_command(url: str, tmp_path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of today's code on the database at this address."""
    own = {
        "GADGET_TESTS_GIVEN": "1",
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DATABASE_URL": url,
    }
    environment = {**os.environ, **own, "GADGET_DATA_DIR": str(tmp_path / "fresh")}
    words = [sys.executable, str(settings.BASE_DIR / "manage.py"), *command]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


def list_columns(url: str = "") -> set[tuple[str, str]]:
    """List the columns of every table of Gadget, in the database at this address, by default the
    tests' database."""
    if not url:
        with connection.cursor() as cursor:
            cursor.execute(COLUMNS[connection.vendor])
            return set(cursor.fetchall())
    connect = psycopg.connect if url.startswith("postgresql") else sqlite3.connect
    with closing(connect(url.removeprefix("sqlite:///"))) as other:
        return set(other.execute(COLUMNS[connection.vendor]).fetchall())


@feature(
    "Agents elsewhere",
    "A database of the first release is brought to the newest version",
    "agents/platform/schema_version.py",
)
@pytest.mark.django_db(transaction=True)
def test_a_filled_database_of_the_first_release_is_migrated_with_every_row(tmp_path: Path) -> None:
    own = {
        model._meta.db_table for model in apps.get_models(include_auto_created=True)
    } - LATER_TABLES
    with empty_database(tmp_path) as url:
        build_release(url)
        missing = own - {table for table, _ in list_columns(url)}
        assert not missing, "the release has no such table; add it to LATER_TABLES"
        before = count_rows(url, own)
        migrated = run_command(url, tmp_path, "migrate", "--verbosity=0")
        assert migrated.returncode == 0, migrated.stderr
        after = count_rows(url, own)
        after["readers_readercursor"] -= LATER_READERS
        assert after == before
        assert list_columns(url) == list_columns()
        verified = run_command(url, tmp_path, "verify_audit")
    assert sorted(table for table, count in before.items() if not count) == []
    assert verified.returncode == 0, verified.stdout


@pytest.mark.django_db(transaction=True)
def test_every_migration_of_the_first_release_renders_the_frozen_sql() -> None:
    loader, own = MigrationLoader(connection), {"agents", "tools", "gadget_site"}
    for key, frozen in read_tables().items():
        app, name = key.split(".")
        if loader.disk_migrations[app, name].__module__.partition(".")[0] in own:
            assert render_migration(loader, app, name) == frozen, (
                f"{key} was changed: add a migration instead"
            )
