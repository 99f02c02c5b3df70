"""The source of the tools that ship."""

from collections.abc import Sequence

from tools.builtin import BUILTIN_TOOLS
from tools.contract import Tool


class BuiltinSource:
    """One instance of each class, made at the start."""

    name = "built in"

    def __init__(self, classes: Sequence[type[Tool]] = BUILTIN_TOOLS) -> None:
        self._classes = classes
        self._tools: dict[str, Tool] = {}

    def start(self) -> None:
        self._tools = {tool.name: tool for tool in (make() for make in self._classes)}

    def tools(self) -> list[Tool]:
        return list(self._tools.values())

    def tool(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def shutdown(self) -> None:
        self._tools = {}
