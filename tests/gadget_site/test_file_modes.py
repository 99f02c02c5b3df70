"""Only the owner can open stored files: new files are private, files that an older version left
open become private, and the doctor reports files that are open to others."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_django import Settings

from agents.platform.file_modes import close_to_others, find_open_paths, list_stored_paths
from tests.gadget_site.test_doctor import examined
from tests.services import TEST_ENVIRONMENT
from tools.office.files.changes import write_file

ROOT = Path(__file__).resolve().parents[2]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """Create a data folder as an older version did, open to everybody, with links to places outside
    it."""
    data = tmp_path / "var"
    (data / "files" / "1" / "reports").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    for name in (
        "gadget.sqlite3",
        "gadget.sqlite3-wal",
        "secret_key",
        "files/1/reports/a.txt",
        "../outside/b.txt",
    ):
        (data / name).write_text("x")
        (data / name).chmod(0o644)
    (data / "files" / "1" / "way-out").symlink_to(tmp_path / "outside")
    (data / "link.txt").symlink_to(tmp_path / "outside" / "b.txt")
    for folder in (data, data / "files", data / "files" / "1", tmp_path / "outside"):
        folder.chmod(0o755)
    return data


@pytest.mark.once
def test_files_that_an_older_version_left_open_become_private(older: Path) -> None:
    database = older / "gadget.sqlite3"
    assert close_to_others(list_stored_paths(older, database)) > 0
    for name in ("gadget.sqlite3", "gadget.sqlite3-wal", "secret_key", "files/1/reports/a.txt"):
        assert mode_of(older / name) == 0o600, name
    for name in ("", "files", "files/1", "files/1/reports"):
        assert mode_of(older / name) == 0o700, name
    assert not list(find_open_paths(list_stored_paths(older, database)))


@pytest.mark.once
def test_links_are_not_followed(older: Path) -> None:
    close_to_others(list_stored_paths(older, None))
    assert mode_of(older.parent / "outside") == 0o755
    assert mode_of(older.parent / "outside" / "b.txt") == 0o644


@pytest.mark.once
def test_a_database_outside_the_data_folder_becomes_private_but_its_folder_stays_unchanged(
    older: Path,
) -> None:
    elsewhere = older.parent / "outside" / "b.txt"
    close_to_others(list_stored_paths(older, elsewhere))
    assert mode_of(elsewhere) == 0o600
    assert mode_of(elsewhere.parent) == 0o755


@pytest.mark.once
def test_a_folder_shared_by_all_users_stays_unchanged(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    close_to_others(list_stored_paths(tmp_path, None))
    assert mode_of(tmp_path) == 0o1777


@pytest.mark.once
def test_files_that_a_command_creates_are_private(tmp_path: Path) -> None:
    environment = {
        **TEST_ENVIRONMENT,
        "PATH": os.environ["PATH"],
        "GADGET_DATA_DIR": str(tmp_path / "var"),
    }
    script = (
        "import os; os.umask(0o022); os.environ['DJANGO_SETTINGS_MODULE'] = 'gadget_site.settings'\n"
        "import django; django.setup()\n"
        "from django.db import connection\n"
        "connection.cursor().execute('CREATE TABLE t (x)')\n"
        "from tools.office.files.changes import write_file\n"
        "write_file(1, ('reports', 'a.txt'), [b'x'], lambda _: None)\n"
        "from agents.accounts.installation import _create_folder_id; _create_folder_id()\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, check=True)
    stored = list(list_stored_paths(tmp_path / "var", tmp_path / "var" / "gadget.sqlite3"))
    assert {"gadget.sqlite3", "gadget.sqlite3-wal", "a.txt", ".gadget-folder"} <= {
        path.name for path in stored
    }
    assert not list(find_open_paths(stored))


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("redis_url")
def test_the_doctor_reports_files_that_are_too_open(older: Path, settings: Settings) -> None:
    settings.GADGET_DATA_DIR = older
    settings.GADGET_FILES_DIR = older / "files"
    settings.GADGET_SQLITE_FILE = None
    write_file(1, ("fine.txt",), [b"x"], lambda _: None)
    _, findings = examined()
    (finding,) = [each for each in findings if each["subject"] == "folder"]
    assert f"other users of this machine can open '{older}'" in finding["text"]
    assert " more" in finding["text"]
    assert finding["fix"] == f"chmod -R go-rwx {older}"
    close_to_others(list_stored_paths(older, None))
    _, findings = examined()
    (finding,) = [each for each in findings if each["subject"] == "folder"]
    assert finding["is_well"]
