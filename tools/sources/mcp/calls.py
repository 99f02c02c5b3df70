"""Requests to a server: list its tools, and call one."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import mcp_types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter

from tools.contract import ErrorCode, ToolError, canonical_json, check_fence
from tools.contract.correlation import build_correlation_meta
from tools.sources.mcp.connection import McpConnection, clear_tool_list_change, open_http_connection
from tools.sources.mcp.definitions import Definition, McpToolList, SkippedTool, read_definitions
from tools.sources.mcp.display_text import clean_line
from tools.sources.mcp.errors import (
    CLIENT_ERRORS,
    Evidence,
    clean_words,
    find_cause,
    source_error,
    translate_call_error,
    translate_connect_error,
)
from tools.sources.mcp.loop import LOOP
from tools.sources.mcp.process_pool import PROCESS_POOL
from tools.sources.mcp.raw_responses import UNUSUAL_CODE, ServerError
from tools.sources.mcp.raw_results import (
    fetch_raw_result,
    select_tools_with_headers,
    split_by_headers,
)
from tools.sources.mcp.servers import Server, StdioServer

logger = logging.getLogger("gadget.tools.mcp")

MAX_TOOLS = 2_000
MAX_PAGES = 200
MAX_LIST_SIZE = 4_000_000
"""The maximum number of characters in all of a server's definitions as JSON."""
READING_S = 20.0
"""Seconds for reading a server's definitions; tools that are not read by then are skipped."""

_RESPONSE: TypeAdapter[Any] = TypeAdapter(Any)


@dataclass(frozen=True)
class McpCall:
    """One call of a tool.

    Attributes:
        params: the params, under the server's own names.
        seconds: the time limit; at most half of it may be spent on opening the connection.
        on_progress: called with `(progress, total or None, text or None)` on the event loop's
            thread.
        logger: receives the server's log messages that belong to this call.
    """

    definition: Definition
    params: dict[str, Any]
    seconds: float
    on_progress: Callable[[float, float | None, str | None], None]
    logger: logging.Logger = field(default=logger)


@dataclass(frozen=True)
class _RawToolList:
    """A server's raw list of tools, before its definitions are read."""

    tools: list[Any]
    skipped: list[SkippedTool]
    info: mcp_types.Implementation | None
    protocol: str


def list_tools(server: Server, *, timeout_s: float = 60.0) -> McpToolList:
    """List the server's tools, page by page, up to a limit; skip further tools, and give the
    reason.

    Call it from a thread without an event loop.

    Raises:
        ToolError: the server cannot be reached or its response is invalid; `__notes__` contains the
            end of the process's standard error output, for the admin.
    """
    raw = LOOP.submit(_fetch_tools(server, timeout_s)).result()
    # Read the definitions outside the event loop, because all servers share it.
    found = read_definitions(raw.tools, time.monotonic() + READING_S)
    return McpToolList(
        name=clean_line(raw.info.name if raw.info else "", 100),
        version=clean_line(raw.info.version if raw.info else "", 100),
        protocol=raw.protocol,
        tools=found.definitions,
        skipped=(*found.skipped, *raw.skipped),
        adapted=found.adapted,
    )


async def send_call(server: Server, call: McpCall) -> Any:
    """Send the call once and return the raw result, any JSON value; run it on the event loop.

    Canceling the coroutine also cancels the call at the server.

    Raises:
        ToolError: with `attempted=False` if the call was never sent.
        ConnectionLostError: the call was sent, and the connection ended.
        TimeoutError: the call was sent, and the time limit has passed.
    """
    async with asyncio.timeout(call.seconds):
        return await _exchange(server, call)


async def _exchange(server: Server, call: McpCall) -> Any:
    connect_s = min(call.seconds / 2, 30.0)
    is_sent = False
    connection: McpConnection | None = None
    try:
        async with _open_connection(server, call.logger, connect_s) as connection:
            if call.definition.copies_params:
                await _list_until_found(connection, call.definition.name, connect_s)
            if isinstance(server, StdioServer):  # over HTTP, the request hook checks it
                check_fence(is_read=False)
            is_sent = True
            response = await _send_request(connection, call)
    except CLIENT_ERRORS as error:
        if connection is not None and is_sent:
            raise translate_call_error(server.title, error, connection.call_evidence) from error
        evidence = connection.evidence if connection else Evidence()
        raise translate_connect_error(server.title, error, evidence) from error
    if isinstance(response, dict) and response.get("resultType") == "input_required":
        raise ToolError(
            ErrorCode.OPERATION_FAILED,
            f"{server.title} did nothing: it asked for more input, which is not supported.",
            recovery_hint="Send everything that it may need at once, or use another tool.",
        )
    return response


