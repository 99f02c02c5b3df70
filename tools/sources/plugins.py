"""Plugins: tools of installed packages, found by entry points of the group `gadget.tools`."""

import logging
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from email.utils import parseaddr
from importlib.metadata import EntryPoint, entry_points
from traceback import format_exception_only
from typing import Any

from tools.contract import InvalidTool, Tool, ToolError, name_class
from tools.contract.plain_json import describe_value
from tools.schemas.dialects import refuse_illegal_schema
from tools.schemas.expansion import IllegalSchemaError
from tools.sources.base import LoadedSource, ToolSource
from tools.toolbox import Toolbox, refuse_invalid_tool, run_isolated
from tools.toolbox.isolation import Unnamed

logger = logging.getLogger("gadget.tools")

GROUP = "gadget.tools"
MAX_PROBLEM_LENGTH = 500
OFFICE = "office"
OFFICE_DEMO = "office-demo"
_SHIPPED = {
    OFFICE: EntryPoint(OFFICE, "tools.office.tools:OFFICE_TOOLS", GROUP),
    OFFICE_DEMO: EntryPoint(OFFICE_DEMO, "tools.office.demo_register:DEMO_TOOLS", GROUP),
}
"""Plugins that ship with Gadget, by name; no package can take these names."""
SHIPPED_CATEGORIES = frozenset(
    {
        *("analysis", "content", "data", "demo", "employee", "files", "report"),
        *("results", "schedule", "search_google", "system", "utility", "web"),
    }
)
"""The categories of the shipped tools. No other tool may have them, even if the office plugin is
off: a category tells cards and pages that a call is about records, files or schedules."""


class PluginError(ValueError):
    """An entry point that cannot be used; the message gives the reason."""


@dataclass(frozen=True)
class BrokenPlugin:
    """A plugin that was left out, with the reason for the installation's owner."""

    name: str
    problem: str


class PluginSource(LoadedSource):
    """The tools of one entry point: a list of tools and tool classes, a source, or a function that
    returns such a list or source.

    An invalid tool is left out; the other tools work. In the catalog, each tool shows this plugin
    as its source and, unless it names an author, the package's author. The tools of a shipped
    plugin keep their own source and author.

    Args:
        taken: names of other tools.

    Attributes:
        name: the name of the entry point.
    """

    def __init__(self, entry_point: EntryPoint, taken: Collection[str] = frozenset()) -> None:
        super().__init__(entry_point.name)
        self._entry_point = entry_point
        self._taken = taken
        self._own: ToolSource | None = None

    def _load_tools(self) -> list[Tool]:
        """Import the package and create its tools; if it provides a source, start it.

        Raises:
            PluginError: the entry point does not provide tools, none of them can be used, or the
                name of one is taken or belongs to a category of shipped tools.
            Exception: the package's own code failed.
        """
        with ExitStack() as failed:
            failed.callback(self.shutdown)
            tools = self._prepare_tools()
            names = {tool.name for tool in tools} | self.withheld.keys()
            if not names:
                raise PluginError(next(iter(self.left_out), "it has no tools"))
            Toolbox().register_all(tools)  # refuses a repeated name and version
            if repeated := sorted(names.intersection(self._taken)):
                raise PluginError(f"these names are already taken: {', '.join(repeated)}")
            reserved = SHIPPED_CATEGORIES & {name.partition(".")[0] for name in names}
            if reserved and not _is_shipped(self._entry_point):
                raise PluginError(
                    f"these categories are for Gadget's own tools: {', '.join(sorted(reserved))}"
                )
            failed.pop_all()
        for problem in self.left_out:
            logger.error("the plugin %s: a tool was left out: %s", self.name, problem)
        return tools

    def _prepare_tools(self) -> list[Tool]:
        """Load and check the tools, and set `left_out` and `withheld`."""
        origin = _find_origin(self._entry_point)
        named = _call_function(self._entry_point.load())
        if isinstance(named, ToolSource):
            self._own = named
            named.start()
            self.withheld = {
                str(name): _shorten(str(why))
                for name, why in getattr(named, "withheld", {}).items()
            }
        listed = named.tools() if isinstance(named, ToolSource) else _list_tools(named)
        left_out = (
            [_shorten(str(each)) for each in named.left_out]
            if isinstance(named, ToolSource)
            else []
        )
        tools = list[Tool]()
        for each in listed:
            try:
                tools.append(_prepare_tool(each, origin))
            except InvalidTool as error:
                left_out.append(_shorten(str(error)))
        self.left_out = left_out
        return tools

    def shutdown(self) -> None:
        """Forget the tools, and shut down the package's own source."""
        super().shutdown()
        own, self._own = self._own, None
        if own is not None:
            own.shutdown()


