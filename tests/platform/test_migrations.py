"""The migrations create exactly the tables and constraints of the models."""

from __future__ import annotations

from inspect import getclosurevars
from typing import Any

import pytest
from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.migration import Migration
from django.db.migrations.operations import (
    AddField,
    DeleteModel,
    RemoveField,
    RenameField,
    RenameModel,
    RunPython,
)
from django.db.models import NOT_PROVIDED, CharField, Field, ManyToManyField

from agents.platform.schema_version import SCHEMA_VERSION

REMOVING = (DeleteModel, RemoveField, RenameField, RenameModel)


def list_required_versions(migration: Migration) -> list[int]:
    """List the schema versions that the migration requires the code to have."""
    codes = [
        operation.code for operation in migration.operations if isinstance(operation, RunPython)
    ]
    variables = [getclosurevars(code).nonlocals for code in codes]
    return [each["version"] for each in variables if {"version", "gadget"} <= each.keys()]


@pytest.mark.django_db
def test_no_migration_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("makemigrations", check=True, dry_run=True)
    assert "No changes detected" in capsys.readouterr().out


def list_own_migrations() -> list[Migration]:
    found = MigrationLoader(None).disk_migrations.values()
    return [each for each in found if each.__module__.startswith(("agents.", "tools."))]


def may_be_left_out(field: Field[Any, Any]) -> bool:
    """Return True if the database fills in the column when older code inserts a row without it."""
    return isinstance(field, ManyToManyField) or field.null or field.db_default is not NOT_PROVIDED


def test_older_code_can_insert_rows_without_columns_that_later_migrations_added() -> None:
    added = [
        f"{migration}: {operation.model_name}.{operation.name}"
        for migration in list_own_migrations()
        if not migration.initial and not list_required_versions(migration)
        for operation in migration.operations
        if isinstance(operation, AddField) and not may_be_left_out(operation.field)
    ]
    assert added == [], "give it null=True or a db_default"
    assert not may_be_left_out(CharField(default="")), "control"
    assert may_be_left_out(CharField(db_default=""))


def test_removing_a_column_or_table_requires_a_schema_version() -> None:
    own = list_own_migrations()
    removing = [
        each
        for each in own
        if any(isinstance(operation, REMOVING) for operation in each.operations)
    ]
    assert [each.name for each in removing if not list_required_versions(each)] == []
    assert (
        max(version for each in own for version in list_required_versions(each)) == SCHEMA_VERSION
    )
