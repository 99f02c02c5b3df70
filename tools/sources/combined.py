"""Several sources as one: the one rule about equal names, and how a toolbox is filled."""

from collections.abc import Sequence
from contextlib import ExitStack

from tools.contract import Tool
from tools.toolbox import Toolbox

from .base import ToolSource


class CombinedSource(ToolSource):
    """All tools of some sources, in their order. Equal names are an error.

    Names are compared, not ids: the highest version answers to a name, so that another source's `mail.send@2.0` would
    silently take the place of `mail.send@1.0`. One source may bring several versions.
    """

    name = "combined"

    def __init__(self, sources: Sequence[ToolSource]) -> None:
        self._sources = tuple(sources)
        self._started = ExitStack()
        self._tools: list[Tool] | None = None

    def start(self) -> None:
        """Start each, in order; if that fails, those that were started are shut down.

        Raises:
            ValueError: two bring the same name.
        """
        if self._tools is not None:
            return
        with ExitStack() as started:
            for source in self._sources:
                started.callback(source.shutdown)
                source.start()
            self._tools = self._joined()
            self._started = started.pop_all()

    def tools(self) -> list[Tool]:
        return list(self._tools or ())

    def shutdown(self) -> None:
        """Shut each down, the last one first, whatever the others do."""
        self._tools = None
        self._started.close()

    def _joined(self) -> list[Tool]:
        owners: dict[str, ToolSource] = {}
        for source in self._sources:
            for name in {tool.name: None for tool in source.tools()}:
                if (other := owners.setdefault(name, source)) is not source:
                    raise ValueError(f"{name} comes from {other.name!r} and from {source.name!r}: leave one out")
        return [tool for source in self._sources for tool in source.tools()]


def fill(toolbox: Toolbox, sources: Sequence[ToolSource]) -> None:
    """Start the sources and register their tools, in the order given.

    Raises:
        ValueError: two sources bring the same name, or a tool is not acceptable.
    """
    combined = CombinedSource(sources)
    combined.start()
    for tool in combined.tools():
        toolbox.register(tool)
