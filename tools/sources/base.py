"""Where tools come from: what every source can do."""

from typing import Protocol

from tools.contract import Tool


class ToolSource(Protocol):
    """Supplies tools: those that ship, those of a plugin, or those of several sources.

    Attributes:
        name: what people call it, e.g. "built in".
    """

    name: str

    def start(self) -> None:
        """Make the tools known; may be slow. What is started already stays as it is."""

    def tools(self) -> list[Tool]:
        """All of them, once started."""

    def tool(self, name: str) -> Tool | None:
        """The first one of that name."""
        return next((tool for tool in self.tools() if tool.name == name), None)

    def shutdown(self) -> None:
        """Let go of the tools, and of whatever they are made from."""
