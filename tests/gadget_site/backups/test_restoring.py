"""A restore brings back every row and file exactly, or is refused before it changes anything."""

from __future__ import annotations

import gzip
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from io import BytesIO
from pathlib import Path

import psycopg
import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client
from pytest_django import Settings

from agents.accounts import audit
from agents.accounts.models import Credential, Organization
from agents.employees.models import Employee
from agents.platform import key_rotation
from agents.platform.liveness import WORKER, SignOfLife
from agents.platform.schema_version import FIRST_MIGRATION
from agents.runs.models import RunStatus
from gadget_site.backup import archive, seal
from gadget_site.backup.archive import BackupError, Manifest, read_manifest
from gadget_site.backup.restoring import RestoredBackup
from gadget_site.backup.taking import back_up
from tests.gadget_site.backups.places import empty_database, restore_in_process, rows
from tests.processes import current_database_url
from tests.recorder import Recorder
from tests.workshop import Workshop, asking, call
from tools.office.files.changes import write_file
from tools.office.records.models import Record

Take = Callable[[], Manifest]
PutBack = Callable[[], RestoredBackup]
ODD = "ümlaut \\ \t \n \\N 'quoted' \u2028 😀 {\"a\": 1.50}"


def fill(workshop: Workshop) -> None:
    """Add rows of many types with fragile values, and a file."""
    workshop.record(name=ODD, notes=ODD, score=None)
    pk = workshop.organization.pk
    Organization.objects.filter(pk=pk).update(
        month_cost="12345678.9012", plan_features=[ODD, 1.1, None, 10**15]
    )
    Credential.objects.create(
        organization_id=pk, service="github", fields='{"token": "value of acme"}'
    )
    with transaction.atomic():
        audit.append(pk, [audit.NewEntry("user:me", "did", "thing", {"text": ODD, "number": 0.1})])
    write_file(pk, ("reports", "a ü.txt"), [ODD.encode()], lambda _: None)


TOLD = ("accounts_auditentry", "runs_event")
"""The tables to which a stop adds rows: an audit entry, and an event in each stopped run."""
SESSIONS = "django_session"
CHANGED = {
    *(
        "accounts_organization",
        "accounts_audithead",
        "runs_run",
        "notices_notice",
        "restores_restoredlimit",
    ),
    *(SESSIONS, "readers_readercursor", *TOLD),
}
"""The tables in which a restore changes rows."""


def test_every_row_and_file_is_restored_exactly(
    workshop: Workshop, take: Take, put_back: PutBack, files: Path, recorder: Recorder
) -> None:
    workshop.play(asking(call("probe.sleep", ms=0)))
    assert workshop.work().status == RunStatus.SUCCEEDED
    workshop.play(asking(call("probe.effect", name="a")))
    workshop.work()
    fill(workshop)
    Client().force_login(workshop.admin.user)
    os.utime(
        files / str(workshop.organization.pk) / "reports" / "a ü.txt",
        (changed := 1_600_000_000.5, changed),
    )
    before, manifest = rows(), take()
    Record.objects.all().delete()
    Employee.objects.update(name="Somebody else")
    workshop.submit()
    write_file(workshop.organization.pk, ("later.txt",), [b"later"], lambda _: None)
    put_back()
    after = rows()
    for table in before.keys() - CHANGED:
        assert after[table] == before[table], table
    assert before[SESSIONS]
    assert after[SESSIONS] == []
    assert after["runs_run"][0] == before["runs_run"][0]
    for table in TOLD:
        assert after[table][:-1] == before[table]
    own = files / str(workshop.organization.pk)
    assert sorted(path.relative_to(own).as_posix() for path in own.rglob("*")) == [
        "reports",
        "reports/a ü.txt",
    ]
    assert (own / "reports" / "a ü.txt").read_bytes() == ODD.encode()
    assert abs((own / "reports" / "a ü.txt").stat().st_mtime - changed) < 0.001
    assert [one.name for one in files.iterdir() if one.name.isdigit()] == [own.name]
    assert [audit.PrintedHead.parse(head).fault for head in manifest.heads] == [None]


def test_ids_assigned_before_the_backup_are_not_reused(
    workshop: Workshop, take: Take, put_back: PutBack
) -> None:
    last = workshop.record()
    last_id = last.pk
    last.delete()
    take()
    put_back()
    assert workshop.record().pk > last_id


