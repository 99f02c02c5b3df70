"""Fixtures for tests of triggers: a trigger that the workshop's operator created, messages like
those from GitHub, and the engine's fixtures."""

from __future__ import annotations

import hmac
import json
from typing import Any

import pytest

from agents.runs.models import Run
from agents.triggers.changes import TriggerTerms, make_trigger
from agents.triggers.models import Trigger
from agents.triggers.receiving import receive
from tests.workshop import Workshop
from tests.workshop.fixtures import (  # noqa: F401
    _django_db_helper,
    commits_do_not_wait_for_the_disk,
    conversation_cache_is_checked,
    model,
    recorder,
    toolbox,
    workshop,
)

DOWN = {"action": "opened", "title": "Shop is down"}
SECRET = "It's a Secret to Everybody"


def add_trigger(workshop: Workshop, **terms: Any) -> Trigger:  # noqa: F811
    """Add a trigger for messages from GitHub, in the operator's name."""
    defaults = {
        "name": "Issues",
        "scheme": "github",
        "task": "Triage {{ payload.title }}.",
        "secret": SECRET,
    }
    chosen = TriggerTerms(employee_id=workshop.employee.pk, **{**defaults, **terms})
    return make_trigger(workshop.operator, chosen)[0]


def sign(body: bytes, delivery: str = "", secret: str = SECRET) -> dict[str, str]:
    """Return the headers with which GitHub sends this body."""
    headers = {
        "x-hub-signature-256": f"sha256={hmac.digest(secret.encode(), body, 'sha256').hex()}"
    }
    return {**headers, "x-github-delivery": delivery} if delivery else headers


def send(trigger: Trigger, payload: Any, delivery: str = "") -> Run | None:
    """Send a correctly signed message; return its run, or None if it starts none."""
    body = json.dumps(payload).encode()
    return receive(trigger.public_id, sign(body, delivery), body).run


@pytest.fixture
def trigger(workshop: Workshop) -> Trigger:  # noqa: F811
    """Return a trigger for messages from GitHub."""
    return add_trigger(workshop)
