"""An open line to one server: the protocol's client on it, and what is known about the connection."""

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

from tools.contract import canonical_json, look_before_request
from tools.network import AsyncTransport, Door, NetworkLimits

from .child import HIDDEN
from .failures import EXPECTED, not_connected
from .servers import HttpServer, Server
from .words import one_line

CLIENT = mcp_types.Implementation(name="gadget", version="1.0")
LARGEST_ANSWER = 10_000_000
LONGEST_LOG = 500
MOST_LOGS = 200
"""Of one line; what comes after is not logged."""
STEP_S = 10.0
"""Seconds to connect, and to send."""
GOODBYE_S = 1.0

_changed: set[str] = set()
_handshakes: set[str] = set()
"""Keys of servers that do not know how to discover, so that they are not asked again."""


@dataclass
class Line:
    """One connection.

    Attributes:
        status: of the last HTTP answer to a message; 0 for a process.
        call_status: of the HTTP answer to the use of a tool; 0 if there was none. What the server thinks of our other
            messages says nothing about the call.
        fault: why a process cannot be spoken to any more, as part of a sentence.
    """

    client: Client
    status: int = 0
    call_status: int = 0
    fault: str = ""


def listing_changed(server: Server) -> bool:
    """Whether the server said since the last listing that its tools are others now. Known to this process alone."""
    return server.key in _changed


def listing_is_fresh(server: Server) -> None:
    """Its tools are being listed."""
    _changed.discard(server.key)


@dataclass
class Ears:
    """Hears what a server says besides its answers; declines what it asks for: nothing of the kind was announced."""

    server: Server
    logger: logging.Logger
    _logs: int = field(default=0, init=False)

    async def on_message(self, message: IncomingMessage) -> None:
        """Notes that the list of tools has changed."""
        if isinstance(message, mcp_types.ToolListChangedNotification):
            _changed.add(self.server.key)

    async def on_log(self, params: mcp_types.LoggingMessageNotificationParams) -> None:
        """Into the log at debug, bounded, without secrets."""
        self._logs += 1
        if self._logs > MOST_LOGS or not self.logger.isEnabledFor(logging.DEBUG):
            return
        text = params.data if isinstance(params.data, str) else canonical_json(params.data)
        for secret in self.server.secrets:
            text = text.replace(secret, HIDDEN)
        self.logger.debug("%s logs (%s): %s", self.server.title, params.level, one_line(text, LONGEST_LOG))

    def client(self, transport: object, mode: str) -> Client:
        """A client that speaks over this transport, in all revisions (`auto`) or those with a handshake (`legacy`)."""
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
async def http_line(server: HttpServer, logger: logging.Logger, seconds: float) -> AsyncIterator[Line]:
    """A connection for one call, through the door; how long the call may take is the caller's business.

    Args:
        seconds: until it is open.

    Raises:
        ToolError: it cannot be opened; nothing was asked of any tool.
        Others of EXPECTED: as the caller's own work, or as what broke the line.
    """

    async def note(response: httpx2.Response) -> None:
        if response.request.method == "POST":  # besides, the client tries to listen
            line.status = response.status_code
            if _is_call(response.request):
                line.call_status = response.status_code

    async def look(request: httpx2.Request) -> None:
        if _is_call(request):
            look_before_request(is_read=False)

    door = Door(server.reach, NetworkLimits(connect_s=STEP_S, answer_bytes=LARGEST_ANSWER))
    http = httpx2.AsyncClient(
        transport=AsyncTransport(door, server.url),
        headers=dict(server.headers),
        trust_env=False,
        max_redirects=0,  # the protocol's client would say a message again at each address of this server
        timeout=httpx2.Timeout(STEP_S, read=None),
        event_hooks={"request": [look], "response": [note]},
    )
    transport = streamable_http_client(server.url, http_client=http, max_sse_event_size=LARGEST_ANSWER)
    line = Line(Ears(server, logger).client(transport, "legacy" if server.key in _handshakes else "auto"))
    _handshakes.discard(server.key)
    is_open = is_done = False
    try:
        async with http, asyncio.timeout(seconds) as limit, line.client as client:
            is_open = True
            if client.session.initialize_result is not None:
                _handshakes.add(server.key)
            limit.reschedule(None)
            try:
                yield line
                is_done = True
            finally:
                limit.reschedule(asyncio.get_running_loop().time() + GOODBYE_S)
    except EXPECTED as error:
        if not is_open:
            raise not_connected(server.title, error, line.status, "") from error
        if not is_done:
            raise


def _is_call(request: httpx2.Request) -> bool:
    try:
        message = json.loads(request.content)
    except (ValueError, httpx2.RequestNotRead):
        return False
    return isinstance(message, dict) and message.get("method") == "tools/call"
