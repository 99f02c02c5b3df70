"""Where tools come from: what every source can do, and how a toolbox is filled from several."""

from collections.abc import Iterable
from typing import Protocol

from tools.contract import Tool
from tools.toolbox import Toolbox


class ToolSource(Protocol):
    """Supplies tools: built in, from a plugin, from a description, or from a server."""

    @property
    def name(self) -> str:
        """What the catalog calls it, e.g. "built in"."""

    def start(self) -> None:
        """Make the tools known; may be slow, because it may fetch and parse."""

    def tools(self) -> list[Tool]:
        """All of them, once started."""

    def tool(self, name: str) -> Tool | None:
        """The one of that name."""

    def shutdown(self) -> None:
        """Let go of connections and processes."""


def fill(toolbox: Toolbox, sources: Iterable[ToolSource]) -> None:
    """Start each source and register its tools, in the order given.

    Raises:
        ValueError: two sources bring the same name and version.
    """
    for source in sources:
        source.start()
        for tool in source.tools():
            toolbox.register(tool)
