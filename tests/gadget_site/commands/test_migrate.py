"""`manage.py migrate` on a database from before the first release."""

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_database_from_before_the_first_release_is_refused_unchanged() -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_applied("agents", "0001_initial")
    before = recorder.applied_migrations().keys(), connection.introspection.table_names()
    try:
        with pytest.raises(CommandError, match="before Gadget's first release"):
            call_command("migrate", verbosity=0)
        assert (recorder.applied_migrations().keys(), connection.introspection.table_names()) == before
    finally:
        recorder.record_unapplied("agents", "0001_initial")


def test_a_database_of_this_version_is_up_to_date() -> None:
    call_command("migrate", verbosity=0)
    assert "agents" not in {app for app, _ in MigrationRecorder(connection).applied_migrations()}