def start_plugins(
    names: Sequence[str], taken: Collection[str] = frozenset()
) -> tuple[list[PluginSource], list[BrokenPlugin]]:
    """Start the plugins with these names in order; return the started sources and the broken
    plugins.

    Args:
        taken: names that plugins' tools may not have; each plugin adds its tools' names for the
            next plugins.
    """
    sources: list[PluginSource] = []
    broken: list[BrokenPlugin] = []
    names_taken = frozenset(taken)
    for name in dict.fromkeys(names):
        try:
            source = PluginSource(_find_entry_point(name), names_taken)
            source.start()
        except (Exception, SystemExit) as error:  # third-party code may raise anything
            logger.exception("the plugin %s was left out", name)
            broken.append(BrokenPlugin(name, _summarize_error(error)))
        else:
            sources.append(source)
            names_taken |= {tool.name for tool in source.tools()} | source.withheld.keys()
    return sources, broken


def _find_entry_point(name: str) -> EntryPoint:
    """Find the entry point with this name; refuse a name that two packages share."""
    if name in _SHIPPED:
        return _SHIPPED[name]
    installed = entry_points(group=GROUP)
    found = [each for each in installed if each.name == name]
    if not found:
        known = ", ".join(sorted(each.name for each in installed)) or "none"
        raise PluginError(
            f"no installed package has an entry point of this name; available: {known}"
        )
    if len(found) > 1:
        raise PluginError(
            f"several packages have an entry point of this name: {', '.join(sorted(map(_name_package, found)))}"
        )
    return found[0]


def _call_function(named: Any) -> Any:
    """Return the entry point's object; call it if it is a function or the class of a source."""
    is_source_class = isinstance(named, type) and ToolSource in named.__mro__
    return (
        named()
        if is_source_class or (callable(named) and not isinstance(named, type | Tool))
        else named
    )


def _list_tools(listed: Any) -> Iterable[Any]:
    """Return the entry point's list; PluginError if it is anything else."""
    if isinstance(listed, str | bytes) or not isinstance(listed, Iterable):
        raise PluginError(f"expected a list of tools, not {type(listed).__name__}")
    return listed


@dataclass(frozen=True)
class _Origin:
    """The source and the author that a plugin's tools show."""

    source: str
    author: str


def _prepare_tool(each: Any, origin: _Origin | None) -> Tool:
    """Instantiate a tool class, check the tool, and set its source and author, unless it ships with
    Gadget.

    Raises:
        InvalidTool: it is not a tool, or cannot be used.
    """
    if isinstance(each, type) and issubclass(each, Tool):
        where = f"{each.__module__}.{each.__qualname__}"
        try:
            tool = run_isolated(Unnamed(where), "__init__", each)
        except ToolError as error:
            raise InvalidTool(f"{where}: {_summarize_error(error.__cause__ or error)}") from error
    elif isinstance(each, Tool):
        tool = each
    else:
        raise InvalidTool(
            f"{describe_value(each)} is not a tool; for example: a class that inherits from Tool"
        )
    refuse_invalid_tool(tool)
    try:
        refuse_illegal_schema(tool.schema)
    except IllegalSchemaError as error:
        raise InvalidTool(f"{name_class(tool)}: the schema of Params is {error}") from error
    if origin is not None:
        tool.source = origin.source
        tool.author = origin.author if tool.author == Tool.author else tool.author
    return tool


def _name_package(entry_point: EntryPoint) -> str:
    return entry_point.dist.name if entry_point.dist else entry_point.value


def _is_shipped(entry_point: EntryPoint) -> bool:
    return entry_point is _SHIPPED.get(entry_point.name)


def _find_origin(entry_point: EntryPoint) -> _Origin | None:
    """Return the plugin's name and the package's author, or else the package's name; None for a
    shipped plugin."""
    if _is_shipped(entry_point):
        return None
    metadata = dict(entry_point.dist.metadata.json) if entry_point.dist else {}
    email_name, _ = parseaddr(str(metadata.get("author_email", "")))
    author = metadata.get("author") or email_name or _name_package(entry_point)
    return _Origin(entry_point.name, str(author))


def _summarize_error(error: BaseException) -> str:
    """Return the error on one line."""
    return _shorten(
        str(error) if isinstance(error, PluginError) else "".join(format_exception_only(error))
    )


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_PROBLEM_LENGTH else f"{line[: MAX_PROBLEM_LENGTH - 1]}…"
