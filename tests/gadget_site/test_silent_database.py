"""The database stops responding: readiness reports it within two seconds, hanging requests end, and
everything recovers.

PostgreSQL is reached through a proxy that stops forwarding; SQLite has no link, so another process
holds its lock.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection

from agents.platform.writability import MAX_AGE_S
from gadget_site.addresses import DatabaseAddress
from gadget_site.backup import postgresql
from gadget_site.databases import build_database_settings
from tests.http import get
from tests.processes import Installation
from tests.silent_proxy import SilentProxy

BOUND_S = 2.0
HANGING = 40
"""More requests than the web part has extra threads and connections."""


@pytest.fixture
def proxy() -> Iterator[SilentProxy | None]:
    """The proxy to the database; None on SQLite."""
    running = None if connection.vendor == "sqlite" else SilentProxy()
    yield running
    if running is not None:
        running.close()


@contextmanager
def silent_database(proxy: SilentProxy | None) -> Iterator[None]:
    if proxy is not None:
        proxy.silence()
        yield
        proxy.resume()
        return
    with closing(
        sqlite3.connect(connection.settings_dict["NAME"], timeout=20, isolation_level=None)
    ) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        yield
        stranger.execute("ROLLBACK")


@pytest.mark.django_db(transaction=True)
def test_readiness_responds_in_limited_time_and_hanging_requests_do_not_block_others(
    installation: Installation, proxy: SilentProxy | None
) -> None:
    if proxy is not None:
        installation.variables = {"DATABASE_URL": proxy.database_url}
    installation.start_web()
    assert readiness(installation)[0] == 200
    hanging: list[threading.Thread] = []
    with silent_database(proxy):
        for _ in range(HANGING):
            hanging.append(
                threading.Thread(target=ask_for_employees, args=(installation,), daemon=True)
            )
            hanging[-1].start()
        responses: list[tuple[int, float]] = []
        while [status for status, _ in responses[-5:]] != [503] * 5:
            responses.append(readiness(installation))
            assert len(responses) < 20, responses
            time.sleep(MAX_AGE_S / 4)
        assert max(seconds for _, seconds in responses) < BOUND_S
        assert get(f"{installation.url}/api/health").status == 200
    began = time.monotonic()
    while readiness(installation)[0] != 200:
        assert time.monotonic() - began < 10, (
            "it takes too long to notice that the database is back"
        )
        time.sleep(0.05)
    for thread in hanging:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_stays_silent_beyond_its_timeout_is_closed() -> None:
    if connection.vendor == "sqlite":
        return
    connection.ensure_connection()
    raw = cast("Any", connection.connection)
    raw.response_timeout_s = 0.2
    with pytest.raises(OperationalError), connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(5)")
    assert raw.closed
    connection.close()


@pytest.mark.django_db(transaction=True)
def test_a_backup_and_a_migration_have_no_time_limit() -> None:
    if connection.vendor == "sqlite":
        return
    connection.ensure_connection()
    raw = cast("Any", connection.connection)
    with postgresql.snapshot():
        assert raw.response_timeout_s is None
    connection.close()
    call_command("migrate", verbosity=0)
    assert cast("Any", connection.connection).response_timeout_s is None
    connection.close()
    cast("Any", connection).close_pool()


@pytest.mark.once
def test_the_connection_options_detect_a_silently_cut_link_within_20_seconds(
    tmp_path: Path,
) -> None:
    options = build_database_settings(DatabaseAddress("postgresql", "gadget", host="db"), 24)[
        "OPTIONS"
    ]
    assert options["connect_timeout"] <= 5
    assert options["tcp_user_timeout"] <= 10_000
    assert options["keepalives"] == 1
    assert (
        options["keepalives_idle"] + options["keepalives_interval"] * options["keepalives_count"]
        <= 20
    )
    assert options["pool"]["timeout"] <= 10


@pytest.mark.django_db
def test_the_server_probes_silent_links_like_its_clients() -> None:
    if connection.vendor == "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, reset_val, source FROM pg_settings WHERE name LIKE 'tcp_%' ORDER BY name"
        )
        assert cursor.fetchall() == [
            ("tcp_keepalives_count", "2", "client"),
            ("tcp_keepalives_idle", "10", "client"),
            ("tcp_keepalives_interval", "5", "client"),
            ("tcp_user_timeout", "10000", "client"),
        ]


def readiness(installation: Installation) -> tuple[int, float]:
    """Return the status and the duration of the response."""
    began = time.monotonic()
    status = get(f"{installation.url}/api/ready").status
    return status, time.monotonic() - began


def ask_for_employees(installation: Installation) -> None:
    try:
        get(f"{installation.url}/api/employees", headers={"Authorization": "Bearer gadget_unknown"})
    except OSError:
        return
