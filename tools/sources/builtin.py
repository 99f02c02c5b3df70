"""The source of tools in an explicit list: the engine's tools, or an installation's own."""

from collections.abc import Iterator, Sequence

from tools.contract import Tool
from tools.sources.base import LoadedSource


class BuiltinSource(LoadedSource):
    """A source of listed tools: classes are instantiated, `@tool` tools are used as they are."""

    def __init__(self, listed: Sequence[type[Tool] | Tool], name: str = "built in") -> None:
        super().__init__(name)
        self._listed = listed

    def _load_tools(self) -> Iterator[Tool]:
        return (each() if isinstance(each, type) else each for each in self._listed)
