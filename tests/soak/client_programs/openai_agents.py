"""Drives the MCP client of openai-agents, whose model reads the return value of a function tool."""

import asyncio
import json

from serving import HEADERS, URL, serve

from agents import Agent
from agents.mcp import MCPServerStreamableHttp, MCPUtil
from agents.run_context import RunContextWrapper
from agents.tool_context import ToolContext


async def main() -> None:
    params = {"url": URL, "headers": HEADERS, "timeout": 60}
    async with MCPServerStreamableHttp(params=params, client_session_timeout_seconds=60) as server:
        agent = Agent(name="agent", mcp_servers=[server])
        tools = await MCPUtil.get_function_tools(
            server,
            convert_schemas_to_strict=False,
            run_context=RunContextWrapper(None),
            agent=agent,
        )

        async def list_tools() -> list[str]:
            return [tool.name for tool in tools]

        async def call_tool(name: str, params: dict) -> str:
            tool, given = next(tool for tool in tools if tool.name == name), json.dumps(params)
            context = ToolContext(
                context=None, tool_name=name, tool_call_id="call", tool_arguments=given
            )
            return str(await tool.on_invoke_tool(context, given))

        await serve(list_tools, call_tool)


asyncio.run(main())
