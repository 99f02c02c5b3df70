"""Drives the MCP client of langchain-mcp-adapters."""

import asyncio

from langchain_mcp_adapters.client import MultiServerMCPClient
from serving import HEADERS, URL, serve


async def main() -> None:
    server = {"transport": "streamable_http", "url": URL, "headers": HEADERS}
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"gadget": server}).get_tools()}

    async def list_tools() -> list[str]:
        return list(tools)

    async def call_tool(name: str, params: dict) -> str:
        return str(await tools[name].ainvoke(params))

    await serve(list_tools, call_tool)


asyncio.run(main())
