"""Each alarm that the docs recommend fires in its own outage, and only then."""

from __future__ import annotations

import operator
import re
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from agents.accounts.models import OrganizationEvent
from agents.accounts.notice_facts import NoticeFact, NoticeKind, tell
from agents.insight import metrics
from agents.insight.models import FiguresHead
from agents.platform.liveness import SWEEPER, WORKER, SignOfLife
from agents.readers.reading import read_logs
from agents.runs.models import Run, RunStatus
from tests.http import get
from tests.processes import Installation
from tests.silent_proxy import SilentProxy
from tests.web.counted import sweep_at
from tests.world import World, make_world

DOCS = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
ALARMS = re.findall(r"`([^`]+)`", DOCS.read_text().partition("Conditions worth an alarm: ")[2])
DATABASE, QUEUE, SWEEP, WORKERS, UNKNOWN, UNREAD = ALARMS
CONDITION = re.compile(r'(\w+)(?:\{(\w+)="(\w+)"\})? (==|>) (\d+)')
COMPARISONS = {"==": operator.eq, ">": operator.gt}
NOWHERE = "redis://127.0.0.1:1/0"
BOUND_S = 3.0
"""The limit for a response: two seconds, plus the request itself on a busy machine."""


@pytest.fixture
def world(db: None, redis_url: str) -> Iterator[World]:
    """A healthy installation."""
    signs = [SignOfLife(WORKER, "worker1@tests"), SignOfLife(SWEEPER, "sweeper@tests")]
    for sign in signs:
        sign.start()
    made = make_world()
    sweep_at(timezone.now())
    yield made
    for sign in signs:
        sign.stop()


def list_firing(text: str) -> list[str]:
    """Evaluate all documented alarms as Prometheus does: an alarm whose metric is missing never
    fires."""
    samples = [
        sample for family in text_string_to_metric_families(text) for sample in family.samples
    ]
    firing = []
    for alarm in ALARMS:
        name, label, value, comparison, number = CONDITION.fullmatch(alarm).groups()  # type: ignore[union-attr]
        values = [
            each.value
            for each in samples
            if each.name == name and (not label or each.labels[label] == value)
        ]
        if any(COMPARISONS[comparison](each, float(number)) for each in values):
            firing.append(alarm)
    return firing


def delay_queued_run(world: World, settings: Settings) -> None:
    Run.objects.filter(pk=world.run(RunStatus.QUEUED).pk).update(
        next_wake_at=Now() - timedelta(minutes=2)
    )


def delay_sweep(world: World, settings: Settings) -> None:
    FiguresHead.objects.update(looked_at=Now() - timedelta(minutes=2))


def lose_redis(world: World, settings: Settings) -> None:
    settings.REDIS_URL = NOWHERE


def lose_outcome(world: World, settings: Settings) -> None:
    world.unknown_call()


def delay_reading(world: World, settings: Settings) -> None:
    tell(NoticeFact(NoticeKind.STOPPED, world.acme.pk, "everything"))
    OrganizationEvent.objects.update(created_at=Now() - timedelta(minutes=2))


def test_no_alarm_fires_in_a_healthy_installation(world: World) -> None:
    assert list_firing(metrics.render_metrics().decode()) == []


@pytest.mark.parametrize(
    ("alarm", "break_it"),
    [
        (QUEUE, delay_queued_run),
        (SWEEP, delay_sweep),
        (WORKERS, lose_redis),
        (UNKNOWN, lose_outcome),
        (UNREAD, delay_reading),
    ],
)
def test_each_alarm_fires_in_its_outage_and_no_other_does(
    world: World, settings: Settings, alarm: str, break_it: Callable[[World, Settings], None]
) -> None:
    break_it(world, settings)
    assert list_firing(metrics.render_metrics().decode()) == [alarm]
    while read_logs():
        pass
    assert UNREAD not in list_firing(metrics.render_metrics().decode())


def test_the_alarm_for_the_sweeper_fires_if_no_sweeper_has_ever_run(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "_STARTED_AT", time.monotonic() - 120)
    assert SWEEP in list_firing(metrics.render_metrics().decode())


@pytest.mark.django_db(transaction=True)
def test_the_alarm_for_a_silent_database_fires_within_two_seconds(
    installation: Installation,
) -> None:
    if connection.vendor == "sqlite":  # the file of SQLite cannot fall silent
        return
    proxy = SilentProxy()
    installation.variables = {"DATABASE_URL": proxy.database_url}
    installation.start_web()
    assert DATABASE not in list_firing(get(f"{installation.url}/metrics").body.decode())
    proxy.silence()
    try:
        # Let the cached response expire, as it does between two polls of Prometheus.
        time.sleep(metrics.CACHED_S)
        began = time.monotonic()
        answer = get(f"{installation.url}/metrics")
        assert time.monotonic() - began < BOUND_S
        assert DATABASE in list_firing(answer.body.decode())
    finally:
        proxy.resume()
        proxy.close()
