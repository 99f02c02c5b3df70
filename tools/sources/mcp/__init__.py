"""Tools of Model Context Protocol (MCP) servers, over standard input/output or streamable HTTP.

The protocol's SDK is imported on first use: when a server's tools are first listed or built. Most
processes never do this, and the SDK would make up a sixth of the code that they load.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tools.sources.mcp.servers import HttpServer, Server, StdioServer

if TYPE_CHECKING:
    from tools.sources.mcp.calls import list_tools
    from tools.sources.mcp.connection import has_tool_list_changed
    from tools.sources.mcp.definitions import Definition, McpToolList, SkippedTool, suggest_level
    from tools.sources.mcp.process_pool import PROCESS_POOL
    from tools.sources.mcp.source import McpSource
    from tools.sources.mcp.tool import McpTool

__all__ = [
    "PROCESS_POOL",
    "Definition",
    "HttpServer",
    "McpSource",
    "McpTool",
    "McpToolList",
    "Server",
    "SkippedTool",
    "StdioServer",
    "has_tool_list_changed",
    "list_tools",
    "suggest_level",
]

_LAZY = {
    "PROCESS_POOL": "process_pool",
    "Definition": "definitions",
    "McpSource": "source",
    "McpTool": "tool",
    "SkippedTool": "definitions",
    "McpToolList": "definitions",
    "has_tool_list_changed": "connection",
    "list_tools": "calls",
    "suggest_level": "definitions",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
