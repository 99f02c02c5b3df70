"""The MCP server's endpoint, called in-process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from concurrent.futures import wait
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from agents.gateway.keys import issue_key
from agents.gateway.tickets import Ticket
from agents.mcp_server import door, tasks
from agents.mcp_server.callers import Caller
from agents.mcp_server.database import CALLS
from agents.mcp_server.door import LARGEST_BODY
from agents.mcp_server.messages import opens_session
from agents.runs.models import CallStatus, ToolCall
from tests.mcp_client import NEWEST
from tests.workshop import Workshop


@pytest.mark.django_db(transaction=True)
def test_a_key_is_checked_even_if_all_threads_for_calls_are_busy() -> None:
    ended = threading.Event()
    previews = [CALLS.submit(ended.wait) for _ in range(CALLS._max_workers)]
    try:
        assert (
            asyncio.run(asyncio.wait_for(door._authenticate_caller("no key", None, ""), 20)) is None
        )
    finally:
        ended.set()
        wait(previews)


def read(messages: Iterable[dict[str, Any]]) -> bytes:
    """Return the body that the endpoint reads from these messages."""
    left = iter(messages)

    async def receive() -> dict[str, Any]:
        return next(left)

    return asyncio.run(door._read_body(receive))


def test_a_body_in_parts_is_limited_in_size() -> None:
    half = {"type": "http.request", "body": b"x" * (LARGEST_BODY // 2), "more_body": True}
    assert len(read([half, {**half, "more_body": False}])) == LARGEST_BODY
    with pytest.raises(door._Refusal) as refusal:
        read([half, half, {"type": "http.request", "body": b"x", "more_body": True}])
    assert refusal.value.status == 413


def test_a_truncated_body_is_not_treated_as_complete() -> None:
    with pytest.raises(door._Refusal) as refusal:
        read(
            [
                {"type": "http.request", "body": b"{}", "more_body": True},
                {"type": "http.disconnect"},
            ]
        )
    assert refusal.value.status == 400


def admit(secret: str = "wrong", **scope: Any) -> Caller | int:
    """Let the endpoint check a request; return its caller, or the status of the refusal."""
    headers = [(b"authorization", f"Bearer {secret}".encode()), (b"host", b"gadget.test")]
    try:
        return asyncio.run(door._admit({"scheme": "https", "headers": headers, **scope}))
    except door._Refusal as refusal:
        return refusal.status


@pytest.mark.django_db(transaction=True)
def test_wrong_keys_are_counted_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MAX_WRONG_KEYS_PER_MINUTE", 2)
    assert [admit(client=("192.0.2.1", port)) for port in range(3)] == [401, 401, 429]
    assert admit(client=("192.0.2.2", 1)) == 401
    assert [admit(client=None) for _ in range(3)] == [401, 401, 429], (
        "without an address, as behind a local socket"
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("origin", "site"), [("", "https://gadget.test"), ("https://x.test", "https://x.test")]
)
def test_links_in_responses_use_the_configured_origin(
    workshop: Workshop, settings: Settings, origin: str, site: str
) -> None:
    settings.GADGET_ORIGIN = origin
    caller = admit(issue_key(workshop.operator, workshop.employee.pk, "Laptop", 30)[1])
    assert isinstance(caller, Caller)
    assert caller.site == site


@pytest.mark.parametrize(
    ("revision", "body", "opens"),
    [
        (None, {"method": "initialize"}, True),
        ("2025-06-18", {"method": "initialize"}, True),
        (NEWEST, {"method": "initialize"}, False),
        (None, {"method": "ping", "params": {"method": "initialize"}}, False),
        (None, {"result": {}, "id": 1}, False),
    ],
)
def test_only_an_initialization_opens_a_session(
    revision: str | None, body: dict[str, Any], opens: bool
) -> None:
    headers = [(b"MCP-Protocol-Version", revision.encode())] if revision else []
    assert opens_session({"headers": headers}, body) is opens


@pytest.mark.parametrize(("status", "has_session"), [(200, True), (400, False)])
def test_only_a_success_returns_a_session_id(status: int, has_session: bool) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def answer() -> None:
        with_session = door._add_session(send, "s")
        await with_session({"type": "http.response.start", "status": status, "headers": []})
        await with_session({"type": "http.response.body", "body": b"{}"})

    asyncio.run(answer())
    assert sent[0]["headers"] == ([(b"mcp-session-id", b"s")] if has_session else [])
    assert sent[1]["body"] == b"{}"


def test_a_task_includes_the_time_when_its_call_last_changed() -> None:
    created = timezone.now()
    started, finished = created + timedelta(seconds=1), created + timedelta(seconds=2)
    caller: Any = SimpleNamespace(site="")
    for times, last in (
        ((None, None), created),
        ((started, None), started),
        ((started, finished), finished),
    ):
        call = ToolCall(pk=1, run_id=1, status=CallStatus.EXECUTING, created_at=created)
        call.started_at, call.finished_at = times
        assert tasks._describe(Ticket(call, "running"), caller)["lastUpdatedAt"] == last.isoformat()
