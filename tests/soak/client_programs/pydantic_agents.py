"""Drives the MCP client of pydantic-ai."""

import asyncio

from fastmcp.client.transports import StreamableHttpTransport
from pydantic_ai.mcp import MCPToolset
from serving import HEADERS, URL, serve


async def main() -> None:
    async with MCPToolset(StreamableHttpTransport(URL, headers=HEADERS)) as server:

        async def list_tools() -> list[str]:
            return [tool.name for tool in await server.list_tools()]

        async def call_tool(name: str, params: dict) -> str:
            return str(await server.direct_call_tool(name, params))

        await serve(list_tools, call_tool)


asyncio.run(main())
