"""Requests whose results are returned in raw form, as the server sent them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types
from mcp import MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header

from tools.contract import canonical_json
from tools.sources.mcp.connection import McpConnection
from tools.sources.mcp.definitions import MAX_TITLE_LENGTH, SkippedTool
from tools.sources.mcp.display_text import clean_line
from tools.sources.mcp.raw_responses import ExpectedResponse, ServerError, expected_response

HEADER_KEYWORD = "x-mcp-header"


async def fetch_raw_result(
    connection: McpConnection,
    send: Callable[[], Awaitable[Any]],
    replace: Callable[[Any], dict[str, Any]],
) -> Any:
    """Send one request and return its raw result, any JSON value.

    Args:
        send: sends the request and awaits the client's own reading of the response.
        replace: see `ExpectedResponse`.

    Raises:
        ServerError: the server responded with an error object.
        Other CLIENT_ERRORS: a response did not arrive.
    """
    response = ExpectedResponse(replace)
    token = expected_response.set(response)
    try:
        await send()
    except MCPError as error:
        # For a local process, `response.error` is always the server's own error.
        if connection.body is None:
            found = response.error
            if found is not None:
                raise ServerError(found) from error
            raise
        message = await asyncio.to_thread(connection.body.find_response)
        if isinstance(message, mcp_types.JSONRPCResponse):
            return message.result
        if isinstance(message, mcp_types.JSONRPCError):
            raise ServerError(message.error) from error
        raise
    finally:
        expected_response.reset(token)
    return response.result


def select_tools_with_headers(result: Any) -> dict[str, Any]:
    """Select the tools that the MCP client must know, so that it copies their params into
    headers."""
    found = result.get("tools") if isinstance(result, dict) else None
    tools = [tool for tool in found if _wants_headers(tool)] if isinstance(found, list) else []
    return {"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def split_by_headers(tools: list[Any]) -> tuple[list[Any], list[SkippedTool]]:
    """Split off the tools with an invalid header keyword, which a client must not offer; return
    both lists."""
    kept, skipped = [], []
    for tool in tools:
        reason = (
            find_invalid_x_mcp_header(tool.get("inputSchema")) if isinstance(tool, dict) else None
        )
        if reason is None:
            kept.append(tool)
        else:
            name = clean_line(str(tool.get("name", "")), MAX_TITLE_LENGTH)
            skipped.append(
                SkippedTool(name, f"its {HEADER_KEYWORD} is not valid: {clean_line(reason, 200)}")
            )
    return kept, skipped


def _wants_headers(tool: Any) -> bool:
    """Return True if the client accepts the tool, and the tool asks for headers."""
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return False
    schema = tool.get("inputSchema")
    return (
        isinstance(schema, dict)
        and schema.get("type") == "object"
        and HEADER_KEYWORD in canonical_json(schema)
    )
