"""A combination of several sources with unique names, and the function that fills a toolbox."""

import logging
from collections.abc import Sequence
from contextlib import ExitStack

from tools.contract import InvalidTool, Tool, name_class
from tools.sources.base import ToolSource
from tools.toolbox import Toolbox

logger = logging.getLogger("gadget.tools")


class CombinedSource(ToolSource):
    """The tools of several sources, in order. Two sources with a tool of the same name are an error.

    Names are compared, not ids: a name refers to its highest version, so another source's `mail.send@2.0` would
    silently replace `mail.send@1.0`. One source may have several versions.

    Args:
        by_precedence: the order of the sources is their precedence: of equal names, those of the first source count,
            and the others are left out.
    """

    name = "combined"

    def __init__(self, sources: Sequence[ToolSource], *, by_precedence: bool = False) -> None:
        self._sources = tuple(sources)
        self._by_precedence = by_precedence
        self.left_out: Sequence[str] = ()
        self._started = ExitStack()
        self._tools: list[Tool] | None = None

    def start(self) -> None:
        """Start the sources in order; if one fails, shut down the started ones.

        Raises:
            ValueError: two sources have the same name.
        """
        if self._tools is not None:
            return
        with ExitStack() as started:
            for source in self._sources:
                started.callback(source.shutdown)
                source.start()
            self._tools = self._collect_tools()
            self._started = started.pop_all()

    def tools(self) -> list[Tool]:
        return list(self._tools or ())

    def shutdown(self) -> None:
        """Shut down the sources, the last one first, even if one fails."""
        self._tools = None
        self._started.close()

    def _collect_tools(self) -> list[Tool]:
        owners: dict[str, ToolSource] = {}
        left_out = [sentence for source in self._sources for sentence in source.left_out]
        for source in self._sources:
            for name in {tool.name: None for tool in source.tools()}:
                if (other := owners.setdefault(name, source)) is source:
                    continue
                if not self._by_precedence:
                    raise ValueError(f"{name} comes from both {other.name!r} and {source.name!r}: remove one")
                left_out.append(f"{name} of {source.name!r} is left out: {other.name!r} comes first and has it, too")
        self.left_out = left_out
        return [tool for source in self._sources for tool in source.tools() if owners[tool.name] is source]


def fill_toolbox(toolbox: Toolbox, sources: Sequence[ToolSource]) -> None:
    """Start the sources and register their tools, in the order given. A tool that is wrong in itself is left out.

    Raises:
        ValueError: two sources have a tool of the same name.
    """
    combined = CombinedSource(sources)
    combined.start()
    toolbox.leave_out(combined.left_out)
    toolbox.call_at_shutdown("sources", combined.shutdown)
    for tool in combined.tools():
        try:
            toolbox.register(tool)
        except InvalidTool as error:
            logger.exception("%s is left out", name_class(tool))
            toolbox.leave_out([str(error)])
