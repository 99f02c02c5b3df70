"""A test client for sockets, connected to the real ASGI application in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any, TypeVar

from django.conf import settings
from django.test import Client

from gadget_site.asgi import application

Answer = TypeVar("Answer")

PATIENCE_S = 30.0
# As in a server, all tests use one loop, because the channel layer opens separate connections for
# each loop.
_runner = asyncio.Runner()
HOST = "testserver"


def in_loop(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Run the coroutine in the event loop of all socket tests."""
    return _runner.run(work)


class SocketClient:
    """A client to use with `async with`, authenticated by the session of a test client or by a
    token."""

    def __init__(self, path: str, client: Client | None = None, token: str = "") -> None:
        address, _, query = path.partition("?")
        headers = [(b"host", HOST.encode())]
        if client is not None:
            cookie = client.cookies.get(settings.SESSION_COOKIE_NAME)
            headers.append((b"origin", f"http://{HOST}".encode()))
            if cookie is not None:
                headers.append(
                    (b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie.value}".encode())
                )
        if token:
            headers.append((b"authorization", f"Bearer {token}".encode()))
        self._scope = {
            "type": "websocket",
            "scheme": "ws",
            "path": address,
            "raw_path": address.encode(),
            "query_string": query.encode(),
            "headers": headers,
            "subprotocols": [],
        }
        self._to_server: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._from_server: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.delay_s = 0.0

    async def __aenter__(self) -> SocketClient:
        self._task = asyncio.create_task(application(self._scope, self._to_server.get, self._take))
        await self._to_server.put({"type": "websocket.connect"})
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._to_server.put({"type": "websocket.disconnect", "code": 1000})
        await asyncio.wait_for(self._task, PATIENCE_S)

    async def _take(self, message: dict[str, Any]) -> None:
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        await self._from_server.put(message)

    async def say(self, text: str) -> None:
        await self._to_server.put({"type": "websocket.receive", "text": text})

    async def message(self, patience_s: float = PATIENCE_S) -> dict[str, Any]:
        """Wait for the next message from the server, and parse its JSON."""
        while True:
            raw = await asyncio.wait_for(self._from_server.get(), patience_s)
            if raw["type"] == "websocket.send":
                return dict(json.loads(raw["text"]))
            assert raw["type"] == "websocket.accept", raw

    async def messages(self, count: int) -> list[dict[str, Any]]:
        return [await self.message() for _ in range(count)]

    async def close_code(self) -> int:
        """Skip messages until the server closes the socket, and return the close code."""
        while True:
            raw = await asyncio.wait_for(self._from_server.get(), PATIENCE_S)
            if raw["type"] == "websocket.close":
                return int(raw.get("code", 1000))
