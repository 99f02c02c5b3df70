"""A combination of several sources with unique names, and the function that fills a toolbox."""

import logging
from collections.abc import Iterable, Sequence
from contextlib import ExitStack

from tools.contract import Tool
from tools.sources.base import LoadedSource, ToolSource
from tools.sources.builtin import BuiltinSource
from tools.toolbox import Toolbox

logger = logging.getLogger("gadget.tools")


class CombinedSource(LoadedSource):
    """The tools of several sources, in order. If two sources have a tool of the same name, that is
    an error.

    Names are compared, not ids: a name refers to its highest version, so another source's
    `mail.send@2.0` would silently replace `mail.send@1.0`. One source may have several versions of
    a tool. The name of a withheld tool is taken, too.

    Args:
        by_precedence: if a name occurs twice, use the tool of the first source and leave out the
            other, instead of raising an error.
    """

    def __init__(self, sources: Sequence[ToolSource], *, by_precedence: bool = False) -> None:
        super().__init__("combined")
        self._sources = tuple(sources)
        self._by_precedence = by_precedence
        self._started = ExitStack()

    def _load_tools(self) -> list[Tool]:
        """Start the sources in order; if a source fails, shut down those that have started.

        Raises:
            ValueError: two sources have a tool of the same name.
        """
        with ExitStack() as started:
            for source in self._sources:
                started.callback(source.shutdown)
                source.start()
            tools = self._collect_tools()
            self._started = started.pop_all()
        return tools

    def shutdown(self) -> None:
        """Shut down the sources, the last one first, even if one fails."""
        super().shutdown()
        self._started.close()

    def _collect_tools(self) -> list[Tool]:
        owners: dict[str, ToolSource] = {}
        left_out = [sentence for source in self._sources for sentence in source.left_out]
        withheld = [(source, getattr(source, "withheld", {})) for source in self._sources]
        for source, reasons in withheld:
            for name in dict.fromkeys([*(tool.name for tool in source.tools()), *reasons]):
                if (other := owners.setdefault(name, source)) is source:
                    continue
                if not self._by_precedence:
                    raise ValueError(
                        f"{name} comes from both {other.name!r} and {source.name!r}: remove one"
                    )
                left_out.append(
                    f"{name} of {source.name!r} is left out: {other.name!r} already provides it"
                )
                logger.error("%s", left_out[-1])
        self.left_out = left_out
        self.withheld = {
            name: why
            for source, reasons in withheld
            for name, why in reasons.items()
            if owners[name] is source
        }
        return [
            tool
            for source in self._sources
            for tool in source.tools()
            if owners[tool.name] is source
        ]


def fill_toolbox(
    toolbox: Toolbox, sources: Iterable[ToolSource], *, by_precedence: bool = False
) -> None:
    """Start the sources and register their tools in order; an invalid tool is left out.

    Every toolbox gets its tools here. Tools that it already has, and names that it withholds, are
    treated as the first source.

    Args:
        by_precedence: see `CombinedSource`.

    Raises:
        ValueError: two sources have a tool of the same name.
    """
    present = toolbox.tools()
    installation = BuiltinSource(present, "the installation")
    installation.withheld = toolbox.policy.withheld
    combined = CombinedSource([installation, *sources], by_precedence=by_precedence)
    combined.start()
    toolbox.call_at_shutdown("sources", combined.shutdown)
    toolbox.leave_out(combined.left_out, combined.withheld)
    toolbox.register_all(combined.tools()[len(present) :])
