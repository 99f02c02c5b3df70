"""A request that waits for the decision of an ask holds no thread, and one key cannot fill the process with them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.api import ask_waiting
from agents.gateway.asks import AskedRequest, submit
from agents.gateway.keys import authenticate_key, issue_key
from agents.gateway.models import Ask
from agents.gateway.redemptions import load_state
from tests.workshop import Workshop, beside

PATIENCE_S = 20.0


@pytest.fixture
def secret(workshop: Workshop) -> str:
    return issue_key(workshop.operator, workshop.employee.pk, "Laptop", 30)[1]


def make_ask(secret: str) -> Ask:
    key = authenticate_key(secret)
    assert key is not None
    return submit(key, AskedRequest("deploy", {}, "write"))[0]


def ask_for(secret: str, asked: Ask, wait_s: str = "30", *, leaves: bool = False) -> list[str]:
    """Send a request that waits; return what arrived at Django."""
    scope = {
        "method": "GET",
        "path": f"/api/asks/{asked.pk}",
        "query_string": f"wait_s={wait_s}".encode(),
        "headers": [(b"authorization", f"Bearer {secret}".encode())],
    }

    arrived: list[Any] = []

    async def arrive(_scope: Any, receive: Any, _send: Any) -> None:
        arrived.append(await receive())

    async def run() -> None:
        left = [{"type": "http.request", "body": b""}]
        gone = asyncio.Event()
        if leaves:
            asyncio.get_running_loop().call_later(0.2, gone.set)

        async def receive() -> Any:
            if left:
                return left.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        await asyncio.wait_for(ask_waiting.AskWaiting(arrive)(scope, receive, None), PATIENCE_S)

    asyncio.run(run())
    return [one["type"] for one in arrived]


def test_it_arrives_once_a_person_has_decided(workshop: Workshop, secret: str) -> None:
    asked = make_ask(secret)
    with beside(lambda: workshop.deny(workshop.card(asked.run))):
        assert ask_for(secret, asked) == ["http.request"]
    assert load_state(asked).status == "denied"
    workshop.drive(asked.run)


def test_a_client_that_leaves_ends_the_wait(secret: str) -> None:
    assert ask_for(secret, make_ask(secret), leaves=True) == []


@pytest.mark.parametrize("wait_s", ["0", "-1", "31", "nan", "soon", ""])
def test_a_time_that_is_not_allowed_waits_for_nothing(secret: str, wait_s: str) -> None:
    asked = make_ask(secret)
    ask_for(secret, asked, wait_s)
    assert load_state(asked).status == "waiting"


def test_without_the_asks_own_key_it_waits_for_nothing(workshop: Workshop, secret: str) -> None:
    asked = make_ask(secret)
    other = issue_key(workshop.approver, workshop.employee.pk, "Laptop", 30)[1]
    for stranger in ("", "gadget_agent_x", other):
        ask_for(stranger, asked)
    assert load_state(asked).status == "waiting"


def test_more_than_so_many_at_once_wait_for_nothing(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = make_ask(secret)
    monkeypatch.setattr(ask_waiting, "MAX_WAITING", 0)
    ask_for(secret, asked)
    assert load_state(asked).status == "waiting"
