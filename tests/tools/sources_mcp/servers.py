"""Servers for the tests of MCP, which run as real processes, and helpers for calling
their tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tools.contract import Fence, Level, ToolContext, ToolResult
from tools.sources.mcp import McpTool, Server, StdioServer, list_tools
from tools.testing import run_tool
from tools.toolbox import PreparedCall, run_call

FOLDER = Path(__file__).parent.parent / "mcp_servers"
PUBLISHED = StdioServer((sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"))
SECRET = "s3cret-of-the-server"


def misbehaving(owner: str = "", **options: object) -> StdioServer:
    """Describe a misbehaving server; each owner, normally the test's name, gets a process of its
    own."""
    told = [f"{name}={value}" for name, value in options.items()]
    command = (sys.executable, str(FOLDER / "misbehaving.py"), *told)
    return StdioServer(command, {"TOKEN": SECRET}, owner=owner)


def tool_of(server: Server, name: str, level: Level = Level.READ) -> McpTool:
    definition = next(each for each in list_tools(server).tools if each.name == name)
    return McpTool(definition, server, "there", level)


def called(tool: McpTool, timeout_s: float = 20.0, **params: Any) -> ToolResult:
    tool.timeout_s = timeout_s
    return run_tool(tool, params)


def called_too_late(tool: McpTool) -> ToolResult:
    """Make a call that starts in time, but is too late when its request is about to be sent; return
    its result."""
    in_time = iter([True])
    look = Fence(lambda: next(in_time, False))
    return run_call(PreparedCall(0, tool, {}, ToolContext(1), 20.0, fence=look))


def failure_of(result: ToolResult) -> tuple[str, bool, str]:
    """Return the failure's code, True if it is definite, and its message."""
    assert result.error is not None, result
    return result.error.code.value, result.error.is_definite, result.error.message
