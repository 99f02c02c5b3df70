"""A part that finds the files folder or the keys of another installation reports this and does not
start."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
import redis
from cryptography.fernet import Fernet
from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction
from pytest_django import Settings

from agents.accounts import audit, installation
from agents.accounts.models import AuditEntry, Organization
from agents.platform.models import Installation as InstallationRow
from gadget_site.management.processes import (
    build_sweeper_process,
    build_web_process,
    build_worker_process,
)
from tests.gadget_site.test_doctor import examined
from tests.processes import Installation

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def files(settings: Settings, tmp_path: Path) -> Path:
    """An empty files folder."""
    settings.GADGET_FILES_DIR = tmp_path / "files"
    return tmp_path / "files"


def new_key() -> str:
    return Fernet.generate_key().decode()


def refusal() -> str:
    """Return the reason that a part would give for refusing to start; empty if it would start."""
    try:
        installation.confirm()
    except installation.WrongInstallationError as error:
        return str(error)
    return ""


def test_the_first_start_records_the_installation_and_later_starts_do_not_change_it(
    files: Path,
) -> None:
    assert not refusal()
    folder_id = (files / installation.ID_FILE).read_text()
    assert InstallationRow.objects.get().folder_mark == folder_id
    assert not refusal()
    assert (files / installation.ID_FILE).read_text() == folder_id


def test_simultaneous_first_starts_agree_on_the_installation(files: Path) -> None:
    start, found = threading.Barrier(6), []

    def confirm() -> None:
        start.wait()
        try:
            found.append(refusal())
        finally:
            connection.close()

    threads = [threading.Thread(target=confirm) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [""] * 6


def test_a_folder_that_is_not_shared_is_refused_on_the_second_machine(
    files: Path, settings: Settings
) -> None:
    assert not refusal()
    settings.GADGET_FILES_DIR = files.parent / "elsewhere"
    assert "has no file .gadget-folder" in refusal()
    assert not (settings.GADGET_FILES_DIR / installation.ID_FILE).exists()


def test_the_folder_of_another_installation_is_refused(files: Path) -> None:
    assert not refusal()
    (files / installation.ID_FILE).write_text("0" * 32)
    assert "belongs to another installation or is not shared" in refusal()


def test_only_one_of_two_simultaneous_starts_succeeds_without_a_shared_folder(
    files: Path, settings: Settings
) -> None:
    settings.GADGET_FILES_DIR = files.parent / "elsewhere"
    installation._create_folder_id()  # the other machine gets this far …
    settings.GADGET_FILES_DIR = files
    assert not refusal()  # … before this machine finishes first
    settings.GADGET_FILES_DIR = files.parent / "elsewhere"
    assert "belongs to another installation" in refusal()


def test_a_new_database_does_not_accept_the_files_of_an_old_database(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "FIRST_START_S", 0.1)
    (files / "1").mkdir(parents=True)
    assert not refusal(), "a folder from before folder ids is adopted"
    InstallationRow.objects.all().delete()
    assert "holds the files of another database" in refusal()


def test_a_moved_or_adopted_folder_is_accepted(files: Path, settings: Settings) -> None:
    assert not refusal()
    settings.GADGET_FILES_DIR = shutil.copytree(files, files.parent / "moved")
    assert not refusal()
    settings.GADGET_FILES_DIR = files.parent / "new"
    assert refusal()
    call_command("adopt_folder", verbosity=0)
    assert not refusal()
    settings.GADGET_FILES_DIR = files
    assert refusal(), "the old folder no longer belongs to the installation"


def test_other_encryption_keys_are_refused(files: Path, settings: Settings) -> None:
    assert not refusal()
    settings.GADGET_ENCRYPTION_KEYS = [new_key()]
    assert "No key in GADGET_ENCRYPTION_KEYS can decrypt" in refusal()


def test_keys_can_be_rotated(files: Path, settings: Settings) -> None:
    assert not refusal()
    old, new = settings.GADGET_ENCRYPTION_KEYS[0], new_key()
    for keys in ([old, new], [new, old]):
        settings.GADGET_ENCRYPTION_KEYS = keys
        assert not refusal()
    call_command("rotate_keys", verbosity=0)
    settings.GADGET_ENCRYPTION_KEYS = [new]
    assert not refusal()
    settings.GADGET_ENCRYPTION_KEYS = [old]
    assert refusal()


def test_other_audit_keys_are_refused(files: Path, settings: Settings) -> None:
    assert not refusal()
    organization = Organization.objects.create(name="Acme", slug="acme")
    with transaction.atomic():
        audit.append(organization.pk, [audit.NewEntry("ann", "stopped", "everything")])
    assert AuditEntry.objects.count() == 1
    assert not refusal()
    settings.GADGET_AUDIT_KEYS = [new_key()]
    assert "No key in GADGET_AUDIT_KEYS signed" in refusal()


def test_a_process_starts_after_a_restore(files: Path) -> None:
    assert not refusal()
    call_command("after_restore", verbosity=0)
    assert not refusal()


@pytest.mark.usefixtures("redis_url")
def test_the_doctor_reports_another_folder_and_other_keys(files: Path, settings: Settings) -> None:
    assert not refusal()
    assert "belong to this database" in told_of("identity")
    settings.GADGET_ENCRYPTION_KEYS = [new_key()]
    settings.GADGET_FILES_DIR = files.parent / "elsewhere"
    assert "has no file .gadget-folder" in told_of("identity")
    assert "No key in GADGET_ENCRYPTION_KEYS" in told_of("identity")


@pytest.mark.usefixtures("redis_url")
def test_another_secret_key_is_reported_at_the_start_and_by_the_doctor(
    files: Path, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = settings.SECRET_KEY, "another-secret-key-" * 3
    assert not warnings_of_a_start(caplog)
    assert not warnings_of_a_start(caplog), "the same key"
    settings.SECRET_KEY = other
    assert installation.OTHER_SECRET_KEY in told_of("identity")
    assert warnings_of_a_start(caplog) == [
        f"{installation.OTHER_SECRET_KEY} {installation.FIX_SECRET_KEY}"
    ]
    assert installation.OTHER_SECRET_KEY not in told_of("identity"), "the newest start counts"
    assert not warnings_of_a_start(caplog)
    settings.SECRET_KEY = one
    assert installation.OTHER_SECRET_KEY in told_of("identity"), (
        "the first host, which was not restarted"
    )


def test_only_a_digest_of_the_secret_key_is_stored_and_it_differs_by_installation(
    files: Path, redis_url: str
) -> None:
    kept: list[dict[bytes, bytes | None]] = []
    for _ in range(2):
        InstallationRow.objects.all().delete()
        assert not refusal()
        assert not installation.record_secret_key()
        with redis.Redis.from_url(redis_url) as client:
            kept.append({key: client.get(key) for key in client.scan_iter(match="*:secret-key:*")})
    assert len(kept[1]) == len(kept[0]) + 1
    assert len(set(kept[1].values())) == len(kept[1]), (
        "one and the same key has another digest in each"
    )
    assert settings.SECRET_KEY not in str(kept)


def test_an_unreachable_redis_does_not_delay_a_start(files: Path, settings: Settings) -> None:
    assert not refusal()
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    assert not installation.record_secret_key()
    assert not installation.has_other_secret_key()


@pytest.mark.parametrize(
    "part",
    [build_web_process(), build_worker_process(1), build_sweeper_process()],
    ids=lambda part: part.name,
)
def test_no_part_starts_with_another_folder_or_other_keys(
    installation: Installation, files: Path, part: object
) -> None:
    assert not refusal()
    for fault, variables in (
        ("The files folder", {}),
        (
            "No key in GADGET_ENCRYPTION_KEYS",
            {"GADGET_DATA_DIR": str(files.parent), "GADGET_ENCRYPTION_KEYS": new_key()},
        ),
    ):
        installation.variables = variables
        process = installation.spawn(part)  # type: ignore[arg-type]
        process.await_line(f"Gadget cannot start. {fault}")
        assert process.wait_for_end() not in {0, None}
        assert "Traceback" not in process.output
        assert " ready" not in process.output


def told_of(subject: str) -> str:
    _, findings = examined()
    return "\n".join(finding["text"] for finding in findings if finding["subject"] == subject)


def warnings_of_a_start(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the warnings of a part that starts now."""
    caplog.clear()
    installation.confirm_at_start()
    return [
        record.getMessage() for record in caplog.records if record.name == installation.logger.name
    ]
