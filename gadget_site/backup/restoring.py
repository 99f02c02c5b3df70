"""Restore a backup: check everything before changing anything, and keep everything stopped until
people allow it to start."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import redis
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import CommandError
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader

from agents.accounts.models import Organization
from agents.platform.liveness import SIGN_TTL_S, SWEEPER, WORKER, list_alive
from agents.platform.schema_version import is_released
from agents.restores.lines import read_newer_limits
from gadget_site.backup import postgresql, restored, sqlite
from gadget_site.backup.archive import (
    DATABASE,
    FILES,
    BackupError,
    Manifest,
    extract,
    read_manifest,
)
from tools.registries.files import FILE_STORE, RESERVED


@dataclass(frozen=True)
class RestoredBackup:
    """A restored backup, and the counts from `restored.settle`."""

    manifest: Manifest
    counts: Mapping[str, int]


def restore(path: Path, *, force: bool = False) -> RestoredBackup:
    """Replace the database and the files with the backup's, and stop everything.

    An interrupted restore can be repeated with `force`. Once the database is in place, everything
    is stopped.

    Raises:
        BackupError: the backup cannot be restored here; database and files are unchanged.
    """
    manifest = read_manifest(path)
    backend = sqlite if connection.vendor == "sqlite" else postgresql
    _refuse_incompatible(path, manifest)
    if not force:
        _refuse_to_overwrite()
    _refuse_while_alive()
    backend.refuse_while_used()
    files = Path(settings.GADGET_FILES_DIR)
    files.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix=f"{RESERVED}restore-", dir=files) as staged,
        tempfile.TemporaryDirectory(prefix="restore-", dir=settings.GADGET_DATA_DIR) as work,
    ):
        extract(path, manifest, DATABASE, Path(work))
        extract(path, manifest, FILES, Path(staged))
        for folder in manifest.folders:
            (Path(staged) / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        os.sync()
        try:
            backend.load(Path(work), manifest, read_newer_limits())
        except (DatabaseError, CommandError) as error:
            raise BackupError(
                f"{path} could not be restored, and the database is unchanged: {error}"
            ) from error
        _replace_files(files, Path(staged))
    return RestoredBackup(manifest, restored.settle(manifest.made_at, has_lines=True))


def _refuse_while_alive() -> None:
    """Raise BackupError if a worker or sweeper shows signs of life in Redis, even if it has no
    database connection."""
    try:
        alive = [*list_alive(WORKER), *list_alive(SWEEPER)]
    except redis.RedisError:
        return
    if alive:
        names = ", ".join(alive)
        raise BackupError(
            f"Gadget is still running: {names}. Stop it everywhere, and wait {SIGN_TTL_S} s."
        )


def _refuse_incompatible(path: Path, manifest: Manifest) -> None:
    if manifest.database != connection.vendor:
        raise BackupError(
            f"{path} is a backup of {manifest.database}, and DATABASE_URL names {connection.vendor}. "
            f"Restore it on {manifest.database}."
        )
    if not is_released(manifest.migrations):
        raise BackupError(f"{path} is from before Gadget's first release and cannot be restored.")
    known = MigrationLoader(None).disk_migrations
    if newer := [f"{app}.{name}" for app, name in manifest.migrations if (app, name) not in known]:
        raise BackupError(
            f"{path} is from a newer version of Gadget: {newer[0]} is unknown. Install that version."
        )
    cipher = MultiFernet([Fernet(key) for key in settings.GADGET_ENCRYPTION_KEYS])
    for canary in manifest.canaries:
        try:
            cipher.decrypt(canary.encode())
        except InvalidToken as error:
            raise BackupError(
                f"The credentials in {path} are encrypted with a key that GADGET_ENCRYPTION_KEYS does not hold. "
                "Add the key from the time of the backup."
            ) from error


def _refuse_to_overwrite() -> None:
    tables = set(connection.introspection.table_names())
    is_filled = any(
        model._meta.db_table in tables and model.objects.exists() for model in (Organization, User)
    )
    if is_filled or next(FILE_STORE.get().list_all_entries(), None) is not None:
        raise BackupError(
            "This installation already holds data. --force replaces all of it, database and files."
        )


def _replace_files(files: Path, staged: Path) -> None:
    """Replace the contents of the files folder one by one, because that folder itself may be a
    mount."""
    with tempfile.TemporaryDirectory(prefix=f"{RESERVED}replaced-", dir=files) as replaced:
        for organization_id in FILE_STORE.get().list_organizations():
            (files / str(organization_id)).rename(Path(replaced) / str(organization_id))
        for folder in sorted(staged.iterdir()):
            folder.rename(files / folder.name)
        os.sync()
