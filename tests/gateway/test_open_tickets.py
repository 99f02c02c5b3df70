"""The number of tickets that a key may have open at a time."""

from __future__ import annotations

import pytest

from agents.gateway import requests
from agents.gateway.asks import AskedRequest, submit
from agents.gateway.models import AgentKey
from agents.gateway.requests import ToolRequest, record_request
from agents.gateway.sessions import find_or_create_session
from agents.platform.refusals import Conflict
from agents.runs.engine.timing import MAX_OPEN_TICKETS
from agents.runs.models import CallStatus, ToolCall
from tests.gateway.conftest import make_key
from tests.gateway.test_requests import EFFECT, request
from tests.workshop import Workshop


@pytest.fixture(autouse=True)
def two_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_OPEN_TICKETS == 100
    monkeypatch.setattr(requests, "MAX_OPEN_TICKETS", 2)


def open_one(key: AgentKey, name: str) -> ToolCall:
    """Request a write in its own session."""
    return record_request(
        key, find_or_create_session(key, f"{key.pk} {name}"), ToolRequest(EFFECT, {"name": name})
    )


def test_the_limit_spans_all_sessions_of_a_key(workshop: Workshop, key: AgentKey) -> None:
    first, _ = (open_one(key, name) for name in "ab")
    with pytest.raises(Conflict, match="2 open tickets"):
        open_one(key, "c")
    assert request(key, EFFECT, name="a") == first, "an open ticket is returned all the same"


def test_tickets_of_other_keys_do_not_count(workshop: Workshop, key: AgentKey) -> None:
    for name in "ab":
        open_one(make_key(workshop, name="Server"), name)
    assert open_one(key, "c").status == CallStatus.AWAITING_APPROVAL


def test_decided_tickets_do_not_count(workshop: Workshop, key: AgentKey) -> None:
    for name in "ab":
        workshop.deny(workshop.card(open_one(key, name).run))
    assert open_one(key, "c").status == CallStatus.AWAITING_APPROVAL


def test_asks_of_the_key_are_counted_separately(workshop: Workshop, key: AgentKey) -> None:
    for action in ("deploy", "publish"):
        submit(key, AskedRequest(action, {}, "write"))
    assert open_one(key, "a").status == CallStatus.AWAITING_APPROVAL
