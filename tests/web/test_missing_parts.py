"""Every page says if Redis, the workers or the sweeper is not running."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.test import Client

from agents.platform.liveness import SWEEPER, WORKER, SignOfLife
from agents.web.views import pages
from tests.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.once]


@pytest.fixture
def pulses(redis_url: str) -> Iterator[dict[str, SignOfLife]]:
    running = {part: SignOfLife(part, f"{part}-of-this-test") for part in (WORKER, SWEEPER)}
    for pulse in running.values():
        pulse.start()
    yield running
    for pulse in running.values():
        pulse.stop()


def list_notices(world: World) -> list[str]:
    page = world.client("viewer").get("/runs/").content.decode()
    sentences = (
        "Redis is unavailable",
        "No worker is running",
        "The sweeper is not running",
        "workers are running",
    )
    return [each for each in sentences if each in page]


def test_no_notice_is_shown_while_all_parts_run(
    world: World, pulses: dict[str, SignOfLife]
) -> None:
    assert list_notices(world) == []


@pytest.mark.parametrize(
    ("part", "sentence"),
    [(WORKER, "No worker is running"), (SWEEPER, "The sweeper is not running")],
)
def test_a_missing_part_is_reported(
    world: World, pulses: dict[str, SignOfLife], part: str, sentence: str
) -> None:
    pulses[part].stop()
    assert list_notices(world) == [sentence]


def test_an_unavailable_redis_is_reported(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
    assert list_notices(world) == ["Redis is unavailable"]


def test_no_page_waits_for_an_unresponsive_redis(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(settings, "REDIS_URL", f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        began = time.monotonic()
        pages.PRESENCE.read()
        assert time.monotonic() - began < 10
        assert list_notices(world) == ["Redis is unavailable"]


def test_the_result_of_the_check_is_cached_for_some_seconds(
    world: World, pulses: dict[str, SignOfLife]
) -> None:
    assert list_notices(world) == []
    pulses[WORKER].stop()
    assert list_notices(world) == []


def test_the_login_page_does_not_report_missing_parts(redis_url: str) -> None:
    assert "No worker is running" not in Client().get("/login/").content.decode()
