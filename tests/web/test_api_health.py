"""GET /api/health and /api/ready need no login; ready names what is away, and is 503 only without the database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client

from agents.liveness import SWEEPER, WORKER, Pulse
from tests.web.world import problem


@pytest.fixture
def unreachable_database() -> Iterator[None]:
    """A database whose connection is cut and whose address leads nowhere."""
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


def test_health_asks_nothing_of_the_database() -> None:
    answer = Client().get("/api/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_health_answers_head() -> None:
    assert Client().head("/api/health").status_code == 200


@pytest.mark.django_db
def test_ready_names_redis_when_it_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
    answer = Client().get("/api/ready")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "degraded": ["redis"]})


@pytest.mark.django_db
def test_ready_names_the_parts_without_a_sign_of_life(redis_url: str) -> None:
    assert Client().get("/api/ready").json()["degraded"] == [WORKER, SWEEPER]
    pulse = Pulse(WORKER, "worker-of-this-test")
    pulse.start()
    try:
        degraded = [WORKER, SWEEPER]
        while degraded != [SWEEPER]:
            degraded = Client().get("/api/ready").json()["degraded"]
    finally:
        pulse.stop()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("unreachable_database")
def test_without_the_database_nothing_is_ready() -> None:
    answer = Client().get("/api/ready")
    assert problem(answer, 503)["code"] == "database_away"
    assert answer["Retry-After"]
    assert Client().get("/api/health").status_code == 200
