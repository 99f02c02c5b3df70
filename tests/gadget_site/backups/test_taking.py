"""A backup is one private file with every file that the database names, but without keys; a failed
backup leaves nothing behind."""

from __future__ import annotations

import os
import stat
import tarfile
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from gadget_site.backup import archive
from gadget_site.backup.archive import BackupError, Manifest, read_manifest
from gadget_site.backup.restoring import restore
from gadget_site.backup.taking import back_up
from tests.workshop import Workshop, beside
from tools.office.files.all_folders import blocking_changes
from tools.office.files.changes import delete_files, write_file
from tools.office.records.models import Record
from tools.registries.files import FILE_STORE

Take = Callable[[], Manifest]


def write(organization_id: int, name: str, content: bytes) -> None:
    write_file(organization_id, (name,), [content], lambda _: None)


@pytest.mark.once
def test_a_backup_is_one_file_that_only_its_owner_can_read_and_leaves_no_other_files(
    workshop: Workshop, take: Take, tmp_path: Path
) -> None:
    take()
    assert stat.S_IMODE((tmp_path / "backup.tar.gz").stat().st_mode) == 0o600
    assert {one.name for one in tmp_path.iterdir()} == {"backup.tar.gz", "files"}


@pytest.mark.once
def test_the_last_line_of_the_command_and_the_readme_say_that_the_keys_are_missing(
    workshop: Workshop, tmp_path: Path
) -> None:
    told = StringIO()
    call_command("backup", str(tmp_path / "one.tar.gz"), stdout=told)
    assert "IT HOLDS NO KEYS" in told.getvalue().splitlines()[-1]
    with tarfile.open(tmp_path / "one.tar.gz") as tar:
        readme = tar.extractfile("README.txt")
        assert readme is not None
        assert b"THIS ARCHIVE HOLDS NO KEYS" in readme.read()


def test_a_backup_contains_no_key(workshop: Workshop, take: Take, tmp_path: Path) -> None:
    take()
    with tarfile.open(tmp_path / "backup.tar.gz") as tar:
        contents = [source.read() for one in tar if (source := tar.extractfile(one)) is not None]
    for key in (settings.SECRET_KEY, *settings.GADGET_ENCRYPTION_KEYS, *settings.GADGET_AUDIT_KEYS):
        assert not any(key.encode() in content for content in contents)


@pytest.mark.once
def test_an_existing_file_is_replaced_only_with_force(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("older")
    with pytest.raises(CommandError, match="already exists"):
        call_command("backup", str(tmp_path / "old"))
    assert (tmp_path / "old").read_text() == "older"
    call_command("backup", str(tmp_path / "old"), force=True, stdout=StringIO())
    assert read_manifest(tmp_path / "old").database


@pytest.mark.once
def test_a_backup_cannot_be_written_into_the_folder_of_employees_files(
    workshop: Workshop, files: Path
) -> None:
    with pytest.raises(BackupError, match="among the files"):
        back_up(
            files / "1" / "backup.tar.gz" if (files / "1").is_dir() else files / "backup.tar.gz"
        )


@pytest.mark.once
def test_a_failed_backup_leaves_nothing_behind(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(archive.Writer, "add_text", fail)
    with pytest.raises(BackupError, match="the disk is full"):
        back_up(tmp_path / "one.tar.gz")
    assert {one.name for one in tmp_path.iterdir()} == {"files"}


@pytest.mark.once
def test_a_backup_contains_the_current_files_and_folders_but_no_links(
    workshop: Workshop, take: Take, files: Path
) -> None:
    pk = workshop.organization.pk
    write(pk, "kept.txt", b"kept")
    write(pk, "gone.txt", b"gone")
    (files / str(pk) / "empty").mkdir()
    delete_files(pk, ("gone.txt",), lambda _: None)
    (files / str(pk) / "link").symlink_to("/etc/hostname")
    manifest = take()
    assert [name for name in manifest.members if name.startswith("files/")] == [
        f"files/{pk}/kept.txt"
    ]
    assert manifest.folders == [f"{pk}/empty"]


@pytest.mark.once
def test_writers_of_files_wait_while_a_backup_blocks_changes(workshop: Workshop) -> None:
    pk, written = workshop.organization.pk, threading.Event()
    write(pk, "first.txt", b"1")

    def write_second() -> None:
        write(pk, "second.txt", b"2")
        written.set()

    with blocking_changes():
        thread = threading.Thread(target=write_second)
        thread.start()
        assert not written.wait(0.1)
    thread.join(10)
    assert written.is_set()


def test_files_that_change_while_they_are_copied_are_copied_again(
    workshop: Workshop,
    take: Take,
    put_back: Callable[[], object],
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pk = workshop.organization.pk
    for name in ("changed.txt", "gone.txt"):
        write(pk, name, b"before")
    os.utime(files / str(pk) / "changed.txt", (0, 0))

    def arrive_late() -> AbstractContextManager[None]:
        write(pk, "changed.txt", b"after!")
        write(pk, "new.txt", b"new")
        delete_files(pk, ("gone.txt",), lambda _: None)
        return blocking_changes()

    store = replace(FILE_STORE.get(), blocking_changes=arrive_late)
    monkeypatch.setattr(FILE_STORE, "get", lambda: store)
    take()
    put_back()
    held = {path.name: path.read_bytes() for path in (files / str(pk)).iterdir()}
    assert held == {"changed.txt": b"after!", "new.txt": b"new"}


def test_a_backup_contains_every_file_that_its_database_names_despite_writers(
    workshop: Workshop, files: Path, tmp_path: Path
) -> None:
    """A writer repeatedly creates a file, names it in the database, then removes both."""
    stop, pk = threading.Event(), workshop.organization.pk
    write(pk, "steady.txt", b"steady")

    def write_and_name() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            write(pk, f"{number}.txt", str(number).encode())
            record = workshop.record(name=f"file {number}.txt")
            if number % 2:
                record.delete()
                delete_files(pk, (f"{number}.txt",), lambda _: None)

    with beside(write_and_name):
        try:
            backups = [back_up(tmp_path / f"{number}.tar.gz") for number in range(4)]
        finally:
            stop.set()
    assert all(f"files/{pk}/steady.txt" in manifest.members for manifest in backups)
    for number in range(4):
        restore(tmp_path / f"{number}.tar.gz", force=True)
        named = set(Record.objects.filter(name__startswith="file ").values_list("name", flat=True))
        held = {f"file {one.name}" for one in (files / str(pk)).iterdir()}
        assert named <= held
