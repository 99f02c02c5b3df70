"""Parts that start before the database is migrated wait, report this once, and start as soon as the
database is migrated."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from gadget_site.addresses import parse_database_url
from gadget_site.management.processes import (
    build_sweeper_process,
    build_web_process,
    build_worker_process,
)
from tests.gadget_site.backups.places import empty_database
from tests.http import get
from tests.processes import Installation, RealProcess
from tests.silent_proxy import SilentProxy

pytestmark = pytest.mark.django_db(transaction=True)
WAITING = "Waiting for a migrated database."
NEWEST_MIGRATION = max(name for app, name in MigrationLoader(None).disk_migrations if app == "runs")
PATIENCE_S = 180.0


@pytest.fixture
def empty_url(tmp_path: Path) -> Iterator[str]:
    """Yield the address of a database without tables, on the kind of server that the tests use."""
    (tmp_path / "fresh").mkdir()
    with empty_database(tmp_path) as url:
        yield url


def execute(url: str, statement: str) -> None:
    """Execute one statement on the database at this address."""
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
            file.execute(statement)
        file.close()
        return
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(statement.encode())


def start_migrate(environment: dict[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "migrate", "--verbosity", "0"]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def migrate(environment: dict[str, str]) -> None:
    process = start_migrate(environment)
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, output


def start_parts(installation: Installation) -> list[RealProcess]:
    parts = (build_web_process(), build_sweeper_process(), build_worker_process(1))
    return [installation.spawn(part) for part in parts]


def check_waiting(parts: list[RealProcess], reason: str) -> None:
    """Check that each part prints one line when it starts to wait, and does not print anything else
    for some rounds."""
    for part in parts:
        part.await_line(f"{WAITING} {reason}")
    time.sleep(3)  # three rounds of waiting
    for part in parts:
        assert part.is_alive
        assert part.output.count("Waiting for") == 1, part.output
        assert "Traceback" not in part.output, part.output
        assert " ready" not in part.output, part.output


def test_parts_on_an_empty_database_wait_and_start_once_it_is_migrated(
    installation: Installation, empty_url: str
) -> None:
    installation.variables = {"DATABASE_URL": empty_url}
    parts = start_parts(installation)
    check_waiting(parts, "The database is empty. Run: python manage.py migrate")
    response = get(f"{installation.url}/api/ready")
    problem = response.json()
    assert (response.status, problem["code"]) == (503, "not_migrated")
    assert "python manage.py migrate" in problem["detail"]
    assert response.headers["retry-after"] == "2"
    assert get(f"{installation.url}/api/health").status == 200
    assert b"gadget_database_up 0.0" in get(f"{installation.url}/metrics").body
    assert [
        get(f"{installation.url}{path}").status for path in ("/", "/api/employees", "/mcp")
    ] == [503] * 3
    migrate(installation.environment)
    for part in parts:
        part.await_line(" ready")
    assert get(f"{installation.url}/api/ready").status == 200
    assert get(f"{installation.url}/api/employees").status == 401
    assert b"gadget_database_up 1.0" in get(f"{installation.url}/metrics").body


def test_parts_on_an_older_database_wait_for_the_missing_migration(
    installation: Installation, empty_url: str
) -> None:
    installation.variables = {"DATABASE_URL": empty_url}
    migrate(installation.environment)
    row = f"app = 'runs' AND name = '{NEWEST_MIGRATION}'"
    execute(empty_url, f"UPDATE django_migrations SET app = 'kept' WHERE {row}")
    parts = start_parts(installation)
    fix = "Run: python manage.py migrate"
    check_waiting(parts, f"1 migration is not applied (runs.{NEWEST_MIGRATION}). {fix}")
    assert get(f"{installation.url}/api/ready").json()["code"] == "not_migrated"
    execute(empty_url, "UPDATE django_migrations SET app = 'runs' WHERE app = 'kept'")
    for part in parts:
        part.await_line(" ready")


def test_the_web_part_is_ready_immediately_if_the_database_is_migrated(
    installation: Installation,
) -> None:
    web = installation.start_web()
    assert "Waiting" not in web.output
    assert get(f"{installation.url}/api/ready").status == 200


def test_a_waiting_web_part_ends_if_the_files_folder_belongs_to_another_installation(
    installation: Installation, empty_url: str
) -> None:
    installation.variables = {"DATABASE_URL": empty_url}
    web = installation.spawn(build_web_process())
    web.await_line(WAITING)
    (Path(installation.environment["GADGET_DATA_DIR"]) / "files" / "1").mkdir(parents=True)
    (Path(installation.environment["GADGET_DATA_DIR"]) / "files" / ".gadget-folder").write_text(
        "0" * 32
    )
    migrate(installation.environment)
    assert web.wait_for_end() == 1
    assert "Gadget cannot start. The files folder" in web.output
    assert "Traceback" not in web.output


def test_migrate_waits_for_its_server_with_one_line(empty_url: str, tmp_path: Path) -> None:
    if connection.vendor == "sqlite":  # no server to wait for
        return
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = int(probe.getsockname()[1])
    login, name = connection.settings_dict["USER"], parse_database_url(empty_url).name
    process = start_migrate(
        environment_at(f"postgresql://{login}@127.0.0.1:{port}/{name}", tmp_path)
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert "Waiting for the database server." in line
    assert f"port {port}" in line
    proxy = SilentProxy(port)
    try:
        rest, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        proxy.close()
    assert (process.returncode, rest) == (0, "")


def test_migrate_ends_immediately_when_the_server_refuses_the_login(tmp_path: Path) -> None:
    if connection.vendor == "sqlite":
        return
    proxy = SilentProxy()
    try:
        url = (
            f"postgresql://stranger:wrong@127.0.0.1:{proxy.port}/{connection.settings_dict['NAME']}"
        )
        process = start_migrate(environment_at(url, tmp_path))
        output, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        proxy.close()
    assert process.returncode == 1
    assert "CommandError: The database server refuses: " in output
    assert "FATAL" in output
    assert "Waiting" not in output


def environment_at(url: str, folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "GADGET_TESTS_GIVEN": "1",
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DATABASE_URL": url,
        "GADGET_DATA_DIR": str(folder),
    }
