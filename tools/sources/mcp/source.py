"""A source of one MCP server's tools, for plugins; organizations connect servers in the admin."""

from collections.abc import Iterator, Mapping

from tools.contract import Level, Tool
from tools.sources.base import LoadedSource
from tools.sources.mcp.calls import list_tools
from tools.sources.mcp.servers import Server
from tools.sources.mcp.tool import McpTool


class McpSource(LoadedSource):
    """The tools of a server.

    Args:
        name: the part of the tools' names before the dot.
        levels: {tool name: level}; any other tool is destructive, regardless of the server's hints.
    """

    def __init__(
        self, name: str, server: Server, levels: Mapping[str, Level] | None = None
    ) -> None:
        super().__init__(name)
        self._server = server
        self._levels = levels or {}

    def _load_tools(self) -> Iterator[Tool]:
        """List the server's tools; a faulty tool is left out.

        Raises:
            ToolError: the server cannot be reached, or its response is invalid.
        """
        found = list_tools(self._server)
        self.left_out = [f"{each.name}: {each.reason}" for each in found.skipped]
        for each in found.tools:
            level = self._levels.get(f"{self.name}.{each.legal_name}", Level.DESTRUCTIVE)
            yield McpTool(each, self._server, self.name, level)
