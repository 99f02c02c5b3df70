"""Asks a server: for its tools, and to use one."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import mcp_types
from pydantic import TypeAdapter

from tools.contract import ErrorCode, ToolError, canonical_json, look_before_request

from .connections import CONNECTIONS
from .definitions import Definition, LeftOut, Listing, definitions_of
from .failures import EXPECTED, call_failed, cause_of, failed, not_connected
from .lines import Line, http_line, listing_is_fresh
from .loop import LOOP
from .servers import Server, StdioServer
from .words import one_line

logger = logging.getLogger("gadget.tools.mcp")

MOST_TOOLS = 2_000
MOST_PAGES = 200
LARGEST_LISTING = 4_000_000
"""Characters of all definitions as JSON."""
READING_S = 20.0
"""For what a server's tools are read; the rest is left out."""

_ANSWER: TypeAdapter[mcp_types.CallToolResult | mcp_types.InputRequiredResult] = TypeAdapter(
    mcp_types.CallToolResult | mcp_types.InputRequiredResult
)


@dataclass(frozen=True)
class Call:
    """One use of a tool.

    Attributes:
        params: under the server's own names.
        seconds: that it may take, at most half of them to open the connection.
        on_progress: told `(progress, total or None, text or None)` on the loop's thread.
        logger: hears what the server logs, where it can be told for which call.
    """

    definition: Definition
    params: dict[str, Any]
    seconds: float
    on_progress: Callable[[float, float | None, str | None], None]
    logger: logging.Logger = field(default=logger)


@dataclass(frozen=True)
class _Listed:
    """What a server said, not read yet."""

    tools: list[mcp_types.Tool]
    left_out: list[LeftOut]
    info: mcp_types.Implementation | None
    protocol: str


def list_tools(server: Server, *, timeout_s: float = 60.0) -> Listing:
    """Everything that the server offers, page by page, until a bound is reached; the rest is left out with a reason.

    To be called from a thread without an event loop.

    Raises:
        ToolError: it cannot be reached or answers with nonsense; the notes (`__notes__`) hold the end of a process's
            standard error, for the admin.
    """
    listed = LOOP.submit(_listed(server, timeout_s)).result()
    # Here, not on the loop, which all servers share.
    definitions, illegal = definitions_of(listed.tools, time.monotonic() + READING_S)
    return Listing(
        name=one_line(listed.info.name if listed.info else "", 100),
        version=one_line(listed.info.version if listed.info else "", 100),
        protocol=listed.protocol,
        tools=tuple(definitions),
        left_out=(*illegal, *listed.left_out),
    )


async def answer_to(server: Server, call: Call) -> mcp_types.CallToolResult:
    """What the server answers; it is asked once. To be run on the loop. Cancelled, it tells the server so.

    Raises:
        ToolError: with `attempted=False` if the call was never sent.
        LostError: it was sent, and the connection ended.
        TimeoutError: it was sent, and its seconds are over.
    """
    async with asyncio.timeout(call.seconds):
        return await _answer(server, call)


async def _answer(server: Server, call: Call) -> mcp_types.CallToolResult:
    connect_s = min(call.seconds / 2, 30.0)
    is_sent = False
    line: Line | None = None
    try:
        async with _line(server, call.logger, connect_s) as line:
            if call.definition.copies_params:
                await _make_known(line, call.definition.name, connect_s)
            if isinstance(server, StdioServer):  # over HTTP, the line looks
                look_before_request(is_read=False)
            is_sent = True
            answer = await _asked(line, call)
    except EXPECTED as error:
        if line is not None and is_sent:
            raise call_failed(server.title, error, line.call_status, line.fault) from error
        status, fault = (line.status, line.fault) if line else (0, "")
        raise not_connected(server.title, error, status, fault) from error
    if isinstance(answer, mcp_types.InputRequiredResult):
        raise ToolError(
            ErrorCode.OPERATION_FAILED,
            f"{server.title} did not do it: it wants to ask back first, and is not allowed to.",
            recovery_hint="Give all that it may need at once, or use another tool.",
        )
    return answer


async def _asked(line: Line, call: Call) -> mcp_types.CallToolResult | mcp_types.InputRequiredResult:
    async def note(progress: float, total: float | None, message: str | None) -> None:
        call.on_progress(progress, total, message)

    request = mcp_types.CallToolRequest(
        params=mcp_types.CallToolRequestParams(name=call.definition.name, arguments=call.params)
    )
    # Not the client's call_tool: it may list the tools after a call, and then fail a write that was done.
    return await line.client.session.send_request(request, _ANSWER, progress_callback=note)


async def _make_known(line: Line, name: str, seconds: float) -> None:
    """The client copies params into headers only for tools that it has seen listed on this connection."""
    cursor: str | None = None
    async with asyncio.timeout(seconds):
        for _ in range(MOST_PAGES):
            page = await line.client.session.list_tools(params=mcp_types.PaginatedRequestParams(cursor=cursor))
            cursor = page.next_cursor
            if not cursor or any(tool.name == name for tool in page.tools):
                return


@asynccontextmanager
async def _line(server: Server, log: logging.Logger, seconds: float) -> AsyncIterator[Line]:
    opening = CONNECTIONS.line(server, seconds) if isinstance(server, StdioServer) else http_line(server, log, seconds)
    async with opening as line:
        yield line


async def _listed(server: Server, seconds: float) -> _Listed:
    line: Line | None = None
    try:
        async with asyncio.timeout(seconds), _line(server, logger, seconds) as line:
            listing_is_fresh(server)
            tools, left_out = await _pages(line)
            session = line.client.session
            info = session.server_info
            return _Listed(tools, left_out, info, session.protocol_version or "")
    except EXPECTED as error:
        if isinstance(cause_of(error), ToolError):
            raise cause_of(error) from None
        status, fault = (line.status, line.fault) if line else (0, "")
        if line is not None and status < 300 and not fault and not isinstance(error, TimeoutError):
            raise failed(f"{server.title} gives no list of tools: {one_line(str(cause_of(error)), 500)}") from error
        raise not_connected(server.title, error, status, fault) from error


def _size_of(tool: mcp_types.Tool) -> int:
    return len(canonical_json(tool.model_dump(by_alias=True, mode="json", exclude_none=True)))


async def _pages(line: Line) -> tuple[list[mcp_types.Tool], list[LeftOut]]:
    tools: list[mcp_types.Tool] = []
    cursors: set[str | None] = {None}
    cursor: str | None = None
    size = 0
    for _ in range(MOST_PAGES):
        page = await line.client.session.list_tools(params=mcp_types.PaginatedRequestParams(cursor=cursor))
        for tool in page.tools:
            size += await asyncio.to_thread(_size_of, tool)
            if len(tools) == MOST_TOOLS or size > LARGEST_LISTING:
                return tools, [
                    LeftOut("…", f"at most {MOST_TOOLS:,} tools and {LARGEST_LISTING:,} characters are read")
                ]
            tools.append(tool)
        cursor = page.next_cursor
        if not cursor:
            return tools, []
        if cursor in cursors:
            return tools, [LeftOut("…", "the server's pages go round in a circle")]
        cursors.add(cursor)
    return tools, [LeftOut("…", f"at most {MOST_PAGES} pages are read")]
