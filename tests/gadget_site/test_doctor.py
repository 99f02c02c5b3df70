"""The doctor reports each problem with its fix, and exits with 1 if it finds any."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
import redis
from cryptography.fernet import Fernet
from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings

from agents.accounts import audit
from agents.accounts.models import Organization
from agents.accounts.notice_facts import NoticeKind
from agents.employees.models import ModelProvider, ProviderKind
from agents.notices.models import Channel, ChannelKind, Delivery
from agents.notices.outbox import add_notice, build_card_notice
from agents.notices.spreading import spread_notices
from agents.platform import signatures
from agents.platform.liveness import SWEEPER, WORKER, SignOfLife, list_alive, load_presence
from gadget_site.management.address_checks import check_addresses
from gadget_site.management.host_checks import check_key_files
from gadget_site.management.installation_checks import (
    check_audit,
    check_capacity,
    check_database,
    check_installation,
    check_providers,
    check_settings,
    check_slots,
)
from gadget_site.management.notice_checks import check_notices
from tests.mail_server import MailServer
from tests.notices.conftest import add_address
from tests.processes import current_database_url
from tests.world import make_world
from tools.config import read_config

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def pulses(redis_url: str) -> Iterator[list[SignOfLife]]:
    """Send signs of life as a worker and a sweeper do, until the test ends."""
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        # Remove signs of life from earlier tests.
        client.delete(*client.keys(f"{settings.GADGET_QUEUE}:alive:*"), "no key")
    running = [SignOfLife(WORKER, "worker1@tests"), SignOfLife(SWEEPER, "sweeper@tests")]
    for pulse in running:
        pulse.start()
    yield running
    for pulse in running:
        pulse.stop()


def test_every_check_passes_except_the_check_of_the_missing_provider(
    pulses: list[SignOfLife],
) -> None:
    code, findings = examined()
    assert code == 1
    wrong = [finding for finding in findings if not finding["is_well"]]
    assert [finding["subject"] for finding in wrong] == ["provider"]
    assert "python manage.py demo" not in wrong[0]["fix"], "DEBUG is off"
    subjects = {finding["subject"] for finding in findings}
    assert subjects == {
        "settings",
        "addresses",
        "folder",
        "identity",
        "accounts",
        "database",
        "redis",
        "worker",
        "sweeper",
        "encryption",
        "notices",
        "audit",
        "provider",
        "plugins",
        "tools",
    }


def test_a_missing_worker_and_a_missing_sweeper_are_reported(redis_url: str) -> None:
    _, findings = examined()
    missed = {finding["subject"]: finding for finding in findings if not finding["is_well"]}
    assert missed["worker"]["text"] == "no worker is running"
    assert "make run" in missed["worker"]["fix"]
    assert missed["sweeper"]["text"] == "no sweeper is running"


def test_an_installation_with_its_own_redis_is_not_advised_to_use_make_run(
    redis_url: str, settings: Settings
) -> None:
    settings.REDIS_IS_EMBEDDED = False
    _, findings = examined()
    missed = {finding["subject"]: finding for finding in findings if not finding["is_well"]}
    assert missed["worker"]["fix"].endswith("celery --app gadget_site.celery worker --pool threads")
    assert "make run" not in missed["worker"]["fix"] + missed["sweeper"]["fix"]


@pytest.fixture
def vanished(pulses: list[SignOfLife]) -> Iterator[None]:
    """A second worker that ended unexpectedly."""
    lost = SignOfLife(WORKER, "worker2@tests")
    lost.start()
    lost._stopped.set()
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.delete(f"{settings.GADGET_QUEUE}:alive:worker:worker2@tests")
    yield
    lost.stop()


@pytest.mark.usefixtures("vanished")
def test_a_vanished_worker_is_reported() -> None:
    assert list_worker_findings() == [
        "1 running: worker1@tests",
        "1 of 2 workers vanished in the last ten minutes",
    ]


@pytest.mark.usefixtures("vanished")
def test_a_replaced_worker_is_not_reported() -> None:
    replacement = SignOfLife(WORKER, "worker3@tests")
    replacement.start()
    try:
        assert list_worker_findings() == ["2 running: worker1@tests, worker3@tests"]
        presence = load_presence()
    finally:
        replacement.stop()
    assert (presence.workers_alive, presence.workers_seen) == (2, 2)


def list_worker_findings() -> list[str]:
    _, findings = examined()
    return [finding["text"] for finding in findings if finding["subject"] == "worker"]


def test_redis_is_queried_once_for_workers_and_sweepers(pulses: list[SignOfLife]) -> None:
    with redis.Redis.from_url(settings.REDIS_URL) as client:

        def count_scans() -> int:
            stats: dict[str, dict[str, int]] = client.info("commandstats")
            return stats["cmdstat_scan"]["calls"]

        list_alive(WORKER)
        start = count_scans()
        list_alive(WORKER)
        list_alive(SWEEPER)
        once = count_scans()
        examined()
        assert count_scans() - once == once - start


def test_too_many_connections_of_all_processes_together_are_reported(
    pulses: list[SignOfLife], settings: Settings
) -> None:
    """Only PostgreSQL limits connections; on SQLite there is nothing to report."""
    for workers, is_well in ((1, True), (64, False)):
        settings.GADGET_WORKERS = workers
        found = list(check_capacity(load_presence()))[:1]
        assert [finding.is_well for finding in found] == (
            [is_well] if connection.vendor == "postgresql" else []
        )
        for finding in found:
            assert finding.text.startswith(
                f"{workers + 2} processes * 24 connections (DATABASE_POOL)"
            )


def test_the_demo_is_recommended_only_with_debug(settings: Settings) -> None:
    settings.DEBUG = True
    (finding,) = check_providers()
    assert finding.fix == "add one at /admin/, or run `python manage.py demo`"
    settings.DEBUG = False
    (finding,) = check_providers()
    assert finding.fix == "add one at /admin/"


@pytest.mark.parametrize(
    ("origins", "hosts", "proxies", "problems"),
    [
        ([], ["localhost"], (), []),
        (["https://gadget.example.com"], [".example.com"], ("127.0.0.1",), []),
        (["https://gadget.example.com:8443"], ["*"], ("127.0.0.1",), []),
        (["http://localhost:8000"], ["localhost"], (), []),
        (
            ["https://gadget.example.com"],
            ["gadget.example.org"],
            ("127.0.0.1",),
            ["is not in ALLOWED_HOSTS"],
        ),
        (["http://gadget.example.com"], ["gadget.example.com"], (), ["is not encrypted"]),
        (["https://gadget.example.com"], ["gadget.example.com"], (), ["no proxy is trusted"]),
    ],
)
def test_inconsistent_addresses_are_reported(
    settings: Settings,
    origins: list[str],
    hosts: list[str],
    proxies: tuple[str, ...],
    problems: list[str],
) -> None:
    settings.ALLOWED_ORIGINS, settings.ALLOWED_HOSTS, settings.GADGET_TRUSTED_PROXIES = (
        origins,
        hosts,
        proxies,
    )
    settings.GADGET_ORIGIN = origins[0] if origins and origins[0].startswith("https") else ""
    found = [finding for finding in check_addresses() if not finding.is_well]
    assert len(found) == len(problems)
    for finding, problem in zip(found, problems, strict=True):
        assert problem in finding.text
        assert any(each == finding for each in check_installation())


def test_a_key_file_that_others_can_read_is_reported(settings: Settings, tmp_path: Path) -> None:
    settings.BASE_DIR, file = tmp_path, tmp_path / ".env"
    file.write_text("SECRET_KEY=...")
    file.chmod(0o600)
    assert not list(check_key_files())
    file.chmod(0o644)
    (finding,) = check_key_files()
    assert f"anyone on this machine can read {str(file)!r}" in finding.text
    assert finding.fix == f"chmod o= {file}"
    assert any(each == finding for each in check_installation())


def test_an_error_of_postgresql_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor == "sqlite":
        return
    presence, pool = load_presence(), cast("Any", connection)
    connection.close()
    pool.close_pool()
    with monkeypatch.context() as patched:
        patched.setitem(connection.settings_dict, "NAME", "there-is-no-such-database")
        (finding,) = [each for each in [*check_database(presence)] if not each.is_well]
        pool.close_pool()
    assert 'database "there-is-no-such-database" does not exist' in finding.text


def test_used_connections_are_compared_with_postgresqls_connection_slots() -> None:
    """Only PostgreSQL has connection slots, so on SQLite there is nothing to test."""
    if connection.vendor == "sqlite":
        return
    with psycopg.connect(current_database_url(), application_name="gadget"):
        enough = check_slots(10_000, 10_000)
        assert enough.is_well
        assert " of 10000 connection slots are used" in enough.text
        few = check_slots(1, 10_000)
        assert not few.is_well
        assert "raise PostgreSQL's max_connections" in few.fix
        dead = check_slots(10_000, 0)
        assert not dead.is_well
        assert "whose processes can hold at most 0: the other connections are dead" in dead.text


def test_an_unreachable_redis_is_reported_and_other_checks_still_run(settings: Settings) -> None:
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    _, findings = examined()
    missed = {finding["subject"]: finding for finding in findings if not finding["is_well"]}
    assert "cannot be reached" in missed["redis"]["text"]
    assert missed["redis"]["fix"]
    assert "worker" not in missed


def test_an_unset_variable_is_reported_with_its_service(settings: Settings) -> None:
    settings.GADGET_CONFIG = read_config("services: {github: {token: '${NOBODY}'}}", {})
    (_, finding) = check_settings()
    assert (
        finding.text == "the credentials of github in gadget.yaml are not used: NOBODY is not set"
    )
    assert not finding.is_well


def test_a_missing_audit_key_is_reported(settings: Settings) -> None:
    organization = Organization.objects.create(name="Acme", slug="acme")
    with transaction.atomic():
        audit.append(organization.pk, [audit.NewEntry("user:me", "did", "thing")])
    key_id, settings.GADGET_AUDIT_KEYS = (
        signatures.get_current_key_id(),
        [Fernet.generate_key().decode()],
    )
    finding = check_audit()
    assert not finding.is_well
    assert f"the key {key_id}, which GADGET_AUDIT_KEYS does not hold" in finding.text


def test_an_unreachable_provider_is_reported_without_its_key(pulses: list[SignOfLife]) -> None:
    organization = Organization.objects.create(name="Acme", slug="acme")
    ModelProvider.objects.create(
        organization=organization,
        name="Nowhere",
        kind=ProviderKind.OPENAI,
        base_url="http://127.0.0.1:9/v1",
        api_key="a-key-nobody-may-see",
    )
    output = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("doctor", stdout=output)
    assert ended.value.code == 1
    assert "WRONG  provider: acme/Nowhere: unreachable" in output.getvalue()
    assert "to fix it: check its address, key and model at /admin/" in output.getvalue()
    assert "a-key-nobody-may-see" not in output.getvalue()


def examined() -> tuple[object, list[dict[str, str]]]:
    """Return the doctor's exit code and findings."""
    output = io.StringIO()
    code: object = 0
    try:
        call_command("doctor", "--json", stdout=output)
    except SystemExit as ended:
        code = ended.code
    return code, json.loads(output.getvalue())


