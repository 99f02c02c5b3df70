"""Fixtures for backups of a workshop with its own files, and for restoring them."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from pytest_django import Settings

from gadget_site.backup.archive import Manifest
from gadget_site.backup.restoring import RestoredBackup, restore
from gadget_site.backup.taking import back_up
from tests.workshop import Workshop, build_workshop
from tests.workshop.fixtures import recorder  # noqa: F401
from tests.workshop.invariants import assert_invariants


@pytest.fixture(autouse=True)
def _no_other_connection_is_open() -> None:
    """Close all SQLite connections that threads of earlier tests still hold, because a restore
    needs exclusive use of the database."""
    for one in gc.get_objects():
        if (
            issubclass(type(one), BaseDatabaseWrapper)
            and one.connection is not None
            and one.vendor == "sqlite"
        ):
            one.connection.close()
            one.connection = None


@pytest.fixture
def files(tmp_path: Path, settings: Settings) -> Path:
    """The folder of all organizations' files."""
    settings.GADGET_FILES_DIR = tmp_path / "files"
    settings.GADGET_FILES_DIR.mkdir()
    return tmp_path / "files"


@pytest.fixture
def workshop(transactional_db: None, files: Path) -> Iterator[Workshop]:
    """A working organization; the invariants must hold after the test."""
    yield build_workshop()
    assert_invariants()


@pytest.fixture
def take(tmp_path: Path) -> Callable[[], Manifest]:
    """A function that takes the backup `backup.tar.gz`."""
    return lambda: back_up(tmp_path / "backup.tar.gz", force=True)


@pytest.fixture
def put_back(tmp_path: Path) -> Callable[[], RestoredBackup]:
    """A function that restores the backup `backup.tar.gz` over the existing data."""
    return lambda: restore(tmp_path / "backup.tar.gz", force=True)
