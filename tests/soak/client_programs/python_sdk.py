"""Drives the client of the official Python SDK for MCP."""

import asyncio

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from serving import HEADERS, URL, serve


async def main() -> None:
    async with (
        httpx2.AsyncClient(headers=HEADERS, timeout=60) as http,
        Client(streamable_http_client(URL, http_client=http)) as client,
    ):

        async def list_tools() -> list[str]:
            return [tool.name for tool in (await client.list_tools()).tools]

        async def call_tool(name: str, params: dict) -> str:
            return (await client.call_tool(name, params)).model_dump_json()

        await serve(list_tools, call_tool)


asyncio.run(main())
