"""Databases into which a backup is restored, and their contents."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from django.apps import apps
from django.conf import settings as site
from django.db import connection

from tests.processes import current_database_url


def rows() -> dict[str, list[Any]]:
    """Return every stored value of every table, as the database returns it."""
    found = {}
    for model in apps.get_models(include_auto_created=True):
        table = model._meta.db_table
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT * FROM "{table}" ORDER BY 1')
            found[table] = cursor.fetchall()
    return found


def restore_in_process(tmp_path: Path, url: str, archive: Path) -> str:
    """Run `restore`, `verify_audit` and a second `restore` without force in separate processes;
    return their output."""
    environment = {
        **os.environ,
        "GADGET_TESTS_GIVEN": "1",
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DATABASE_URL": url,
        "GADGET_DATA_DIR": str(tmp_path / "fresh"),
    }

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, str(site.BASE_DIR / "manage.py"), *command]
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)

    done = run("restore", str(archive))
    assert done.returncode == 0, done.stderr
    verified = run("verify_audit")
    assert verified.returncode == 0, verified.stdout
    again = run("restore", str(archive))
    assert again.returncode == 1
    assert "already holds data" in again.stderr
    return verified.stdout + done.stdout


@contextmanager
def empty_database(tmp_path: Path) -> Iterator[str]:
    """Yield the address of a database without tables."""
    if connection.vendor == "sqlite":
        yield f"sqlite:///{tmp_path}/fresh/gadget.sqlite3"
        return
    own, name = connection.settings_dict["NAME"], f"{connection.settings_dict['NAME']}_fresh"
    with psycopg.connect(current_database_url(), autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
        try:
            yield current_database_url().replace(f"/{own}", f"/{name}")
        finally:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def count_rows(url: str, tables: Iterable[str]) -> dict[str, int]:
    """Count the rows of these tables in the database at this address."""
    connect = psycopg.connect if url.startswith("postgresql") else sqlite3.connect
    with closing(connect(url.removeprefix("sqlite:///"))) as other:
        counts = {
            table: other.execute(f'SELECT count(*) FROM "{table}"').fetchone() for table in tables
        }
    return {table: int(count[0]) for table, count in counts.items() if count}
