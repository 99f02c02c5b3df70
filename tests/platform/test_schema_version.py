"""Older code does not use, migrate or back up a database that newer code migrated, unless the newer
code allows it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from agents.accounts import installation
from agents.platform.models import OldestSchema
from agents.platform.schema_version import SCHEMA_VERSION, require_schema
from gadget_site.backup.archive import BackupError
from gadget_site.backup.taking import back_up
from gadget_site.management.installation_checks import check_schema_version
from tests.features import feature
from tests.processes import current_database_url

pytestmark = pytest.mark.django_db(transaction=True)
NEXT = SCHEMA_VERSION + 1
BOTH_VERSIONS = (
    rf"This is Gadget {settings.GADGET_VERSION} with schema version {SCHEMA_VERSION}, but the database needs Gadget "
    rf"9\.1 or later, with schema version {NEXT}\."
)


@pytest.fixture
def newer_migration() -> Iterator[str]:
    """Record as applied a migration that only newer code has, and yield its name."""
    recorder = MigrationRecorder(connection)
    recorder.record_applied("runs", "9999_of_the_next_version")
    yield "runs.9999_of_the_next_version"
    recorder.record_unapplied("runs", "9999_of_the_next_version")


@pytest.fixture
def ended_support(newer_migration: str) -> None:
    """Apply a migration that ends the support for this code."""
    models = MigrationLoader(connection).project_state().apps
    require_schema(NEXT, "9.1").code(models, connection.schema_editor())


@feature(
    "Agents elsewhere",
    "Older code refuses a database that needs newer code",
    "agents/platform/schema_version.py",
)
def test_no_part_starts_on_a_database_that_needs_newer_code(ended_support: None) -> None:
    with pytest.raises(installation.WrongInstallationError, match=BOTH_VERSIONS):
        installation.confirm()


def test_a_process_that_must_not_start_ends_with_one_sentence(
    ended_support: None, tmp_path: Path
) -> None:
    environment = {
        **os.environ,
        "GADGET_TESTS_GIVEN": "1",
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DATABASE_URL": current_database_url(),
        "GADGET_DATA_DIR": str(tmp_path),
    }
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "sweep"]
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert ended.returncode == 1
    assert f"Gadget cannot start. This is Gadget {settings.GADGET_VERSION}" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_migrate_refuses_newer_databases_and_names_both_versions(ended_support: None) -> None:
    with pytest.raises(CommandError, match=f"{BOTH_VERSIONS} .* Nothing was changed"):
        call_command("migrate", verbosity=0)


def test_the_doctor_names_both_versions(ended_support: None) -> None:
    (finding,) = check_schema_version()
    assert not finding.is_well
    assert f"schema version {SCHEMA_VERSION}, but the database needs Gadget 9.1" in finding.text


def test_unknown_migrations_without_a_version_row_are_refused(newer_migration: str) -> None:
    OldestSchema.objects.all().delete()
    with pytest.raises(installation.WrongInstallationError, match=f"{newer_migration} is unknown"):
        installation.confirm()
    with pytest.raises(CommandError, match=f"{newer_migration} is unknown"):
        call_command("migrate", verbosity=0)
    (finding,) = check_schema_version()
    assert not finding.is_well


def test_the_preceding_version_runs_beside_migrations_that_only_add(newer_migration: str) -> None:
    OldestSchema.objects.update_or_create(
        pk=1, defaults={"oldest": SCHEMA_VERSION, "gadget": "0.1.0"}
    )
    installation.confirm()
    call_command("migrate", verbosity=0, stdout=StringIO())
    (finding,) = check_schema_version()
    assert finding.is_well
    assert newer_migration in finding.text


def test_a_backup_by_older_code_is_refused_because_it_would_lack_tables(
    newer_migration: str, tmp_path: Path
) -> None:
    OldestSchema.objects.update_or_create(
        pk=1, defaults={"oldest": SCHEMA_VERSION, "gadget": "0.1.0"}
    )
    with pytest.raises(
        BackupError, match=f"A newer version of Gadget migrated the database .{newer_migration}"
    ):
        back_up(tmp_path / "one.tar.gz")
    assert not list(tmp_path.iterdir())


def test_a_database_of_this_version_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "GADGET_FILES_DIR", tmp_path)
    installation.confirm()
    assert list(check_schema_version()) == []
