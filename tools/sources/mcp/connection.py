"""A connection to one server: the protocol's client and the state of the connection."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
import mcp_types
from mcp import Client
from mcp.client.session import IncomingMessage
from mcp.client.streamable_http import streamable_http_client

from tools.contract import canonical_json, check_fence
from tools.network import GuardedAsyncTransport, GuardedClient, NetworkLimits
from tools.sources.mcp.display_text import clean_line
from tools.sources.mcp.errors import CLIENT_ERRORS, translate_connect_error
from tools.sources.mcp.server_process import HIDDEN
from tools.sources.mcp.servers import HttpServer, Server

CLIENT = mcp_types.Implementation(name="gadget", version="1.0")
MAX_ANSWER_SIZE = 10_000_000
MAX_LOG_LENGTH = 500
MAX_LOGS = 200
"""Logged messages of one connection."""
STEP_S = 10.0
"""Seconds to connect, and to send."""
GOODBYE_S = 1.0

_changed: set[str] = set()
_handshakes: set[str] = set()
"""Keys of servers without support for discovery, so that the next connection starts with a handshake."""


@dataclass
class McpConnection:
    """One connection.

    Attributes:
        status: the status of the last HTTP response to a message; 0 for a process.
        call_status: the status of the HTTP response to the tool call; 0 if there was none. Responses to other messages
            say nothing about the call.
        fault: why the process can no longer be used, as part of a sentence.
    """

    client: Client
    status: int = 0
    call_status: int = 0
    fault: str = ""


def has_tool_list_changed(server: Server) -> bool:
    """Return True if the server has announced a change since its tools were last listed by this process."""
    return server.key in _changed


def clear_tool_list_change(server: Server) -> None:
    """Clear the announced change, because the tools are being listed now."""
    _changed.discard(server.key)


@dataclass
class ClientCallbacks:
    """Callbacks for a server's notifications; its requests are declined, because Gadget announces no such ability."""

    server: Server
    logger: logging.Logger
    _logs: int = field(default=0, init=False)

    async def on_message(self, message: IncomingMessage) -> None:
        """Record that the list of tools has changed."""
        if isinstance(message, mcp_types.ToolListChangedNotification):
            _changed.add(self.server.key)

    async def on_log(self, params: mcp_types.LoggingMessageNotificationParams) -> None:
        """Log the server's message at debug level, limited and without secrets."""
        self._logs += 1
        if self._logs > MAX_LOGS or not self.logger.isEnabledFor(logging.DEBUG):
            return
        text = params.data if isinstance(params.data, str) else canonical_json(params.data)
        for secret in self.server.secrets:
            text = text.replace(secret, HIDDEN)
        self.logger.debug("%s logs (%s): %s", self.server.title, params.level, clean_line(text, MAX_LOG_LENGTH))

    def build_client(self, transport: object, mode: str) -> Client:
        """Build a client in the mode `auto` (all protocol versions) or `legacy` (only those with a handshake)."""
        return Client(
            transport,  # type: ignore[arg-type]  # any context manager of two streams
            mode=mode,
            cache=None,
            client_info=CLIENT,
            log_level="debug",
            logging_callback=self.on_log,
            message_handler=self.on_message,
        )


@asynccontextmanager
async def open_http_connection(
    server: HttpServer, logger: logging.Logger, seconds: float
) -> AsyncIterator[McpConnection]:
    """Open a guarded HTTP connection for one call; the caller limits the time of the call.

    Args:
        seconds: the time limit for opening it.

    Raises:
        ToolError: the connection cannot be opened; no tool was called.
        Others of CLIENT_ERRORS: the caller's own errors, or those that broke the connection.
    """

    async def record_status(response: httpx2.Response) -> None:
        if response.request.method == "POST":  # not the client's attempts to listen by GET
            connection.status = response.status_code
            if _is_call(response.request):
                connection.call_status = response.status_code

    async def check_request(request: httpx2.Request) -> None:
        if _is_call(request):
            check_fence(is_read=False)

    guarded = GuardedClient(server.reach, NetworkLimits(connect_s=STEP_S, response_bytes=MAX_ANSWER_SIZE))
    http = httpx2.AsyncClient(
        transport=GuardedAsyncTransport(guarded, server.url),
        headers=dict(server.headers),
        trust_env=False,
        max_redirects=0,  # the protocol's client would repeat the message at every redirect
        timeout=httpx2.Timeout(STEP_S, read=None),
        event_hooks={"request": [check_request], "response": [record_status]},
    )
    transport = streamable_http_client(server.url, http_client=http, max_sse_event_size=MAX_ANSWER_SIZE)
    connection = McpConnection(
        ClientCallbacks(server, logger).build_client(transport, "legacy" if server.key in _handshakes else "auto")
    )
    _handshakes.discard(server.key)
    is_open = is_done = False
    try:
        async with http, asyncio.timeout(seconds) as limit, connection.client as client:
            is_open = True
            if client.session.initialize_result is not None:
                _handshakes.add(server.key)
            limit.reschedule(None)
            try:
                yield connection
                is_done = True
            finally:
                limit.reschedule(asyncio.get_running_loop().time() + GOODBYE_S)
    except CLIENT_ERRORS as error:
        if not is_open:
            raise translate_connect_error(server.title, error, connection.status, "") from error
        if not is_done:
            raise


def _is_call(request: httpx2.Request) -> bool:
    try:
        message = json.loads(request.content)
    except (ValueError, httpx2.RequestNotRead):
        return False
    return isinstance(message, dict) and message.get("method") == "tools/call"
