"""While the web part waits for its database, only health checks and metrics get a response."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from gadget_site.edge.start_gate import CLOSED, StartGate


@pytest.fixture
def closed() -> Iterator[None]:
    CLOSED.set()
    yield
    CLOSED.clear()


def request(kind: str, path: str) -> list[dict[str, Any]]:
    """Send one request through the gate to an application that responds with `through`; return the
    messages of the response."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await send({"type": "through"})

    asyncio.run(StartGate(application)({"type": kind, "path": path}, None, send))
    return sent


@pytest.mark.parametrize("path", ["/api/health", "/api/ready", "/api/ready/", "/metrics"])
def test_a_closed_gate_lets_health_checks_and_metrics_through(closed: None, path: str) -> None:
    assert request("http", path) == [{"type": "through"}]


def test_a_closed_gate_responds_to_pages_with_503_and_retry_after(closed: None) -> None:
    start, body = request("http", "/runs/")
    assert (start["status"], dict(start["headers"])[b"retry-after"]) == (503, b"2")
    assert b"waits for a migrated database" in body["body"]


def test_a_closed_gate_refuses_sockets(closed: None) -> None:
    assert request("websocket", "/ws/inbox/") == [{"type": "websocket.close"}]


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_an_open_gate_lets_everything_through(kind: str) -> None:
    assert request(kind, "/runs/") == [{"type": "through"}]
