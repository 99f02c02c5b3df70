"""A restore of a database in which every table has rows and every foreign key is used, and of an
archive of the first release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from agents.accounts.models import Membership, Organization
from agents.runs import stops
from agents.runs.models import Run, RunStatus
from agents.worker.sweeper import sweep_once
from gadget_site.backup.archive import Manifest, read_manifest
from gadget_site.backup.restored import STOPPED_BY
from gadget_site.backup.restoring import RestoredBackup, restore
from tests.audit_chain import verify_audits
from tests.features import feature
from tests.first_release.frozen import FOLDER
from tests.frozen_rows import freeze_ended_rows, thaw_ended_rows
from tests.gadget_site.backups.confirmed import confirm_all
from tests.gadget_site.backups.filling import fill_every_table
from tests.gadget_site.backups.places import count_rows, empty_database, restore_in_process, rows
from tests.workshop import Workshop, build_workshop
from tools.office.records.models import Record

SETTLED = {
    *(
        "accounts_organization",
        "accounts_audithead",
        "accounts_auditentry",
        "accounts_invitation",
        "accounts_apitoken",
    ),
    *(
        "accounts_passwordreset",
        "approvals_approval",
        "gateway_agentkey",
        "notices_delivery",
        "notices_notice",
    ),
    *(
        "platform_installation",
        "runs_event",
        "runs_run",
        "runs_toolcall",
        "schedules_schedule",
        "triggers_trigger",
    ),
    *(
        "approval_rules_deputy",
        "approvals_claim",
        "approvals_vote",
        "gateway_signingkey",
        "restores_restoredlimit",
    ),
    *(
        "standing_grants_standinggrant",
        "webhooks_webhook",
        "webhooks_webhookdelivery",
        "django_session",
    ),
    *("accounts_organizationevent", "readers_readercursor"),
}
"""The tables in which a restore changes rows."""
EMPTIED = {"approvals_claim", "django_session"}


@pytest.fixture
def filled(transactional_db: None, files: Path) -> Workshop:
    """An organization with rows in every table."""
    workshop = build_workshop()
    fill_every_table(workshop)
    return workshop


@pytest.fixture
def replaced_tables(filled: Workshop) -> Iterator[Workshop]:
    """Return `filled` for a restore that recreates every table; afterwards, create the triggers of
    the tests again."""
    yield filled
    thaw_ended_rows()
    freeze_ended_rows()


def release_archive(vendor: str = "") -> Path:
    return FOLDER / f"backup-{vendor or connection.vendor}.tar.gz"


def list_tables(manifest: Manifest) -> set[str]:
    """List the tables of the version that made the archive."""
    nodes = [node for node in manifest.migrations if node in MigrationLoader(None).disk_migrations]
    models = MigrationLoader(None).project_state(nodes).models.items()
    return {state.options.get("db_table") or "_".join(name) for name, state in models}


def test_every_row_is_restored_into_a_migrated_database(
    filled: Workshop, take: Callable[[], Manifest], put_back: Callable[[], RestoredBackup]
) -> None:
    before = rows()
    take()
    Record.objects.update(name="changed since")
    filled.submit()
    put_back()
    after = rows()
    for table in before.keys() - SETTLED:
        assert after[table] == before[table], table
    for table in SETTLED - EMPTIED:
        assert len(after[table]) >= len(before[table]) > 0, table


@feature(
    "Agents elsewhere",
    "A database with rows in every table is restored into an empty database and a "
    "migrated one, and from the first release",
    "gadget_site/backup/postgresql.py",
)
def test_every_row_is_restored_into_an_empty_database(
    filled: Workshop, take: Callable[[], Manifest], tmp_path: Path
) -> None:
    take()
    expected = {table: len(content) for table, content in rows().items()}
    with empty_database(tmp_path) as url:
        restore_in_process(tmp_path, url, tmp_path / "backup.tar.gz")
        found = count_rows(url, expected)
    for table in expected.keys() - SETTLED:
        assert found[table] == expected[table], table
    for table in SETTLED - EMPTIED:
        assert found[table] >= expected[table] > 0, table


class TestAnArchiveOfTheFirstRelease:
    def test_is_restored_into_a_migrated_database_and_work_continues(
        self, replaced_tables: Workshop
    ) -> None:
        Organization.objects.update(name="made later")
        restore(release_archive(), force=True)
        found = rows()
        for table in list_tables(read_manifest(release_archive())) - EMPTIED:
            assert found[table], table
        organization = Organization.objects.get()
        assert (organization.name, organization.stopped_by) == ("Acme", STOPPED_BY)
        assert verify_audits() == {organization.slug: []}
        assert not Run.objects.filter(status=RunStatus.RUNNING).exists()

    def test_is_restored_into_an_empty_database(
        self, transactional_db: None, tmp_path: Path
    ) -> None:
        tables = list_tables(read_manifest(release_archive())) - EMPTIED
        with empty_database(tmp_path) as url:
            told = restore_in_process(tmp_path, url, release_archive())
            assert all(count_rows(url, tables).values())
        assert "EVERYTHING IS STOPPED" in told

    def test_is_refused_by_the_other_kind_of_database(self, filled: Workshop) -> None:
        other = {"sqlite": "postgresql", "postgresql": "sqlite"}[connection.vendor]
        with pytest.raises(
            CommandError,
            match=f"is a backup of {other}, and DATABASE_URL names {connection.vendor}",
        ):
            call_command("restore", str(release_archive(other)), force=True)
        assert not Organization.objects.exclude(restored_at=None).exists()


def test_runs_of_a_restored_organization_continue_when_the_stop_is_lifted(
    filled: Workshop, take: Callable[[], Manifest], put_back: Callable[[], RestoredBackup]
) -> None:
    take()
    put_back()
    confirm_all(Membership.objects.get(pk=filled.admin.pk))
    stops.release_everything(Membership.objects.get(pk=filled.admin.pk))
    sweep_once()
    assert not Run.objects.exclude(stopped_because="").exists()


def test_every_migration_can_be_part_of_a_restore() -> None:
    """A restore on PostgreSQL is one transaction, so every migration must be able to run inside a
    transaction."""
    migrations = MigrationLoader(None).disk_migrations
    assert [key for key, migration in migrations.items() if not migration.atomic] == []
