"""A connection to one server: the protocol's client and the state of the connection."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2
import mcp_types
from mcp import Client
from mcp.client.session import IncomingMessage
from mcp.client.streamable_http import streamable_http_client

from tools.caches import Cache
from tools.contract import ToolError, canonical_json, check_fence
from tools.network import GuardedAsyncTransport, GuardedClient, NetworkLimits
from tools.sources.mcp.display_text import clean_line
from tools.sources.mcp.errors import CLIENT_ERRORS, Evidence, clean_words, translate_connect_error
from tools.sources.mcp.raw_responses import find_response, find_words, watch_responses
from tools.sources.mcp.server_process import HIDDEN
from tools.sources.mcp.servers import HttpServer, Server

CLIENT = mcp_types.Implementation(name="gadget", version="1.0")
MAX_RESPONSE_SIZE = 10_000_000
MAX_WORDS_SIZE = 8_000
MAX_LOG_LENGTH = 500
MAX_LOGS = 200
"""The maximum number of a server's messages that are logged during one connection."""
HEARD_METHODS = ("initialize", "tools/call", "tools/list")
STEP_S = 10.0
"""The time limits for connecting and for sending, in seconds."""
GOODBYE_S = 1.0

MAX_SERVERS = 10_000
"""The maximum number of servers whose announcements a process remembers."""

_changed: Cache[str, bool] = Cache(MAX_SERVERS)
_handshakes: Cache[str, bool] = Cache(MAX_SERVERS)
"""The keys of servers that do not support discovery; the next connection to them starts with a
handshake."""


@dataclass
class McpConnection:
    """One connection.

    Attributes:
        status: the status of the last HTTP response to a message; 0 for a process.
        call_status: the status of the HTTP response to the tool call; 0 if there was none.
            Responses to other messages are not evidence about the call.
        body: the HTTP response to the last request with one of HEARD_METHODS; None for a process.
        fault: why the process can no longer be used, as part of a sentence.
    """

    client: Client
    status: int = 0
    call_status: int = 0
    body: "HeardBody | None" = None
    fault: str = ""

    def prepare_request(self, request: httpx2.Request) -> None:
        """Check whether the call may still start, and forget the last response."""
        method = _find_method(request)
        if method == "tools/call":
            check_fence(is_read=False)
        if method in HEARD_METHODS:
            self.body = HeardBody()

    async def record_response(self, response: httpx2.Response) -> None:
        """Record the status and the body of a response to a message."""
        if response.request.method != "POST":
            if "last-event-id" in response.request.headers and self.body:  # the rest of a response
                await self.body.hear(response)
            return  # other requests listen for the server's messages, or end the session
        self.status = response.status_code
        method = _find_method(response.request)
        if method == "tools/call":
            self.call_status = response.status_code
        if method in HEARD_METHODS and self.body:
            await self.body.hear(response)

    @property
    def evidence(self) -> Evidence:
        """The evidence for an error that is not about the call."""
        return Evidence(self.status, self.body.words if self.body else "", self.fault)

    @property
    def call_evidence(self) -> Evidence:
        """The evidence for an error that is about the call."""
        return Evidence(self.call_status, self.body.words if self.body else "", self.fault)


class HeardBody:
    """The body of a response, kept while the protocol's client reads it.

    Attributes:
        content: the bytes so far.
        is_stream: True for a stream of events.
    """

    def __init__(self) -> None:
        self.content = bytearray()
        self.is_stream = False
        self._media_type = ""

    async def hear(self, response: httpx2.Response) -> None:
        """Keep the body; an error's body is read here, because the protocol's client does not read
        it."""
        self._media_type = (
            response.headers.get("content-type", "").partition(";")[0].strip().lower()
        )
        self.is_stream = self._media_type == "text/event-stream"
        if response.status_code < 400:
            response.stream = _HeardStream(response.stream, self.content)
            return
        with suppress(httpx2.HTTPError, httpx2.StreamError, ToolError, TimeoutError):
            async with asyncio.timeout(STEP_S):
                self.content += await response.aread()

    def find_response(self) -> mcp_types.JSONRPCResponse | mcp_types.JSONRPCError | None:
        """Find the response that the server sent; None if it did not send any."""
        return find_response(bytes(self.content), self.is_stream)

    @property
    def words(self) -> str:
        """The text of the response if it is for people, else empty."""
        if self.is_stream:
            response = self.find_response()
            return (
                clean_words(response.error.message)
                if isinstance(response, mcp_types.JSONRPCError)
                else ""
            )
        if self._media_type.endswith("json"):
            with suppress(ValueError, RecursionError):
                return clean_words(find_words(json.loads(self.content)))
        is_plain = self._media_type.endswith("json") or self._media_type == "text/plain"
        return (
            clean_words(self.content[:MAX_WORDS_SIZE].decode("utf-8", "replace"))
            if is_plain
            else ""
        )


