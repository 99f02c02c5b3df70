"""Tools that installed Python packages bring, by an entry point of the group `gadget.tools`."""

import logging
import traceback
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from email.utils import parseaddr
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tools.contract import Tool
from tools.toolbox import Toolbox

from .base import ToolSource

logger = logging.getLogger("gadget.tools")

GROUP = "gadget.tools"
LONGEST_PROBLEM = 500


class PluginError(ValueError):
    """What an entry point gives cannot be used; the text says why."""


@dataclass(frozen=True)
class Broken:
    """A plugin that was left out, and why, in words for whoever runs this installation."""

    name: str
    problem: str


class PluginSource(ToolSource):
    """The tools of one entry point: a list of tools and classes of tools, or a function without params that makes one.

    Each tool says in the catalog that it comes from this plugin, and, unless it names an author itself, whose it is.

    Args:
        taken: names that belong to others.

    Attributes:
        name: of the entry point.
    """

    def __init__(self, entry_point: EntryPoint, taken: Collection[str] = frozenset()) -> None:
        self.name = entry_point.name
        self._entry_point = entry_point
        self._taken = taken
        self._tools: list[Tool] = []

    def start(self) -> None:
        """Import the package and make its tools: all of them, or none if any is unfit.

        Raises:
            PluginError: what the entry point names is not tools, is nothing, or has names of others.
            ValueError: a toolbox accepts one of the tools not.
            Exception: whatever the package's own code raises.
        """
        if self._tools:
            return
        tools = [_tool_of(each) for each in _listed(self._entry_point.load())]
        if not tools:
            raise PluginError("it names no tools")
        _refuse_unfit(tools)
        if twice := sorted({tool.name for tool in tools if tool.name in self._taken}):
            raise PluginError(f"there are tools of these names already: {', '.join(twice)}")
        author = _author_of(self._entry_point)
        for tool in tools:
            tool.source = self.name
            tool.author = author if tool.author == Tool.author else tool.author
        self._tools = tools

    def tools(self) -> list[Tool]:
        return list(self._tools)

    def shutdown(self) -> None:
        self._tools = []


def plugin_sources(
    names: Sequence[str], taken: Collection[str] = frozenset()
) -> tuple[list[PluginSource], list[Broken]]:
    """The started sources of these entry points, in this order, and those that are missing or fail.

    Args:
        taken: names of tools that no plugin may bring; what one brings, those after it may not.
    """
    sources: list[PluginSource] = []
    broken: list[Broken] = []
    names_taken = frozenset(taken)
    for name in dict.fromkeys(names):
        try:
            source = PluginSource(_entry_point(name), names_taken)
            source.start()
        except (Exception, SystemExit) as error:  # a package of somebody else may raise anything
            logger.exception("the plugin %s was left out", name)
            broken.append(Broken(name, _reason(error)))
        else:
            sources.append(source)
            names_taken |= {tool.name for tool in source.tools()}
    return sources, broken


def _entry_point(name: str) -> EntryPoint:
    """The one of this name; of two packages that have it, neither is taken by chance."""
    installed = entry_points(group=GROUP)
    found = [each for each in installed if each.name == name]
    if not found:
        known = ", ".join(sorted(each.name for each in installed)) or "none"
        raise PluginError(f"no installed package has an entry point of this name; there are: {known}")
    if len(found) > 1:
        raise PluginError(
            f"several packages have an entry point of this name: {', '.join(sorted(map(_package, found)))}"
        )
    return found[0]


def _listed(named: Any) -> Iterable[Any]:
    """What stands behind the entry point: a list, or what makes one."""
    listed = named() if callable(named) and not isinstance(named, type | Tool) else named
    if isinstance(listed, str | bytes) or not isinstance(listed, Iterable):
        raise PluginError(f"expected a list of tools, not {type(listed).__name__}")
    return listed


def _tool_of(each: Any) -> Tool:
    tool = each() if isinstance(each, type) and issubclass(each, Tool) else each
    if not isinstance(tool, Tool):
        raise PluginError(f"{each!r} is not a tool")
    return tool


def _refuse_unfit(tools: Iterable[Tool]) -> None:
    """Find out in a toolbox of its own what the installation's would refuse, so that a plugin comes whole or not."""
    trial = Toolbox()
    for tool in tools:
        trial.register(tool)


def _package(entry_point: EntryPoint) -> str:
    return entry_point.dist.name if entry_point.dist else entry_point.value


def _author_of(entry_point: EntryPoint) -> str:
    """Who made the package, as it says itself, else the package's name."""
    told = dict(entry_point.dist.metadata.json) if entry_point.dist else {}
    return str(told.get("author") or parseaddr(str(told.get("author_email", "")))[0] or _package(entry_point))


def _reason(error: BaseException) -> str:
    """On one line."""
    told = str(error) if isinstance(error, PluginError) else "".join(traceback.format_exception_only(error))
    line = " ".join(told.split())
    return line if len(line) <= LONGEST_PROBLEM else f"{line[: LONGEST_PROBLEM - 1]}…"
