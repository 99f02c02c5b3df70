"""The registry of all tools: it offers them to employees, and runs single calls outside runs."""

import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from tools.contract import (
    Environment,
    ErrorCode,
    InvalidTool,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    name_class,
)
from tools.contract.declarations import Settlement
from tools.toolbox.asked_actions import find_asked_action
from tools.toolbox.executor import Batch, FinishedCall, PreparedCall
from tools.toolbox.isolation import Unnamed, run_isolated
from tools.toolbox.limits import UNGUARDED, refuse_invalid_limits
from tools.toolbox.permissions import (
    Grants,
    Permission,
    Policy,
    is_in_mode,
    judge_call,
    select_usable,
)

logger = logging.getLogger("gadget.tools")

MODES = ("general", "code", "research", "debug")
"""The modes that a run may name even if tools do not name them; the first is the default."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*)*")

_RUN_PARAMETER = re.compile(r"organi[sz]ation|org|tenant|user")
"""Parameters with these names, with or without `_id`, would let a model choose for whom a tool
works.

Both spellings of organization are included.
"""


@dataclass(frozen=True)
class CallLimits:
    """Default limits of execution.

    Attributes:
        timeout_s: seconds that a call may take if its tool sets no timeout.
        calls_at_once: the number of calls of one pass that may run at the same time.
    """

    timeout_s: float = 30.0
    calls_at_once: int = 10


class Toolbox:
    """All tools of a process. Safe to use from many threads.

    Attributes:
        policy: the rules for all employees; `disable` and `enable` change it.
        environment: the installation's credentials for tools.
        limits: defaults for tools that set none.
        guards: the result cache and the rate limiter of all calls.
        allow_dynamic_registration: True if tools may be registered after `start`.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        environment: Environment | None = None,
        limits: CallLimits | None = None,
        allow_dynamic_registration: bool = True,
    ) -> None:
        self.policy = replace(policy or Policy(), modes=frozenset(MODES))
        self.environment = environment or Environment.empty()
        self.limits = limits or CallLimits()
        self.guards = UNGUARDED
        self.allow_dynamic_registration = allow_dynamic_registration
        self._lock = threading.RLock()
        self._by_id: dict[str, Tool] = {}
        self._by_name: dict[str, Tool] = {}
        self._started = False
        self._not_started: dict[str, str] = {}
        self._left_out: tuple[str, ...] = ()
        self._at_shutdown: list[tuple[str, Callable[[], None]]] = []

    @property
    def not_started(self) -> Mapping[str, str]:
        """The error messages of tools that are disabled because their start failed, by tool id."""
        return dict(self._not_started)

    @property
    def left_out(self) -> tuple[str, ...]:
        """A sentence for each tool that was left out because it is invalid."""
        return self._left_out

    def leave_out(self, problems: Iterable[str], withheld: Mapping[str, str] | None = None) -> None:
        """Record tools that were left out, as sentences, and tools that are withheld, by name with
        the reason."""
        with self._lock:
            self._left_out = (*self._left_out, *problems)
            self.policy = replace(
                self.policy, withheld={**self.policy.withheld, **(withheld or {})}
            )

    def with_hosts(self, allowed_hosts: frozenset[str]) -> "Toolbox":
        """Return a new toolbox with the same tools and these additional allowed hosts.

        The copy does not start tools that are added to it. Disabling a tool here later does not
        affect the copy.

        Args:
            allowed_hosts: hosts that open-world tools may contact without approval.
        """
        policy = replace(self.policy, allowed_hosts=self.policy.allowed_hosts | allowed_hosts)
        copy = Toolbox(policy, self.environment, self.limits)
        copy.guards = self.guards
        copy.leave_out(self._left_out)
        copy._replace(self._by_id)
        return copy

    @property
    def tools_by_id(self) -> Mapping[str, Tool]:
        """Every version of every tool, by id; each change of the toolbox replaces this mapping."""
        return self._by_id

    def has_same_tools(self, other: "Toolbox") -> bool:
        """Return True if both toolboxes have the same tools with the same definitions."""
        return self is other or self._hash_definitions() == other._hash_definitions()

    def _hash_definitions(self) -> dict[str, str]:
        return {key: tool.definition_hash for key, tool in self._by_id.items()}

    def register(self, tool: Tool, modes: Collection[str] | None = None) -> None:
        """Add a tool; `modes` replaces the tool's own modes.

        Raises:
            InvalidTool: one of its attributes or methods is wrong.
            ValueError: its name and version are taken.
            RuntimeError: the toolbox has started, and the settings do not allow registration after
                that.
        """
        refuse_invalid_tool(tool)
        self._add([tool], modes)

    def register_all(self, tools: Iterable[Tool]) -> None:
        """Add the tools as `register` does; an invalid tool is logged and left out."""
        valid = []
        for tool in tools:
            try:
                refuse_invalid_tool(tool)
            except InvalidTool as error:
                logger.exception("%s is left out", name_class(tool))
                self.leave_out([str(error)])
            else:
                valid.append(tool)
        self._add(valid)

    def _add(self, tools: list[Tool], modes: Collection[str] | None = None) -> None:
        with self._lock:
            by_id = dict(self._by_id)
            for tool in tools:
                if self._started and not self.allow_dynamic_registration:
                    raise RuntimeError(
                        f"{tool.id} cannot be registered after start(), because tools.allow_dynamic_registration is off"
                    )
                if other := by_id.get(tool.id):
                    classes = f"{name_class(other)} and {name_class(tool)}"
                    raise ValueError(f"{tool.id} exists twice: {classes}; rename one of them")
                by_id[tool.id] = tool
                if modes is not None:
                    tool.modes = modes  # type: ignore[assignment] # converted by Tool.__setattr__
            self._replace(by_id)
            started = self._started
        for tool in tools if started else ():
            self._start(tool)

    def unregister(self, name: str) -> None:
        """Remove one version (`name@1.2`) or all versions of a name, and shut them down.

        Raises:
            KeyError: there is no such tool.
        """
        with self._lock:
            removed = [tool for tool in self._by_id.values() if name in (tool.name, tool.id)]
            if not removed:
                raise KeyError(f"there is no tool {name!r}")
            self._replace({key: tool for key, tool in self._by_id.items() if tool not in removed})
        for tool in removed:
            _shut_down(tool)

    def get_tool(self, name: str) -> Tool | None:
        """Return a name's highest version, preferably an enabled one, or the version in `name@1.2`.

        An action that agents ask about is found by its name, too, and is never among the tools.
        """
        found = self._by_id.get(name) if "@" in name else self._by_name.get(name)
        return found or find_asked_action(name)

    def get_granted_tool(self, name: str, grants: Grants) -> Tool | None:
        """Return the tool like `get_tool`; if the name does not have a version, use the employee's
        pinned version."""
        return self.get_pinned_tool(name, grants.pinned.get(name, ""))

    def get_pinned_tool(self, name: str, version: str) -> Tool | None:
        """Return exactly this version of the tool; without a version, the same as `get_tool`."""
        return self.get_tool(f"{name}@{version}" if version else name)

    def get_called_tool(self, name: str, version: str) -> Tool | None:
        """Return the tool in the version that a call used; if it is not installed, the same as
        `get_tool`."""
        return self.get_pinned_tool(name, version) or self.get_tool(name)

    def get_defined_tool(self, name: str, definition_hash: str) -> Tool | None:
        """Return the tool in the version with this definition; if there is none, the same as
        `get_tool`."""
        versions = (tool for tool in self._by_id.values() if tool.name == name)
        found = (tool for tool in versions if tool.definition_hash == definition_hash)
        return next(found, None) or self.get_tool(name)

    def get_unique_name(self, tool: Tool) -> str:
        """Return the tool's name, or its id if several versions of the name are installed."""
        versions = sum(each.name == tool.name for each in self._by_id.values())
        return tool.name if versions == 1 else tool.id

    def get_mode_set(self, mode: str) -> list[Tool]:
        """List the tools of a mode, sorted by name; system tools do not belong to any mode.

        Raises:
            ValueError: there is no such mode.
        """
        if not self.policy.has_mode(mode):
            raise ValueError(
                f"there is no mode {mode!r}; the modes are {', '.join(self.known_modes)}"
            )
        return [tool for tool in self._by_name.values() if is_in_mode(tool, mode)]

    @property
    def modes(self) -> list[str]:
        """The modes that tools name, after the default one."""
        named = {mode for tool in self._by_id.values() for mode in tool.modes or ()}
        return [MODES[0], *sorted(named - {MODES[0]})]

    @property
    def known_modes(self) -> list[str]:
        """The modes that a run may have: the built-in modes, and those that tools name."""
        return list(dict.fromkeys([*MODES, *self.modes]))

    def tools(self) -> list[Tool]:
        """List every version of every tool, sorted by name and version."""
        return list(self._by_id.values())

    def disable(self, name: str) -> None:
        """Disable a tool (a name, or `name@1.2`) for everybody."""
        self._set_disabled(self.policy.disabled | {name})

    def enable(self, name: str) -> None:
        """Enable a tool that `disable` has disabled."""
        self._set_disabled(self.policy.disabled - {name})

    def available_tools(self, grants: Grants, policy: Policy | None = None) -> list[Tool]:
        """List the tools that an employee may use in its mode, sorted by name, in one version each.

        In a mode that does not exist, it may not use any tool.
        """
        rules, granted = policy or self.policy, grants.tools
        found = [self.get_granted_tool(name, grants) for name in self._by_name if name in granted]
        return select_usable(filter(None, found), grants, rules)

    def definitions(self, grants: Grants, policy: Policy | None = None) -> list[dict[str, Any]]:
        """List the definitions of `available_tools` for the model, always in the same order."""
        return [tool.definition for tool in self.available_tools(grants, policy)]

    def start(self) -> None:
        """Start every tool. A tool that fails to start is logged and disabled; the other tools
        work."""
        with self._lock:
            self._started = True
        for tool in self.tools():
            self._start(tool)

    def shutdown(self) -> None:
        """Shut down every tool, then the sources of tools, even if some fail."""
        for tool in self.tools():
            _shut_down(tool)
        for name, work in self._at_shutdown:
            with suppress(ToolError):
                run_isolated(Unnamed(name), "shutdown", work)

    def call_at_shutdown(self, name: str, work: Callable[[], None]) -> None:
        """Call the work after the tools are shut down; a failure is logged under this name."""
        self._at_shutdown.append((name, work))

    def get_timeout(self, tool: Tool) -> float:
        """Return the seconds that one call of the tool may take."""
        return self.limits.timeout_s if tool.timeout_s is None else tool.timeout_s

    def execute_tool_by_name(
        self, name: str, params: str | dict[str, Any], context: ToolContext, grants: Grants
    ) -> ToolResult:
        """Look up, judge and execute one call; a call that needs approval is refused."""
        tool = self.get_granted_tool(name, grants)
        verdict = judge_call(tool, params, replace(grants, mode=context.mode), self.policy, name)
        if tool is None or verdict.error is not None:
            return ToolResult.failed(verdict.error or _build_approval_error(name))
        if verdict.permission is not Permission.AUTO:
            return ToolResult.failed(_build_approval_error(name))
        batch = Batch()
        batch.start(
            PreparedCall(0, tool, verdict.params, context, self.get_timeout(tool), self.guards)
        )
        while True:
            for report in batch.wait(time.monotonic() + 3600):
                if isinstance(report, FinishedCall):
                    return report.result
                context.progress(report.fraction, report.text)

    def _start(self, tool: Tool) -> None:
        try:
            run_isolated(tool, "start", tool.start)
        except ToolError as error:
            logger.exception("%s was disabled because it did not start", tool.id)
            self._not_started[tool.id] = error.message
            self.disable(tool.id)

    def _set_disabled(self, names: frozenset[str]) -> None:
        with self._lock:
            self.policy = replace(self.policy, disabled=names)
            self._replace(self._by_id)

    def _replace(self, by_id: dict[str, Tool]) -> None:
        """Install new dictionaries instead of changing the old ones, so that readers do not need a
        lock."""
        ordered = sorted(by_id.values(), key=lambda tool: (tool.name, _parse_version(tool.version)))
        enabled_last = sorted(
            ordered, key=lambda tool: (tool.name, tool.id not in self.policy.disabled)
        )
        self._by_id = {tool.id: tool for tool in ordered}
        self._by_name = {tool.name: tool for tool in enabled_last}
        self.policy = replace(self.policy, modes=frozenset(self.known_modes))


