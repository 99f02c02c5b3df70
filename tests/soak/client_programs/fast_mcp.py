"""Drives the MCP client of fastmcp."""

import asyncio

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from serving import HEADERS, URL, serve


async def main() -> None:
    async with Client(StreamableHttpTransport(URL, headers=HEADERS)) as client:

        async def list_tools() -> list[str]:
            return [tool.name for tool in await client.list_tools()]

        async def call_tool(name: str, params: dict) -> str:
            result = await client.call_tool(name, params, raise_on_error=False)
            return f"{result.content} {result.structured_content}"

        await serve(list_tools, call_tool)


asyncio.run(main())
