"""Requests that wait for the decision on an ask do not hold a thread, and each key may have only a
limited number of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.api import ask_waiting
from agents.approvals import decisions
from agents.approvals.decisions import Decision
from agents.gateway.asks import AskedRequest, submit
from agents.gateway.keys import authenticate_key, issue_key
from agents.gateway.models import Ask
from agents.gateway.redemptions import load_state
from agents.web.sockets.database import database_to_async
from tests.workshop import Workshop, beside

PATIENCE_S = 20.0


@pytest.fixture
def secret(workshop: Workshop) -> str:
    return issue_key(workshop.operator, workshop.employee.pk, "Laptop", 30)[1]


def make_ask(secret: str) -> Ask:
    key = authenticate_key(secret)
    assert key is not None
    return submit(key, AskedRequest("deploy", {}, "write"))[0]


def ask_for(
    secret: str,
    asked: Ask,
    wait_s: str = "30",
    *,
    leaves: bool = False,
    method: str = "GET",
    path: str = "/api/asks/{id}",
    parts: int = 1,
    reads: int | None = None,
) -> list[str]:
    """Send a request that waits; return the status that the ask had when the request arrived at
    Django, and each part that arrived."""
    arrived: list[Any] = []

    async def arrive(_scope: Any, receive: Any, _send: Any) -> None:
        arrived.append(await _read_status(asked))
        arrived.extend(
            [(await receive())["type"] for _ in range(parts if reads is None else reads)]
        )

    async def run() -> None:
        gone = asyncio.Event()
        if leaves:
            asyncio.get_running_loop().call_later(0.2, gone.set)
        scope = build_scope(secret, path.format(id=asked.pk), wait_s, method)
        await asyncio.wait_for(
            ask_waiting.AskWaiting(arrive)(scope, read_parts(parts, gone), None), PATIENCE_S
        )

    asyncio.run(run())
    return arrived


@database_to_async
def _read_status(asked: Ask) -> str:
    return load_state(asked).status


def build_scope(secret: str, path: str, wait_s: str = "30", method: str = "GET") -> dict[str, Any]:
    return {
        "method": method,
        "path": path,
        "query_string": f"wait_s={wait_s}".encode(),
        "headers": [(b"authorization", f"Bearer {secret}".encode())],
    }


def read_parts(parts: int, gone: asyncio.Event) -> Any:
    """Return a `receive` that returns a body in this many parts, and then the client's
    disconnect."""
    left = parts

    async def receive() -> Any:
        nonlocal left
        if left:
            left -= 1
            return {"type": "http.request", "body": b"", "more_body": left > 0}
        await gone.wait()
        return {"type": "http.disconnect"}

    return receive


def approve(workshop: Workshop, asked: Ask, grace_s: int) -> None:
    card = workshop.card(asked.run)
    decisions.approve(
        workshop.approver, card.pk, Decision(card.digest, confirm="deploy", grace_s=grace_s)
    )


def test_a_waiting_request_is_passed_on_once_a_person_decides(
    workshop: Workshop, secret: str
) -> None:
    asked = make_ask(secret)
    with beside(lambda: workshop.deny(workshop.card(asked.run))):
        assert ask_for(secret, asked) == ["denied", "http.request"]
    assert ask_for(secret, asked) == ["denied", "http.request"], "after that, at once"
    workshop.drive(asked.run)


def test_a_waiting_request_is_passed_on_once_the_approval_is_final(
    workshop: Workshop, secret: str
) -> None:
    asked = make_ask(secret)
    approve(workshop, asked, grace_s=1)
    assert ask_for(secret, asked) == ["approved", "http.request"]


def test_a_request_waits_no_longer_than_the_requested_time(workshop: Workshop, secret: str) -> None:
    asked = make_ask(secret)
    approve(workshop, asked, grace_s=60)
    assert ask_for(secret, asked, "0.3") == ["waiting", "http.request"]


def test_a_request_for_a_cancelled_ask_does_not_wait(workshop: Workshop, secret: str) -> None:
    asked = make_ask(secret)
    approve(workshop, asked, grace_s=60)
    workshop.cancel(asked.run)
    assert ask_for(secret, asked) == ["cancelled", "http.request"]


def test_a_wait_without_a_decision_ends_at_its_limit(secret: str) -> None:
    assert ask_for(secret, make_ask(secret), "0.3") == ["waiting", "http.request"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/asks/{id}"),
        ("GET", "/api/asks"),
        ("POST", "/api/asks/{id}/redeem"),
        ("GET", "/api/asks/{id}/x"),
    ],
)
def test_any_other_request_is_passed_on_immediately_and_in_full(
    secret: str, method: str, path: str
) -> None:
    asked = make_ask(secret)
    assert ask_for(secret, asked, method=method, path=path, parts=2) == [
        "waiting",
        "http.request",
        "http.request",
    ]


@pytest.mark.parametrize("parts", [2, 5])
@pytest.mark.parametrize("is_anonymous", [False, True])
def test_a_body_in_parts_is_not_mistaken_for_a_disconnect(
    secret: str, parts: int, is_anonymous: bool
) -> None:
    sent_by = "" if is_anonymous else secret
    assert ask_for(sent_by, make_ask(secret), "0.3", parts=parts, reads=1) == [
        "waiting",
        "http.request",
    ]


def test_a_request_whose_client_disconnects_within_the_body_is_not_passed_on(secret: str) -> None:
    arrived: list[Any] = []

    async def arrive(_scope: Any, receive: Any, _send: Any) -> None:
        arrived.append((await receive())["type"])

    async def receive() -> Any:
        return messages.pop(0)

    messages = [
        {"type": "http.request", "body": b"x", "more_body": True},
        {"type": "http.disconnect"},
    ]
    scope = build_scope(secret, f"/api/asks/{make_ask(secret).pk}")
    asyncio.run(asyncio.wait_for(ask_waiting.AskWaiting(arrive)(scope, receive, None), PATIENCE_S))
    assert arrived == []


def test_a_disconnect_ends_the_wait(secret: str) -> None:
    assert ask_for(secret, make_ask(secret), leaves=True) == []


@pytest.mark.parametrize("wait_s", ["0", "-1", "31", "nan", "soon", ""])
def test_a_request_with_an_invalid_wait_time_does_not_wait(secret: str, wait_s: str) -> None:
    asked = make_ask(secret)
    assert ask_for(secret, asked, wait_s) == ["waiting", "http.request"]


def test_a_request_without_the_asks_key_does_not_wait(workshop: Workshop, secret: str) -> None:
    asked = make_ask(secret)
    other = issue_key(workshop.approver, workshop.employee.pk, "Laptop", 30)[1]
    for stranger in ("", "gadget_agent_x", other):
        assert ask_for(stranger, asked) == ["waiting", "http.request"]


def test_a_request_beyond_the_limit_of_waiting_requests_does_not_wait(
    secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = make_ask(secret)
    monkeypatch.setattr(ask_waiting, "MAX_WAITING", 0)
    assert ask_for(secret, asked) == ["waiting", "http.request"]


def test_a_disconnect_frees_a_slot_for_another_wait(
    secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = build_scope(secret, f"/api/asks/{make_ask(secret).pk}")
    monkeypatch.setattr(ask_waiting, "MAX_WAITING", 1)
    arrived: list[Any] = []

    async def arrive(scope: Any, _receive: Any, _send: Any) -> None:
        arrived.append(scope)

    async def run() -> None:
        middleware = ask_waiting.AskWaiting(arrive)
        leaving = [asyncio.Event() for _ in range(3)]
        first, second, third = (middleware(scope, read_parts(1, gone), None) for gone in leaving)
        tasks = [asyncio.create_task(first), asyncio.create_task(second)]
        done, waiting = await asyncio.wait(
            tasks, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED
        )
        assert (len(done), len(waiting), len(arrived)) == (1, 1, 1), (
            "the second is answered at once"
        )
        for gone in leaving[:2]:
            gone.set()
        await asyncio.wait(waiting, timeout=PATIENCE_S)
        asyncio.get_running_loop().call_later(0.5, leaving[2].set)
        await asyncio.wait_for(third, PATIENCE_S)

    asyncio.run(run())
    assert len(arrived) == 1, "the third waited until it left"