async def _send_request(connection: McpConnection, call: McpCall) -> Any:
    async def report(progress: float, total: float | None, message: str | None) -> None:
        call.on_progress(progress, total, message)

    meta: Any = build_correlation_meta()
    request = mcp_types.CallToolRequest(
        params=mcp_types.CallToolRequestParams(
            name=call.definition.name, arguments=call.params, _meta=meta
        )
    )
    # Do not use the client's call_tool: it may list the tools after the call, and a failure then
    # would hide a completed write.
    send = partial(
        connection.client.session.send_request, request, _RESPONSE, progress_callback=report
    )
    return await fetch_raw_result(
        connection, send, lambda _: {"content": [], "resultType": "complete"}
    )


async def _list_until_found(connection: McpConnection, name: str, seconds: float) -> None:
    """List tools until the one with this name is found, because the client copies params into
    headers only for listed tools."""
    cursor: str | None = None
    async with asyncio.timeout(seconds):
        for _ in range(MAX_PAGES):
            page = await _fetch_page(connection, cursor)
            cursor = page.next_cursor
            if not cursor or any(
                isinstance(tool, dict) and tool.get("name") == name for tool in page.tools
            ):
                return


@asynccontextmanager
async def _open_connection(
    server: Server, log: logging.Logger, seconds: float
) -> AsyncIterator[McpConnection]:
    opening = (
        PROCESS_POOL.connect(server, seconds)
        if isinstance(server, StdioServer)
        else open_http_connection(server, log, seconds)
    )
    async with opening as connection:
        yield connection


async def _fetch_tools(server: Server, seconds: float) -> _RawToolList:
    connection: McpConnection | None = None
    try:
        async with (
            asyncio.timeout(seconds),
            _open_connection(server, logger, seconds) as connection,
        ):
            clear_tool_list_change(server)
            tools, skipped = await _read_pages(connection)
            session = connection.client.session
            if session.protocol_version in MODERN_PROTOCOL_VERSIONS:
                tools, illegal = split_by_headers(tools)
                skipped += illegal
            info = session.server_info
            return _RawToolList(tools, skipped, info, session.protocol_version or "")
    except CLIENT_ERRORS as error:
        if isinstance(find_cause(error), ToolError):
            raise find_cause(error) from None
        evidence = connection.evidence if connection else Evidence()
        has_response = connection is not None and evidence.status < 300 and not evidence.fault
        if has_response and not isinstance(error, TimeoutError):
            words = clean_words(str(find_cause(error)))
            raise source_error(f"{server.title} cannot list its tools.", words) from error
        raise translate_connect_error(server.title, error, evidence) from error


def _measure_tool(tool: Any) -> int:
    return len(canonical_json(tool))


async def _read_pages(connection: McpConnection) -> tuple[list[Any], list[SkippedTool]]:
    tools: list[Any] = []
    cursors: set[str | None] = {None}
    cursor: str | None = None
    size = 0
    for _ in range(MAX_PAGES):
        page = await _fetch_page(connection, cursor)
        for tool in page.tools:
            size += await asyncio.to_thread(_measure_tool, tool)
            if len(tools) == MAX_TOOLS or size > MAX_LIST_SIZE:
                return tools, [
                    SkippedTool(
                        "…",
                        f"at most {MAX_TOOLS:,} tools and {MAX_LIST_SIZE:,} characters are read",
                    )
                ]
            tools.append(tool)
        cursor = page.next_cursor
        if not cursor:
            return tools, []
        if cursor in cursors:
            return tools, [SkippedTool("…", "the server's pages repeat endlessly")]
        cursors.add(cursor)
    return tools, [SkippedTool("…", f"at most {MAX_PAGES} pages are read")]


@dataclass(frozen=True)
class _Page:
    tools: list[Any]
    next_cursor: str | None


async def _fetch_page(connection: McpConnection, cursor: str | None) -> _Page:
    """Fetch one page of tools, as the server sent them.

    Raises:
        ServerError: the response does not contain a list of tools.
    """
    params = mcp_types.PaginatedRequestParams(cursor=cursor)
    send = partial(connection.client.session.list_tools, params=params)
    raw = await fetch_raw_result(connection, send, select_tools_with_headers)
    tools = raw.get("tools") if isinstance(raw, dict) else None
    if tools is None or not isinstance(tools, list):
        fault = mcp_types.ErrorData(code=UNUSUAL_CODE, message="Its response has no list of tools.")
        raise ServerError(fault)
    next_cursor = raw.get("nextCursor")
    return _Page(tools, next_cursor if isinstance(next_cursor, str) else None)