def test_an_unreachable_mail_server_is_reported(settings: Settings) -> None:
    with MailServer() as mail:
        mail.use_in(settings)
        assert [finding.text for finding in check_notices()] == [
            f"the mail server 127.0.0.1:{mail.port} responds"
        ]
    (finding,) = check_notices()
    assert (
        finding.text
        == f"127.0.0.1:{mail.port}: the mail server is not available: ConnectionRefusedError"
    )
    assert finding.fix == "check MAIL_URL"


def test_a_failing_address_is_reported_with_its_member() -> None:
    member = make_world().member("approver")
    add_address(member)
    Channel.objects.update(failing_since=timezone.now(), problem="the mail server responded: 550")
    _, finding = check_notices()
    assert (
        finding.text
        == "notifications to acme/approver by E-mail fail: the mail server responded: 550"
    )


def test_a_contact_that_push_services_refuse_is_reported(settings: Settings) -> None:
    settings.ALLOWED_ORIGINS, settings.DEFAULT_FROM_EMAIL = [], "gadget@localhost"
    add_address(make_world().member("approver"))
    assert len(list(check_notices())) == 1, "control: nobody uses browser notifications"
    Channel.objects.update(kind=ChannelKind.PUSH)
    _, finding = check_notices()
    assert finding.text.startswith("push services refuse notifications without a contact")
    settings.ALLOWED_ORIGINS = ["https://gadget.example.com"]
    assert len(list(check_notices())) == 1


def test_overdue_notices_are_counted() -> None:
    world = make_world()
    add_address(world.member("approver"))
    add_notice(build_card_notice(NoticeKind.CARD, world.card()))
    spread_notices()
    Delivery.objects.update(due_at=timezone.now() - timedelta(minutes=11))
    _, finding = check_notices()
    assert finding.text == "1 notification has waited for over 10 minutes"
