"""Tools that installed Python packages bring, by an entry point of the group `gadget.tools`."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tools.contract import Tool
from tools.toolbox import Toolbox

logger = logging.getLogger("gadget.tools")

GROUP = "gadget.tools"


@dataclass(frozen=True)
class Broken:
    """A plugin that was left out, and why, in words for whoever runs this installation."""

    name: str
    problem: str


class PluginSource:
    """The tools of one entry point: a list of tools or classes of tools, or a function without params that makes one.

    Attributes:
        name: of the entry point.
    """

    def __init__(self, entry_point: EntryPoint) -> None:
        self.name = entry_point.name
        self._entry_point = entry_point
        self._tools: list[Tool] = []

    def start(self) -> None:
        """Import the package and make its tools.

        Raises:
            TypeError: what the entry point names is not tools.
            Exception: whatever the package's own code raises.
        """
        named = self._entry_point.load()
        listed = named() if callable(named) and not isinstance(named, type | Tool) else named
        self._tools = [_tool_of(each) for each in _sequence_of(listed)]
        _refuse_unfit(self._tools)

    def tools(self) -> list[Tool]:
        return list(self._tools)

    def tool(self, name: str) -> Tool | None:
        return next((tool for tool in self._tools if tool.name == name), None)

    def shutdown(self) -> None:
        self._tools = []


def plugin_sources(names: Sequence[str]) -> tuple[list[PluginSource], list[Broken]]:
    """The started sources of these entry points, in this order, and those that are missing or fail."""
    installed = {each.name: each for each in entry_points(group=GROUP)}
    sources, broken = [], []
    for name in names:
        if name not in installed:
            known = ", ".join(sorted(installed)) or "none"
            broken.append(Broken(name, f"no installed package has an entry point of this name; there are: {known}"))
            continue
        source = PluginSource(installed[name])
        try:
            source.start()
        except Exception as error:  # a package of somebody else may raise anything
            logger.exception("the plugin %s was left out", name)
            broken.append(Broken(name, f"{type(error).__name__}: {error}"))
        else:
            sources.append(source)
    return sources, broken


def _sequence_of(listed: Any) -> Iterable[Any]:
    if isinstance(listed, str | bytes) or not isinstance(listed, Iterable):
        raise TypeError(f"expected a list of tools, not {type(listed).__name__}")
    return listed


def _tool_of(each: Any) -> Tool:
    tool = each() if isinstance(each, type) and issubclass(each, Tool) else each
    if not isinstance(tool, Tool):
        raise TypeError(f"{each!r} is not a tool")
    return tool


def _refuse_unfit(tools: Iterable[Tool]) -> None:
    """Find out in a toolbox of its own what the installation's would refuse, so that a plugin comes whole or not."""
    trial = Toolbox()
    for tool in tools:
        trial.register(tool)
