"""The interface of a tool source."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from tools.contract import Tool


@runtime_checkable
class ToolSource(Protocol):
    """A supplier of tools: the built-in ones, a plugin, an API, an MCP server, or several sources combined.

    Attributes:
        name: its name for people, e.g. "built in".
        left_out: a sentence for each tool that was left out.
    """

    name: str
    left_out: Sequence[str] = ()

    def start(self) -> None:
        """Load the tools; may be slow. Do nothing if they are already loaded."""

    def tools(self) -> list[Tool]:
        """Return all tools, once started."""

    def tool(self, name: str) -> Tool | None:
        """Return the first tool of that name, or None."""
        return next((tool for tool in self.tools() if tool.name == name), None)

    def shutdown(self) -> None:
        """Release the tools and their resources."""
