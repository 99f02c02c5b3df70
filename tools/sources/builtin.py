"""The source of tools in an explicit list: those of the engine, and an installation's own."""

from collections.abc import Sequence

from tools.contract import Tool
from tools.sources.base import ToolSource


class BuiltinSource(ToolSource):
    """A source of listed tools: it creates an instance of each class and takes tools from `@tool` as they are."""

    def __init__(self, listed: Sequence[type[Tool] | Tool], name: str = "built in") -> None:
        self.name = name
        self._listed = listed
        self._tools: list[Tool] = []

    def start(self) -> None:
        self._tools = self._tools or [each() if isinstance(each, type) else each for each in self._listed]

    def tools(self) -> list[Tool]:
        return list(self._tools)

    def shutdown(self) -> None:
        self._tools = []