class _HeardStream(httpx2.AsyncByteStream):
    def __init__(self, inner: Any, heard: bytearray) -> None:
        self._inner = inner
        self._heard = heard

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            self._heard += part
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


def has_tool_list_changed(server: Server) -> bool:
    """Return True if the server has announced a change since this process last listed its tools."""
    return bool(_changed.get(server.key))


def clear_tool_list_change(server: Server) -> None:
    """Clear the announced change, because the tools are being listed now."""
    _changed.remove(server.key)


@dataclass
class ClientCallbacks:
    """Callbacks for a server's notifications. The server's requests are declined, because Gadget
    does not support any."""

    server: Server
    logger: logging.Logger
    _logs: int = field(default=0, init=False)

    async def on_message(self, message: IncomingMessage) -> None:
        """Record that the list of tools has changed, if the message says so."""
        if isinstance(message, mcp_types.ToolListChangedNotification):
            _changed.put(self.server.key, value=True)

    async def on_log(self, params: mcp_types.LoggingMessageNotificationParams) -> None:
        """Log the server's message at debug level, limited and without secrets."""
        self._logs += 1
        if self._logs > MAX_LOGS or not self.logger.isEnabledFor(logging.DEBUG):
            return
        text = params.data if isinstance(params.data, str) else canonical_json(params.data)
        for secret in self.server.secrets:
            text = text.replace(secret, HIDDEN)
        self.logger.debug(
            "%s logs (%s): %s", self.server.title, params.level, clean_line(text, MAX_LOG_LENGTH)
        )

    def build_client(self, transport: Any, mode: str) -> Client:
        """Build a client; `mode` is `auto` (all protocol versions) or `legacy` (by handshake)."""
        return Client(
            watch_responses(transport),
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
        seconds: the time limit for opening the connection.

    Raises:
        ToolError: the connection cannot be opened; no tool was called.
        Other CLIENT_ERRORS: the caller's own errors, or errors that broke the connection.
    """

    async def prepare_request(request: httpx2.Request) -> None:
        connection.prepare_request(request)

    async def record_response(response: httpx2.Response) -> None:
        await connection.record_response(response)

    guarded = GuardedClient(
        server.reach, NetworkLimits(connect_s=STEP_S, response_bytes=MAX_RESPONSE_SIZE)
    )
    http = httpx2.AsyncClient(
        transport=GuardedAsyncTransport(guarded, server.url),
        headers=dict(server.headers),
        trust_env=False,
        max_redirects=0,  # the protocol's client would repeat the message at every redirect
        timeout=httpx2.Timeout(STEP_S, read=None),
        event_hooks={"request": [prepare_request], "response": [record_response]},
    )
    transport = streamable_http_client(
        server.url, http_client=http, max_sse_event_size=MAX_RESPONSE_SIZE
    )
    connection = McpConnection(
        ClientCallbacks(server, logger).build_client(
            transport, "legacy" if _handshakes.get(server.key) else "auto"
        )
    )
    _handshakes.remove(server.key)
    is_open = is_done = False
    try:
        async with http, asyncio.timeout(seconds) as limit, connection.client as client:
            is_open = True
            if client.session.initialize_result is not None:
                _handshakes.put(server.key, value=True)
            limit.reschedule(None)
            try:
                yield connection
                is_done = True
            finally:
                limit.reschedule(asyncio.get_running_loop().time() + GOODBYE_S)
    except CLIENT_ERRORS as error:
        if not is_open:
            raise translate_connect_error(server.title, error, connection.evidence) from error
        if not is_done:
            raise


def _find_method(request: httpx2.Request) -> str:
    """Return the method of the request's message; an empty text if the message is one of our
    responses."""
    try:
        message = json.loads(request.content)
    except (ValueError, httpx2.RequestNotRead):
        return ""
    return str(message.get("method", "")) if isinstance(message, dict) else ""