def test_existing_data_is_not_overwritten_without_force(
    workshop: Workshop, take: Take, tmp_path: Path
) -> None:
    take()
    record = workshop.record()
    with pytest.raises(CommandError, match="--force replaces all of it"):
        call_command("restore", str(tmp_path / "backup.tar.gz"))
    assert Record.objects.get() == record


def test_restoring_is_refused_while_the_database_is_in_use(
    workshop: Workshop, take: Take, put_back: PutBack
) -> None:
    take()
    with other_connection(), pytest.raises(BackupError, match="Gadget is still running"):
        put_back()


@pytest.mark.once
def test_restoring_waits_for_a_process_that_is_closing_the_database(
    workshop: Workshop, take: Take, put_back: PutBack
) -> None:
    take()
    workshop.record()
    with ExitStack() as other:
        other.enter_context(other_connection())
        threading.Timer(0.5, other.close).start()
        put_back()
    assert not Record.objects.exists()


@pytest.mark.once
class TestARestore:
    """A refused restore changes nothing: rows created after the backup still exist."""

    @pytest.fixture
    def path(self, workshop: Workshop, take: Take, tmp_path: Path) -> Iterator[Path]:
        fill(workshop)
        take()
        workshop.record(name="made later")
        yield tmp_path / "backup.tar.gz"
        assert Record.objects.filter(name="made later").exists()
        assert not Organization.objects.exclude(restored_at=None).exists()

    def refusal(self, path: Path) -> str:
        with pytest.raises(CommandError) as refused:
            call_command("restore", str(path), force=True)
        return str(refused.value)

    def test_is_refused_for_an_archive_with_one_damaged_byte(self, path: Path) -> None:
        sound = path.read_bytes()
        content, damaged = gzip.decompress(sound), 0
        everywhere, checksum = (
            range(30, len(sound), len(sound) // 60),
            range(len(sound) - 8, len(sound)),
        )
        for at in (*everywhere, *checksum):
            data = bytearray(sound)
            data[at] ^= 0x55
            with suppress(OSError, EOFError, zlib.error):
                # The damage changed only the compression, not the content.
                if gzip.decompress(data) == content:
                    continue
            damaged += 1
            path.write_bytes(data)
            with pytest.raises(BackupError, match=str(path)):
                read_manifest(path)
        assert damaged > 50
        assert str(path) in self.refusal(path)

    def test_is_refused_for_an_archive_without_a_seal(self, path: Path) -> None:
        path.write_bytes(path.read_bytes()[seal.LENGTH :])
        assert "it has no seal" in self.refusal(path)

    def test_is_refused_for_an_archive_with_the_seal_of_another_archive(self, path: Path) -> None:
        one, other = path.read_bytes(), path.with_name("other.tar.gz")
        back_up(other)
        path.write_bytes(other.read_bytes()[: seal.LENGTH] + one[seal.LENGTH :])
        assert "its seal does not match" in self.refusal(path)

    def test_is_refused_for_half_an_archive(self, path: Path) -> None:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        assert str(path) in self.refusal(path)

    def test_is_refused_for_a_file_that_is_not_an_archive_or_does_not_exist(
        self, path: Path
    ) -> None:
        path.write_bytes(gzip.compress(b"something else" * 1000))
        assert str(path) in self.refusal(path)
        assert "There is no file" in self.refusal(path.with_name("nowhere"))

    def test_is_refused_for_contents_that_differ_from_the_manifest(self, path: Path) -> None:
        self.rewrite(
            path,
            lambda name, data: (
                data.replace(b"reports", b"REPORTS") if name == "README.txt" else data
            ),
        )
        self.rewrite(path, lambda name, data: data + b"!" if name.startswith("files/") else data)
        assert "was changed" in self.refusal(path)

    def test_is_refused_for_a_manifest_written_without_the_key(self, path: Path) -> None:
        self.rewrite(
            path,
            lambda name, data: (
                data.replace(b'"made_at": "2', b'"made_at": "3') if "man" in name else data
            ),
        )
        assert "its signature does not match" in self.refusal(path)

    def test_is_refused_without_the_encryption_key(self, path: Path, settings: Settings) -> None:
        settings.GADGET_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
        assert "a key that GADGET_ENCRYPTION_KEYS does not hold" in self.refusal(path)

    def test_is_refused_without_a_second_required_encryption_key(
        self, path: Path, settings: Settings
    ) -> None:
        old, new = settings.GADGET_ENCRYPTION_KEYS[0], Fernet.generate_key().decode()
        settings.GADGET_ENCRYPTION_KEYS = [new, old]
        back_up(path, force=True)
        settings.GADGET_ENCRYPTION_KEYS = [new]
        assert "a key that GADGET_ENCRYPTION_KEYS does not hold" in self.refusal(path)
        settings.GADGET_ENCRYPTION_KEYS = [new, old]
        key_rotation.rotate_keys()
        back_up(path, force=True)
        settings.GADGET_ENCRYPTION_KEYS = [old]
        assert "a key that GADGET_ENCRYPTION_KEYS does not hold" in self.refusal(path)

    def test_is_refused_without_the_audit_key(self, path: Path, settings: Settings) -> None:
        kept, settings.GADGET_AUDIT_KEYS = (
            settings.GADGET_AUDIT_KEYS,
            [Fernet.generate_key().decode()],
        )
        assert "which GADGET_AUDIT_KEYS does not hold" in self.refusal(path)
        settings.GADGET_AUDIT_KEYS = kept

    def test_is_refused_for_a_backup_from_a_newer_version(self, path: Path) -> None:
        manifest = read_manifest(path)
        self.resign(
            path,
            manifest.model_copy(update={"migrations": [*manifest.migrations, ("runs", "9999_x")]}),
        )
        assert "is from a newer version of Gadget: runs.9999_x" in self.refusal(path)

    def test_is_refused_for_a_backup_from_before_the_first_release(self, path: Path) -> None:
        manifest = read_manifest(path)
        old = [
            ("platform", "0001_initial") if one == FIRST_MIGRATION else one
            for one in manifest.migrations
        ]
        self.resign(path, manifest.model_copy(update={"migrations": old}))
        assert "is from before Gadget's first release and cannot be restored" in self.refusal(path)

    def test_is_refused_for_a_backup_of_another_kind_of_database(self, path: Path) -> None:
        other = {"sqlite": "postgresql", "postgresql": "sqlite"}[connection.vendor]
        self.resign(path, read_manifest(path).model_copy(update={"database": other}))
        assert f"is a backup of {other}" in self.refusal(path)

    def test_is_refused_while_a_part_of_gadget_is_running(self, path: Path, redis_url: str) -> None:
        pulse = SignOfLife(WORKER, "worker1@elsewhere")
        pulse.start()
        try:
            assert "Gadget is still running: worker1@elsewhere" in self.refusal(path)
        finally:
            pulse.stop()

    def resign(self, path: Path, manifest: Manifest) -> None:
        """Write the archive with a different manifest, as somebody who has the key could."""
        text = manifest.sign().model_dump_json().encode()
        self.rewrite(path, lambda name, data: text if name == archive.MANIFEST else data)

    def rewrite(self, path: Path, change: Callable[[str, bytes], bytes]) -> None:
        """Write the archive with other contents under a new seal."""
        with archive._read_members(path) as members:
            contents = [(one.name, change(one.name, source.read())) for one, source in members]
        path.unlink()
        with archive.Writer(path) as writer:
            for name, data in contents:
                writer.add(name, BytesIO(data), len(data))


def test_the_command_restores_into_a_fresh_installation(
    workshop: Workshop, take: Take, tmp_path: Path
) -> None:
    fill(workshop)
    take()
    with empty_database(tmp_path) as url:
        told = restore_in_process(tmp_path, url, tmp_path / "backup.tar.gz")
    lines = told.splitlines()
    assert "EVERYTHING IS STOPPED" in lines[-1]
    assert (tmp_path / "fresh" / "files" / str(workshop.organization.pk) / "reports").is_dir()
    assert "acme: the chain is intact" in told


@contextmanager
def other_connection() -> Iterator[None]:
    """Hold an idle connection, as another process of Gadget does."""
    if connection.vendor == "sqlite":
        with closing(
            sqlite3.connect(connection.settings_dict["NAME"], check_same_thread=False)
        ) as other:
            other.execute("SELECT 1 FROM sqlite_master").fetchall()
            yield
    else:
        with psycopg.connect(current_database_url(), application_name="gadget"):
            yield