def _build_approval_error(name: str) -> ToolError:
    return ToolError(
        ErrorCode.OPERATION_NOT_ALLOWED,
        f"{name!r} needs a person's approval: call it directly.",
        attempted=False,
    )


def format_menu(tools: Iterable[Tool]) -> str:
    """Format the tools for the system prompt, grouped by category, one per line; empty if there are
    none."""
    by_category = sorted(tools, key=lambda tool: (tool.category, tool.name))
    groups = groupby(by_category, key=lambda tool: tool.category)
    return "\n\n".join(f"{category}\n{_format_menu_lines(tools)}" for category, tools in groups)


def _format_menu_lines(tools: Iterable[Tool]) -> str:
    return "\n".join(
        f"- {tool.name} ({tool.level}): {tool.description.strip().splitlines()[0]}"
        for tool in tools
    )


def _shut_down(tool: Tool) -> None:
    try:
        run_isolated(tool, "shutdown", tool.shutdown)
    except ToolError:
        logger.exception("%s did not shut down", tool.id)


def _parse_version(version: str) -> tuple[tuple[int, str], ...]:
    """Build a sort key: 1.9 sorts below 1.10, and a text part such as beta below any number."""
    return tuple(
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"[.-]", version)
    )


def refuse_invalid_tool(tool: Tool) -> None:
    """Check and convert everything that the tool declares.

    Raises:
        InvalidTool: the message names the class, the fault and the expected value.
    """
    where, settlement = name_class(tool), Settlement(tool)
    try:
        run_isolated(Unnamed(where), "declarations", settlement.settle, (InvalidTool,))
    except ToolError as error:
        cause = type(error.__cause__).__name__
        raise InvalidTool(f"{where}: {settlement.place} cannot be read: {cause}") from error
    if not _NAME.fullmatch(tool.name):
        raise InvalidTool(f"{where}: the name {tool.name!r} must look like 'category.toolName'")
    if not tool.description.strip():
        raise InvalidTool(f"{where}: {tool.name} has no description for the model")
    if not tool.version or "@" in tool.version:
        raise InvalidTool(
            f"{where}: {tool.name} has the version {tool.version!r}; expected one like '1.0'"
        )
    _refuse_params(tool.schema, where)
    refuse_invalid_limits(tool, where)


def is_run_parameter(parameter: str) -> bool:
    """Return True if a parameter of this name is refused, because only the run provides
    its value."""
    return _RUN_PARAMETER.fullmatch(re.sub(r"_?(id|Id|ID)$", "", parameter).lower()) is not None


def _refuse_params(node: Any, where: str) -> None:
    if isinstance(node, list):
        for child in node:
            _refuse_params(child, where)
    if not isinstance(node, dict):
        return
    properties = node.get("properties")
    for parameter in properties if isinstance(properties, dict) else ():
        if is_run_parameter(parameter):
            raise InvalidTool(
                f"{where}: the parameter {parameter!r} comes from the run (context), never from the model"
            )
    if node.get("uniqueItems") is True:
        raise InvalidTool(f"{where}: a set has no stable order; use a list")
    for child in node.values():
        _refuse_params(child, where)
