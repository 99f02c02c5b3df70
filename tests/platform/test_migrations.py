"""The migrations create exactly the tables of the models, with their constraints."""

from __future__ import annotations

from inspect import getclosurevars

import pytest
from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.migration import Migration
from django.db.migrations.operations import (
    DeleteModel,
    RemoveField,
    RenameField,
    RenameModel,
    RunPython,
)

from agents.platform.schema_version import SCHEMA_VERSION

REMOVING = (DeleteModel, RemoveField, RenameField, RenameModel)


def list_required_versions(migration: Migration) -> list[int]:
    """List the schema versions that the migration requires of code."""
    codes = [
        operation.code for operation in migration.operations if isinstance(operation, RunPython)
    ]
    variables = [getclosurevars(code).nonlocals for code in codes]
    return [each["version"] for each in variables if {"version", "gadget"} <= each.keys()]


@pytest.mark.django_db
def test_no_migration_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("makemigrations", check=True, dry_run=True)
    assert "No changes detected" in capsys.readouterr().out


def test_removing_a_column_or_table_requires_a_schema_version() -> None:
    found = MigrationLoader(None).disk_migrations.values()
    own = [
        migration for migration in found if migration.__module__.startswith(("agents.", "tools."))
    ]
    removing = [
        each
        for each in own
        if any(isinstance(operation, REMOVING) for operation in each.operations)
    ]
    assert [each.name for each in removing if not list_required_versions(each)] == []
    assert (
        max(version for each in own for version in list_required_versions(each)) == SCHEMA_VERSION
    )
