"""The interface of a tool source, and the base class of Gadget's own sources."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from tools.contract import Tool


@runtime_checkable
class ToolSource(Protocol):
    """A supplier of tools: built in, a plugin, an API, an MCP server, or several sources combined.

    Attributes:
        name: the source's name for people, e.g. "built in".
        left_out: a sentence for each tool that was left out.
    """

    name: str
    left_out: Sequence[str] = ()

    def start(self) -> None:
        """Load the tools; this may be slow. Do nothing if they are already loaded."""

    def tools(self) -> list[Tool]:
        """Return all tools; call it after `start`."""

    def tool(self, name: str) -> Tool | None:
        """Return the first tool of that name, or None."""
        return next((tool for tool in self.tools() if tool.name == name), None)

    def shutdown(self) -> None:
        """Release the tools and their resources."""


class LoadedSource(ToolSource):
    """A source that loads all its tools when it starts, and keeps them until it is shut down.

    Attributes:
        withheld: {tool name: why it cannot be used now}, each a sentence for people; a call of a
            granted tool fails with that sentence.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.left_out: Sequence[str] = ()
        self.withheld: Mapping[str, str] = {}
        self._tools: list[Tool] | None = None

    def start(self) -> None:
        if self._tools is None:
            self._tools = list(self._load_tools())

    def tools(self) -> list[Tool]:
        return list(self._tools or ())

    def shutdown(self) -> None:
        self._tools = None

    @abstractmethod
    def _load_tools(self) -> Iterable[Tool]:
        """Return the tools, and set `left_out` and `withheld`."""
