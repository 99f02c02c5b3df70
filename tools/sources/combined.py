"""Several sources as one."""

from collections.abc import Sequence

from tools.contract import Tool

from .base import ToolSource


class CombinedSource:
    """All tools of some sources. Equal ids are an error, unless it is said whose comes first.

    Args:
        precedence: names of sources; of equal ids the tool of the earliest named is kept.
    """

    name = "combined"

    def __init__(self, sources: Sequence[ToolSource], precedence: Sequence[str] = ()) -> None:
        self._sources = tuple(sources)
        self._order = {name: place for place, name in enumerate(precedence)}
        self._tools: dict[str, Tool] = {}

    def start(self) -> None:
        """Start each.

        Raises:
            ValueError: two bring the same id, and not both are named in the precedence.
        """
        owners: dict[str, ToolSource] = {}
        kept: dict[str, Tool] = {}
        for source in self._sources:
            source.start()
            for tool in source.tools():
                other = owners.get(tool.id)
                if other is None or self._comes_first(source, other, tool.id):
                    owners[tool.id], kept[tool.id] = source, tool
        self._tools = kept

    def tools(self) -> list[Tool]:
        return list(self._tools.values())

    def tool(self, name: str) -> Tool | None:
        return next((tool for tool in self._tools.values() if tool.name == name), None)

    def shutdown(self) -> None:
        for source in self._sources:
            source.shutdown()
        self._tools = {}

    def _comes_first(self, source: ToolSource, other: ToolSource, tool_id: str) -> bool:
        if source.name not in self._order or other.name not in self._order:
            raise ValueError(
                f"{tool_id} comes from {other.name!r} and from {source.name!r}: say whose comes first, or leave one out"
            )
        return self._order[source.name] < self._order[other.name]
