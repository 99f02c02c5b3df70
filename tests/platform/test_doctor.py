"""The doctor names what is wrong and how to mend it, and ends with 1 if anything is."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest
from django.core.management import call_command
from pytest_django import Settings

from agents.liveness import SWEEPER, WORKER, Pulse
from agents.models import ModelProvider, Organization, ProviderKind

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def pulses(redis_url: str) -> Iterator[list[Pulse]]:
    """A worker and a sweeper that leave signs of life."""
    running = [Pulse(WORKER, "worker1@tests"), Pulse(SWEEPER, "sweeper@tests")]
    for pulse in running:
        pulse.start()
    yield running
    for pulse in running:
        pulse.stop()


def test_a_sound_installation_is_well_part_by_part(pulses: list[Pulse]) -> None:
    code, findings = examined()
    assert code == 1
    wrong = [finding for finding in findings if not finding["is_well"]]
    assert [finding["subject"] for finding in wrong] == ["provider"]
    assert "python manage.py demo" in wrong[0]["mend"]
    subjects = {finding["subject"] for finding in findings}
    assert subjects == {"settings", "database", "redis", "worker", "sweeper", "encryption", "provider", "tools"}


def test_what_is_not_running_is_missed(redis_url: str) -> None:
    _, findings = examined()
    missed = {finding["subject"]: finding for finding in findings if not finding["is_well"]}
    assert missed["worker"]["text"] == "no worker is alive"
    assert "make run" in missed["worker"]["mend"]
    assert missed["sweeper"]["text"] == "no sweeper is alive"


def test_a_redis_that_is_away_is_named_and_nothing_hangs_on_it(settings: Settings) -> None:
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    _, findings = examined()
    missed = {finding["subject"]: finding for finding in findings if not finding["is_well"]}
    assert "cannot be reached" in missed["redis"]["text"]
    assert missed["redis"]["mend"]
    assert "worker" not in missed


def test_a_provider_that_cannot_be_reached_is_named_without_its_key(pulses: list[Pulse]) -> None:
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
    assert "to mend it: see its address, key and model at /admin/" in output.getvalue()
    assert "a-key-nobody-may-see" not in output.getvalue()


def examined() -> tuple[object, list[dict[str, str]]]:
    """The exit code and the findings."""
    output = io.StringIO()
    code: object = 0
    try:
        call_command("doctor", "--json", stdout=output)
    except SystemExit as ended:
        code = ended.code
    return code, json.loads(output.getvalue())
