"""Take a backup while everything runs: the files and the database as of the same moment.

Most files are copied first. Then all writers of files wait while the database's snapshot is opened
and files that have changed since are copied. So every file that the database names is in the
archive, and writers wait only briefly.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from cryptography.fernet import Fernet
from django.conf import settings
from django.db import connection

from agents.platform import key_rotation
from agents.platform.schema_version import list_unknown_migrations
from gadget_site.backup import postgresql, sqlite
from gadget_site.backup.archive import (
    DATABASE,
    FILES,
    MANIFEST,
    README,
    BackupError,
    Manifest,
    Writer,
    read_manifest,
)
from tools.contract import ToolError
from tools.registries.files import FILE_STORE, FolderEntry

CANARY = b"gadget"
README_TEXT = """\
A backup of Gadget, taken at {made_at}.

THIS ARCHIVE HOLDS NO KEYS. Keep SECRET_KEY, GADGET_ENCRYPTION_KEYS and GADGET_AUDIT_KEYS elsewhere:
without the last two it cannot be restored. It does hold everything else: passwords as hashes, and your
customers' data unencrypted. Keep it safe.

To restore it, with Gadget stopped on every machine:  python manage.py restore FILE
"""
_RECENT_NS = 2_000_000_000
"""The number of nanoseconds within which a file may change twice without getting a new modification
time. A file that changed less than this long before it was copied is copied again."""


def back_up(path: Path, *, force: bool = False) -> Manifest:
    """Write a backup to `path`, completely or not at all, and read it back to verify it.

    Raises:
        BackupError: `path` exists and `force` is not given, the archive cannot be written or
            verified, or a newer version migrated the database.
    """
    _check_target(path, force)
    if newer := list_unknown_migrations():
        raise BackupError(
            f"A newer version of Gadget migrated the database ({newer[0]}). Take the backup with that version."
        )
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as work:
            temporary = Path(work) / "draft"
            _write(temporary, Path(work))
            manifest = read_manifest(temporary)
            _move_into_place(temporary, path, force)
    except (OSError, ToolError) as error:
        raise BackupError(f"No backup was taken: {error}") from error
    return manifest


def _check_target(path: Path, force: bool) -> None:
    if path.exists() and not force:
        raise BackupError(
            f"{path} already exists. Choose another name, or replace it with --force."
        )
    if not path.parent.is_dir():
        raise BackupError(f"There is no folder {path.parent}.")
    if path.resolve().is_relative_to(Path(settings.GADGET_FILES_DIR).resolve()):
        raise BackupError(
            f"{path} would be among the files that employees read. Choose another folder."
        )


def _write(temporary: Path, work: Path) -> None:
    with ExitStack() as stack:
        writer = stack.enter_context(Writer(temporary))
        made_at = datetime.now(UTC).isoformat(timespec="seconds")
        writer.add_text(README, README_TEXT.format(made_at=made_at))
        files = _FileCopier(writer)
        files.copy()
        with FILE_STORE.get().blocking_changes():
            snapshot = stack.enter_context(
                (sqlite if connection.vendor == "sqlite" else postgresql).snapshot()
            )
            files.copy()
        dumped = work / DATABASE
        dumped.mkdir()
        snapshot.dump(dumped)
        for one in sorted(dumped.iterdir()):
            with one.open("rb") as source:
                writer.add(f"{DATABASE}/{one.name}", source, one.stat().st_size)
        others = {
            name: member
            for name, member in writer.members.items()
            if not name.startswith(f"{FILES}/")
        }
        manifest = Manifest(
            made_at=made_at,
            database=connection.vendor,
            migrations=snapshot.migrations,
            columns=snapshot.columns,
            sequences=snapshot.sequences,
            members=others | {name: writer.members[name] for name in files.names},
            folders=files.folders,
            canaries=_encrypt_canaries(),
            heads=snapshot.heads,
        )
        writer.add_text(MANIFEST, json.dumps(manifest.sign().model_dump(mode="json"), indent=1))


class _FileCopier:
    """Copies files into the archive; a second `copy` takes only new and changed files.

    Attributes:
        names: the archive members of the files that the last `copy` found.
        folders: the folders that the last `copy` found.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._copied: dict[str, tuple[int, int]] = {}
        self.names: list[str] = []
        self.folders: list[str] = []

    def copy(self) -> None:
        self.names, self.folders = [], []
        for organization_id, entry in FILE_STORE.get().list_all_entries():
            path = f"{organization_id}/{entry.path}"
            if entry.is_folder:
                self.folders.append(path)
            elif self._is_copied(path, entry) or self._copy_file(organization_id, path, entry):
                self.names.append(f"{FILES}/{path}")

    def _is_copied(self, path: str, entry: FolderEntry) -> bool:
        return self._copied.get(path) == (entry.size, entry.changed_ns)

    def _copy_file(self, organization_id: int, path: str, entry: FolderEntry) -> bool:
        """Copy the file; return False if it no longer exists."""
        copied_ns = time.time_ns()
        try:
            source = FILE_STORE.get().open_file(organization_id, entry.names)
        except ToolError:
            return False
        with source:
            status = os.fstat(source.fileno())
            self._writer.add(f"{FILES}/{path}", source, status.st_size, status.st_mtime_ns)
        if entry.changed_ns < copied_ns - _RECENT_NS:
            self._copied[path] = (entry.size, entry.changed_ns)
        return True


def _encrypt_canaries() -> list[str]:
    keys = settings.GADGET_ENCRYPTION_KEYS
    used = keys if key_rotation.survey_keys().outdated else keys[:1]
    return [Fernet(key).encrypt(CANARY).decode() for key in used]


def _move_into_place(temporary: Path, path: Path, force: bool) -> None:
    """Give the finished archive its name; without `force`, do so only if no file has that name."""
    if force:
        temporary.replace(path)
    else:
        try:
            os.link(temporary, path)
        except FileExistsError as error:
            raise BackupError(f"{path} already exists.") from error
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
