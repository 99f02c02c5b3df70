"""Check that this code is not too old for the database: older code would misread the data that
newer migrations wrote.

A migration that removes or changes something calls `require_schema`, which stores the oldest schema
version that may still run. Migrations that only add something do not call it, so that the preceding
version can run beside this one during a rolling update.
"""

import functools
from collections.abc import Container, Set

from django.conf import settings
from django.db import connection, migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import StateApps

from agents.platform.models import OldestSchema

SCHEMA_VERSION = 2
"""The schema version of this code; it grows with each migration that uses `require_schema`."""
ONLY_ROW_ID = 1
FIRST_MIGRATION = ("platform", "0001_first_release")
"""A migration that every database since the first release has; earlier databases have migrations
with other names."""
NEWER_FIX = "Install that version or a later one here."
UNRELEASED_FIX = "Choose another GADGET_DATA_DIR or DATABASE_URL."
MIGRATE_FIX = "python manage.py migrate"


class WrongSchemaError(Exception):
    """This code may not run on the database, because the database was migrated by a newer version,
    or by a version from before the first release.

    Attributes:
        fault, fix: sentences for people; the exception's text consists of both.
    """

    def __init__(self, fault: str, fix: str) -> None:
        super().__init__(f"{fault} {fix}")
        self.fault, self.fix = fault, fix


class NotMigratedError(Exception):
    """The database lacks tables or columns that this code uses; the text says how to add them."""


def require_schema(version: int, gadget: str) -> migrations.RunPython:
    """Return a migration operation after which only code with this schema version or a later one
    may run.

    Args:
        gadget: the first version of Gadget that may run, for people.
    """

    def write(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
        row = {"oldest": version, "gadget": gadget}
        apps.get_model("platform", "OldestSchema").objects.update_or_create(
            pk=ONLY_ROW_ID, defaults=row
        )

    return migrations.RunPython(write, migrations.RunPython.noop)


def check_schema() -> None:
    """Check that this code may run on the database in its current state. An empty database is
    accepted.

    Raises:
        WrongSchemaError: the text names both versions and says how to fix it.
    """
    unknown = list_unknown_migrations()
    if unknown and not is_released(MigrationRecorder(connection).applied_migrations()):
        raise WrongSchemaError(
            "This data is from before Gadget's first release and cannot be upgraded.",
            UNRELEASED_FIX,
        )
    ours = f"This is Gadget {settings.GADGET_VERSION} with schema version {SCHEMA_VERSION}"
    row = OldestSchema.objects.first() if _has_table() else None
    if row is not None and row.oldest > SCHEMA_VERSION:
        needed = (
            f"the database needs Gadget {row.gadget} or later, with schema version {row.oldest}"
        )
        raise WrongSchemaError(f"{ours}, but {needed}.", NEWER_FIX)
    if row is None and unknown:
        fault = f"another version migrated the database ({unknown[0]} is unknown) and allows no older code"
        raise WrongSchemaError(f"{ours}, but {fault}.", NEWER_FIX)


def is_released(applied: Container[tuple[str, str]]) -> bool:
    """Return True if the applied migrations include the first migration of the first release."""
    return FIRST_MIGRATION in applied


def list_unknown_migrations() -> list[str]:
    """List the applied migrations that this code does not have, as `app.name`."""
    return _name(MigrationRecorder(connection).applied_migrations().keys() - _list_own_migrations())


def check_migrated() -> None:
    """Check that every migration of this code is applied.

    Raises:
        NotMigratedError: the text names the first missing migration and the command to run.
    """
    applied = MigrationRecorder(connection).applied_migrations()
    missing = _name(_list_own_migrations() - applied.keys())
    if missing and not applied:
        raise NotMigratedError(f"The database is empty. Run: {MIGRATE_FIX}")
    if missing:
        count = "1 migration is" if len(missing) == 1 else f"{len(missing)} migrations are"
        raise NotMigratedError(f"{count} not applied ({missing[0]}). Run: {MIGRATE_FIX}")


@functools.cache
def _list_own_migrations() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None).disk_migrations)


def _name(migrations_of_apps: Set[tuple[str, str]]) -> list[str]:
    return sorted(f"{app}.{name}" for app, name in migrations_of_apps)


def _has_table() -> bool:
    with connection.cursor() as cursor:
        return OldestSchema._meta.db_table in connection.introspection.table_names(cursor)
