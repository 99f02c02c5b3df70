"""`manage.py migrate` on a database from before the first release, and on a database of this
version."""

from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from agents.platform.schema_version import FIRST_MIGRATION
from gadget_site.management.installation_checks import check_schema_version

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def unreleased() -> Iterator[None]:
    """A database that was migrated by a version before the first release."""
    recorder, old = MigrationRecorder(connection), ("platform", "0001_initial")
    recorder.record_unapplied(*FIRST_MIGRATION)
    recorder.record_applied(*old)
    yield
    recorder.record_unapplied(*old)
    recorder.record_applied(*FIRST_MIGRATION)


def read_state() -> tuple[set[tuple[str, str]], list[str]]:
    """Read the applied migrations and the tables."""
    return set(
        MigrationRecorder(connection).applied_migrations()
    ), connection.introspection.table_names()


def test_a_database_from_before_the_first_release_is_refused_unchanged(unreleased: None) -> None:
    before = read_state()
    with pytest.raises(
        CommandError,
        match=r"before Gadget's first release .* Choose another .* Nothing was changed",
    ):
        call_command("migrate", verbosity=0)
    assert read_state() == before


def test_the_doctor_names_the_fix_for_a_database_from_before_the_first_release(
    unreleased: None,
) -> None:
    (finding,) = check_schema_version()
    assert not finding.is_well
    assert finding.fix == "choose another GADGET_DATA_DIR or DATABASE_URL"


def test_a_database_whose_first_migration_was_interrupted_is_accepted() -> None:
    MigrationRecorder(connection).record_unapplied(*FIRST_MIGRATION)
    try:
        assert list(check_schema_version()) == []
    finally:
        MigrationRecorder(connection).record_applied(*FIRST_MIGRATION)


def test_migrating_a_database_of_this_version_changes_nothing() -> None:
    before = read_state()
    call_command("migrate", verbosity=0)
    assert read_state() == before
