"""The source of tools that stand in an explicit list: those that ship, and an installation's own."""

from collections.abc import Sequence

from tools.builtin import BUILTIN_TOOLS
from tools.contract import Tool

from .base import ToolSource


class BuiltinSource(ToolSource):
    """One instance of each class, made at the start, and what `@tool` made, as it is."""

    def __init__(self, listed: Sequence[type[Tool] | Tool] = BUILTIN_TOOLS, name: str = "built in") -> None:
        self.name = name
        self._listed = listed
        self._tools: list[Tool] = []

    def start(self) -> None:
        self._tools = self._tools or [each() if isinstance(each, type) else each for each in self._listed]

    def tools(self) -> list[Tool]:
        return list(self._tools)

    def shutdown(self) -> None:
        self._tools = []
