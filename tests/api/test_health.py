"""GET /api/health and /api/ready need no login. The latter lists unavailable parts of the
installation, and returns 503 only if the database is unavailable."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest
import redis
from django.conf import settings
from django.db import connection
from django.test import Client

from agents.api import health
from agents.platform import writability
from agents.platform.liveness import SWEEPER, WORKER, SignOfLife
from tests.world import problem


@pytest.fixture
def unreachable_database() -> Iterator[None]:
    """Close the database connection, and let new connections go to an unreachable address."""
    connection.close()
    known = dict(connection.settings_dict)
    if connection.vendor == "sqlite":
        connection.settings_dict["NAME"] = "/nowhere/gadget.sqlite3"
    else:
        cast("Any", connection).close_pool()
        connection.settings_dict.update(HOST="127.0.0.1", PORT="1", OPTIONS={"connect_timeout": 1})
    yield
    connection.close()
    connection.settings_dict.clear()
    connection.settings_dict.update(known)


def test_health_does_not_query_the_database() -> None:
    response = Client().get("/api/health")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_health_supports_the_head_method() -> None:
    assert Client().head("/api/health").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_ready_reports_an_unreachable_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
    response = Client().get("/api/ready")
    told = {"status": "ready", "degraded": ["redis"], "workers_alive": None, "workers_seen": None}
    assert (response.status_code, response.json()) == (200, told)


@pytest.mark.django_db(transaction=True)
def test_a_hanging_files_folder_is_not_reported_as_a_database_failure(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    responses = threading.Event()
    hanging = writability.BackgroundCheck(lambda: str(responses.wait(30)), fallback="no answer")
    monkeypatch.setattr(health, "FILES", hanging)
    response = Client().get("/api/ready")
    responses.set()
    assert (response.status_code, response.json()["degraded"]) == (200, [WORKER, SWEEPER, "files"])


def test_hanging_checks_occupy_only_a_few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writability, "RESTART_AFTER_S", 0.0)
    responses, asked = threading.Event(), list[int]()

    def ask() -> bool:
        asked.append(1)
        return responses.wait(30)

    watch = writability.BackgroundCheck(ask, fallback=False)
    for _ in range(20):
        watch.start()
        time.sleep(0.001)
    assert len(asked) == writability.MAX_HANGING
    responses.set()
    while not watch.read():
        time.sleep(0.01)


@pytest.mark.django_db(transaction=True)
def test_ready_lists_parts_without_a_sign_of_life(redis_url: str) -> None:
    assert Client().get("/api/ready").json()["degraded"] == [WORKER, SWEEPER]
    pulse = SignOfLife(WORKER, "worker-of-this-test")
    pulse.start()
    try:
        degraded = [WORKER, SWEEPER]
        while degraded != [SWEEPER]:
            degraded = Client().get("/api/ready").json()["degraded"]
    finally:
        pulse.stop()


@pytest.mark.django_db(transaction=True)
def test_ready_counts_the_running_and_the_missing_workers(redis_url: str) -> None:
    here, left, lost = (
        SignOfLife(WORKER, f"{name}-of-this-test") for name in ("here", "left", "lost")
    )
    for pulse in (here, left):
        pulse.start()
    left.stop()
    kill(lost, redis_url)
    try:
        told = Client().get("/api/ready").json()
    finally:
        here.stop()
        lost.stop()
    assert (told["workers_alive"], told["workers_seen"]) == (1, 2)


@pytest.mark.django_db(transaction=True)
def test_replacements_of_killed_workers_are_counted_instead_of_them(redis_url: str) -> None:
    lost = [SignOfLife(WORKER, f"lost{number}-of-this-test") for number in (1, 2)]
    for pulse in lost:
        kill(pulse, redis_url)
    anew = [SignOfLife(WORKER, f"new{number}-of-this-test") for number in (1, 2)]
    for pulse in anew:
        pulse.start()
    try:
        told = Client().get("/api/ready").json()
    finally:
        for pulse in (*lost, *anew):
            pulse.stop()
    assert (told["workers_alive"], told["workers_seen"]) == (2, 2)


def kill(pulse: SignOfLife, redis_url: str) -> None:
    """Leave the traces of a process that was killed ten seconds ago: its own record exists, but its
    sign of life is missing."""
    pulse.start()
    pulse._stopped.set()
    with redis.Redis.from_url(redis_url) as client:
        client.delete(f"{settings.GADGET_QUEUE}:alive:{pulse.kind}:{pulse.name}")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("unreachable_database")
def test_ready_fails_without_the_database_and_health_does_not() -> None:
    response = Client().get("/api/ready")
    assert problem(response, 503)["code"] == "database_away"
    assert response["Retry-After"]
    assert Client().get("/api/health").status_code == 200
