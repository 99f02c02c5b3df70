"""The source of tools from one MCP server, for plugins; an organization connects its own in the admin."""

from collections.abc import Mapping, Sequence

from tools.contract import Level, Tool
from tools.sources.base import ToolSource
from tools.sources.mcp.calls import list_tools
from tools.sources.mcp.definitions import Definition
from tools.sources.mcp.servers import Server
from tools.sources.mcp.tool import McpTool


class McpSource(ToolSource):
    """The tools of a server.

    Args:
        name: the part of the tools' names before the dot.
        levels: by the tool's name; any other tool is destructive, whatever the server says.
    """

    def __init__(self, name: str, server: Server, levels: Mapping[str, Level] | None = None) -> None:
        self.name = name
        self.left_out: Sequence[str] = ()
        self._server = server
        self._levels = levels or {}
        self._tools: list[Tool] = []

    def start(self) -> None:
        """List the server's tools; a faulty one is left out.

        Raises:
            ToolError: the server cannot be reached, or its response is invalid.
        """
        if self._tools:
            return
        found = list_tools(self._server)
        self._tools = [self._build(each) for each in found.tools]
        self.left_out = [f"{each.name}: {each.reason}" for each in found.skipped]

    def _build(self, definition: Definition) -> Tool:
        level = self._levels.get(f"{self.name}.{definition.legal_name}", Level.DESTRUCTIVE)
        return McpTool(definition, self._server, self.name, level)

    def tools(self) -> list[Tool]:
        return list(self._tools)

    def shutdown(self) -> None:
        self._tools = []
