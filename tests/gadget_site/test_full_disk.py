"""If nothing can be saved, readiness, the doctor, pages and the API say so, with the reason.

SQLite really runs out of space, because it may not add pages; PostgreSQL refuses writes, as after a
failover.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from django.db import DatabaseError, connection
from django.test import Client
from pytest_django import Settings

from agents.platform.models import WriteProbe
from agents.platform.writability import check_writability
from agents.runs.models import Run
from tests.gadget_site.test_doctor import examined
from tests.services import TEST_ENVIRONMENT
from tests.world import World, make_world

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]
SENTENCES = {
    "sqlite": "The database disk is full.",
    "postgresql": "The database is read-only at the moment.",
}


@pytest.fixture
def world() -> World:
    return make_world()


@pytest.fixture
def browser(world: World) -> Client:
    """A browser with an operator who logged in before the disk was full."""
    return world.client("operator")


@pytest.fixture
def full_disk(browser: Client) -> Iterator[str]:
    """Block all writes by existing and new connections; return the sentence that reports the full
    disk."""
    options = connection.settings_dict["OPTIONS"]
    known = dict(options)
    if connection.vendor == "sqlite":
        pages = value_of("PRAGMA page_count")
        limit = f"PRAGMA max_page_count = {pages}"
        value_of(limit)
        options["init_command"] += limit
        fill_up()
    else:
        cast("Any", connection).close()
        cast("Any", connection).close_pool()
        options["options"] += " -c default_transaction_read_only=on"
    yield SENTENCES[connection.vendor]
    options.clear()
    options.update(known)
    connection.close()
    if connection.vendor == "postgresql":
        cast("Any", connection).close_pool()


def test_readiness_passes_when_data_can_be_saved(client: Client) -> None:
    assert client.get("/api/ready").status_code == 200
    assert not WriteProbe.objects.exists()


def test_readiness_fails_when_nothing_can_be_saved(full_disk: str, client: Client) -> None:
    response = client.get("/api/ready")
    assert (response.status_code, response.json()["code"]) == (503, "database_away")
    assert response.json()["detail"] == full_disk


def test_the_doctor_reports_that_nothing_can_be_saved(full_disk: str) -> None:
    _, findings = examined()
    assert f"nothing can be saved: {full_disk}" in [
        each["text"] for each in findings if not each["is_well"]
    ]


def test_a_page_explains_that_nothing_can_be_saved(
    world: World, browser: Client, full_disk: str
) -> None:
    task = "Look around. " * 1500
    response = browser.post("/", {"employee": world.employee.pk, "task": task})
    text = response.content.decode()
    assert response.status_code == 503
    assert full_disk in text
    assert "may not have been saved" in text
    assert not Run.objects.exists()


def test_the_api_explains_that_nothing_can_be_saved(
    world: World, browser: Client, full_disk: str
) -> None:
    body = {"employee_id": str(world.employee.pk), "task": "Look around. " * 1500}
    response = browser.post("/api/runs", body, content_type="application/json")
    assert (response.status_code, response.json()["code"]) == (503, "database_away")
    assert response.json()["detail"].startswith(full_disk)


def test_a_files_folder_that_is_not_writable_is_reported(
    client: Client, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    settings.GADGET_FILES_DIR = tmp_path / "file" / "files"
    assert "files" in client.get("/api/ready").json()["degraded"]
    _, findings = examined()
    assert "The files folder is not writable: Not a directory." in [
        each["text"] for each in findings
    ]


def test_a_full_disk_under_the_files_folder_is_reported(tmp_path: Path) -> None:
    environment = {
        **TEST_ENVIRONMENT,
        "PYTHONDONTWRITEBYTECODE": "1",
        "GADGET_DATA_DIR": str(tmp_path),
    }
    script = (
        "import os, resource; os.environ['DJANGO_SETTINGS_MODULE'] = 'gadget_site.settings'\n"
        "import django; django.setup()\n"
        "from agents.platform.writability import try_files\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); print(try_files())\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "The files folder is not writable: File too large.\n"
    assert not list((tmp_path / "files").iterdir())


def test_leftovers_of_a_crashed_probe_are_removed() -> None:
    WriteProbe.objects.create(filler=b"left")
    assert not check_writability().database
    assert not WriteProbe.objects.exists()


def fill_up() -> None:
    """Fill the database until not even a small row fits."""
    for size in (200_000, 20_000, 2_000, 100):
        while True:
            try:
                WriteProbe.objects.create(filler=b"x" * size)
            except DatabaseError:
                break


def value_of(statement: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


@pytest.mark.parametrize("room", [1_000, 200_000])
def test_a_first_start_on_a_full_disk_fails_with_one_sentence(tmp_path: Path, room: int) -> None:
    """Limit every file to `room` bytes, so that SQLite runs out of space during the first migration
    or a later one."""
    kept = {name: value for name, value in TEST_ENVIRONMENT.items() if name != "DATABASE_URL"}
    kept["PYTHONDONTWRITEBYTECODE"] = (
        "1"  # otherwise the next process would find truncated compiled files
    )
    script = (
        f"import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))\n"
        "sys.argv = ['manage.py', 'migrate', '--skip-checks', '--verbosity', '0']\n"
        "runpy.run_path('manage.py', run_name='__main__')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**kept, "GADGET_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("CommandError: The migrations did not finish. The database ")
    assert ended.stderr.strip().endswith("Fix that, then start again.")
    assert "Traceback" not in ended.stderr
