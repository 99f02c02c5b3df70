"""The MCP client of the Python SDK, which is third-party code, driven from ordinary tests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

Value = TypeVar("Value")
NEWEST = "2026-07-28"
WITH_SESSIONS = "legacy"
"""The SDK's mode for the revisions with a handshake and sessions."""


@dataclass
class Agent:
    """A connected client.

    Attributes:
        progress: the received reports of progress, as (fraction, total, text).
    """

    client: Client
    _loop: asyncio.AbstractEventLoop
    progress: list[tuple[float, float | None, str | None]] = field(default_factory=list)

    @property
    def revision(self) -> str:
        return str(self.client.protocol_version)

    def list_tools(self) -> list[types.Tool]:
        return self.do(self.client.list_tools()).tools

    def call(self, tool: str, **params: Any) -> types.CallToolResult:
        """Call a tool and return its response."""
        return self.do(self.client.call_tool(tool, params, progress_callback=self._note))

    def wait_for(self, ticket: str, wait_s: float = 20) -> types.CallToolResult:
        """Wait at most `wait_s` seconds for the ticket's call to end."""
        return self.call("gadget__ticket", ticket=ticket, wait_s=wait_s)

    def do(self, work: Coroutine[Any, Any, Value], seconds: float = 60) -> Value:
        """Run the coroutine in the client's event loop, and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    async def _note(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append((progress, total, message))


@contextmanager
def connect(url: str, secret: str, mode: str = "auto") -> Iterator[Agent]:
    """Connect with this key, and disconnect at the end of the block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="mcp-client", daemon=True)
    thread.start()
    opened: asyncio.Future[Client] = loop.create_future()
    closing = asyncio.Event()

    async def stay_connected() -> None:
        headers = {"Authorization": f"Bearer {secret}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(f"{url}/mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                opened.set_result(client)
                await closing.wait()

    connection = asyncio.run_coroutine_threadsafe(stay_connected(), loop)
    try:
        yield Agent(
            asyncio.run_coroutine_threadsafe(_first(opened, connection), loop).result(30), loop
        )
        loop.call_soon_threadsafe(closing.set)
        connection.result(30)
    finally:
        connection.cancel()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


async def _first(opened: asyncio.Future[Client], connection: Any) -> Client:
    """Return the client once it is connected, or raise the reason why it is not."""
    failed = asyncio.wrap_future(connection)
    await asyncio.wait([opened, failed], return_when=asyncio.FIRST_COMPLETED)
    if not opened.done():
        failed.result()
    return opened.result()
