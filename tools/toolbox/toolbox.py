"""The registry of all tools: who is offered what, and the whole path of a call for callers without a run."""

import logging
import re
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from tools.contract import Environment, ErrorCode, Tool, ToolContext, ToolError, ToolResult

from .executor import Batch, Finished, PreparedCall
from .isolation import isolated
from .limits import UNGUARDED, refuse_unfit_limits
from .permissions import Grants, Permission, Policy, in_mode, refusal_for, verdict_for

logger = logging.getLogger("gadget.tools")

MODES = ("general", "code", "research", "debug")
"""The modes that ship; the first is the default."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*)*")

_FROM_THE_RUN = frozenset({"organization", "organisation", "org", "tenant", "user"})
"""Parameters of these names, with or without `_id`, would let a model choose for whom a tool works."""


@dataclass(frozen=True)
class Limits:
    """What one call and one pass may take: seconds of a call whose tool names none, and calls at the same time."""

    timeout_s: float = 30.0
    calls_at_once: int = 10


class Toolbox:
    """All tools of a process. Safe to use from many threads.

    Attributes:
        policy: what holds for every employee; `disable` and `enable` change it.
        environment: the credentials that tools get.
        limits: of calls, where their tools name none.
        guards: keep and count the results of all calls.
        allow_dynamic_registration: whether tools may be registered after `start`.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        environment: Environment | None = None,
        limits: Limits | None = None,
        allow_dynamic_registration: bool = True,
    ) -> None:
        self.policy = policy or Policy()
        self.environment = environment or Environment.empty()
        self.limits = limits or Limits()
        self.guards = UNGUARDED
        self.allow_dynamic_registration = allow_dynamic_registration
        self._lock = threading.RLock()
        self._by_id: dict[str, Tool] = {}
        self._by_name: dict[str, Tool] = {}
        self._started = False
        self._not_started: dict[str, str] = {}

    @property
    def not_started(self) -> Mapping[str, str]:
        """Tools that were switched off because their start failed: what each said, by its id."""
        return dict(self._not_started)

    def extended(
        self, tools: Iterable[Tool], allowed_hosts: frozenset[str], withheld: Mapping[str, str] | None = None
    ) -> "Toolbox":
        """Another one with these tools besides its own, whose open-world tools may reach these hosts unasked.

        `withheld` says, by name, why others are not among them (see `Policy`). The tools are not started. What is
        switched off here later is not switched off there. A tool that is not acceptable, or whose name one of its own
        has in any version, is logged and left out: the others work.
        """
        twin = Toolbox(
            replace(self.policy, allowed_hosts=self.policy.allowed_hosts | allowed_hosts, withheld=withheld or {}),
            self.environment,
            self.limits,
        )
        twin.guards = self.guards
        by_id = dict(self._by_id)
        for tool in tools:
            try:
                _refuse_unfit(tool)
                by_id[tool.id] = _first_of_its_id(tool, self._by_name | by_id)
            except ValueError:
                logger.exception("%s is left out", tool.id)
        twin._replace(by_id)
        return twin

    def promises_like(self, other: "Toolbox") -> bool:
        """Whether both have the same tools, by what each promises."""
        return self is other or self._promises() == other._promises()

    def _promises(self) -> dict[str, str]:
        return {key: tool.definition_hash for key, tool in self._by_id.items()}

    def register(self, tool: Tool, modes: Collection[str] | None = None) -> None:
        """Add a tool; `modes` replaces its own modes.

        Raises:
            ValueError: its name, description or params are not acceptable, or its name and version are taken.
            RuntimeError: the toolbox was started and its settings allow no later registration.
        """
        _refuse_unfit(tool)
        with self._lock:
            if self._started and not self.allow_dynamic_registration:
                raise RuntimeError(
                    f"{tool.id} comes too late: tools.allow_dynamic_registration is off, so register it before start()"
                )
            added = {tool.id: _first_of_its_id(tool, self._by_id)}
            if modes is not None:
                tool.modes = frozenset(modes)
            self._replace({**self._by_id, **added})
            started = self._started
        if started:
            self._start(tool)

    def unregister(self, name: str) -> None:
        """Take away one version (`name@1.2`) or all versions of a name, and shut them down.

        Raises:
            KeyError: there is no such tool.
        """
        with self._lock:
            gone = [tool for tool in self._by_id.values() if name in (tool.name, tool.id)]
            if not gone:
                raise KeyError(f"there is no tool {name!r}")
            self._replace({key: tool for key, tool in self._by_id.items() if tool not in gone})
        for tool in gone:
            _shut_down(tool)

    def get_tool(self, name: str) -> Tool | None:
        """The highest version that is not disabled, or with `name@1.2` that one; None if there is none."""
        return self._by_id.get(name) if "@" in name else self._by_name.get(name)

    def get_mode_set(self, mode: str) -> list[Tool]:
        """The tools of a mode, by name; system tools belong to none."""
        return [tool for tool in self._by_name.values() if in_mode(tool, mode)]

    def tools(self) -> list[Tool]:
        """Every version of every tool, by name and then version."""
        return list(self._by_id.values())

    def disable(self, name: str) -> None:
        """Switch a tool (a name, or `name@1.2`) off for everybody."""
        self._set_disabled(self.policy.disabled | {name})

    def enable(self, name: str) -> None:
        """Take `disable` back."""
        self._set_disabled(self.policy.disabled - {name})

    def available_tools(self, grants: Grants, policy: Policy | None = None) -> list[Tool]:
        """The tools that an employee may use in its mode, by name; one version of each."""
        rules, granted = policy or self.policy, grants.tools
        offered = (tool for name, tool in self._by_name.items() if name in granted)  # not each of a thousand
        return [tool for tool in offered if refusal_for(tool, grants, rules) is None]

    def definitions(self, grants: Grants, policy: Policy | None = None) -> list[dict[str, Any]]:
        """What the model is shown of `available_tools`, in the same order every time."""
        return [tool.definition for tool in self.available_tools(grants, policy)]

    def start(self) -> None:
        """Start every tool. One that fails is logged and switched off; the others work."""
        with self._lock:
            self._started = True
        for tool in self.tools():
            self._start(tool)

    def shutdown(self) -> None:
        """Shut every tool down, whatever the others do."""
        for tool in self.tools():
            _shut_down(tool)

    def timeout_of(self, tool: Tool) -> float:
        """Seconds that one call of the tool may take."""
        return self.limits.timeout_s if tool.timeout_s is None else tool.timeout_s

    def execute_tool_by_name(
        self, name: str, params: str | dict[str, Any], context: ToolContext, grants: Grants
    ) -> ToolResult:
        """Look up, validate, judge, execute and check one call. A call that needs a person's approval is refused."""
        tool = self.get_tool(name)
        verdict = verdict_for(tool, params, replace(grants, mode=context.mode), self.policy, name)
        if tool is None or verdict.error is not None:
            return ToolResult.failed(verdict.error or _needs_a_person(name))
        if verdict.permission is not Permission.AUTO:
            return ToolResult.failed(_needs_a_person(name))
        batch = Batch()
        batch.start(PreparedCall(0, tool, verdict.params, context, self.timeout_of(tool), self.guards))
        while True:
            for report in batch.wait(time.monotonic() + 3600):
                if isinstance(report, Finished):
                    return report.result
                context.progress(report.fraction, report.text)

    def _start(self, tool: Tool) -> None:
        try:
            isolated(tool, "start", tool.start)
        except ToolError as error:
            logger.exception("%s was switched off, because it did not start", tool.id)
            self._not_started[tool.id] = error.message
            self.disable(tool.id)

    def _set_disabled(self, names: frozenset[str]) -> None:
        with self._lock:
            self.policy = replace(self.policy, disabled=names)
            self._replace(self._by_id)

    def _replace(self, by_id: dict[str, Tool]) -> None:
        """New dictionaries instead of changed ones, so that readers need no lock."""
        ordered = sorted(by_id.values(), key=lambda tool: (tool.name, _version_key(tool.version)))
        enabled_last = sorted(ordered, key=lambda tool: (tool.name, tool.id not in self.policy.disabled))
        self._by_id = {tool.id: tool for tool in ordered}
        self._by_name = {tool.name: tool for tool in enabled_last}


def _first_of_its_id(tool: Tool, taken: Mapping[str, Tool]) -> Tool:
    if other := taken.get(tool.id) or taken.get(tool.name):
        raise ValueError(f"{tool.id} exists twice: {_class_name(other)} and {_class_name(tool)}; rename one of them")
    return tool


def _needs_a_person(name: str) -> ToolError:
    return ToolError(
        ErrorCode.OPERATION_NOT_ALLOWED, f"{name!r} needs a person's approval: ask for it directly.", attempted=False
    )


def menu_of(tools: Iterable[Tool]) -> str:
    """The tools for the system prompt, one line each, grouped by category; empty if there are none."""
    by_category = sorted(tools, key=lambda tool: (tool.category, tool.name))
    groups = groupby(by_category, key=lambda tool: tool.category)
    return "\n\n".join(f"{category}\n{_menu_lines(tools)}" for category, tools in groups)


def _menu_lines(tools: Iterable[Tool]) -> str:
    return "\n".join(f"- {tool.name} ({tool.level}): {tool.description.strip().splitlines()[0]}" for tool in tools)


def _shut_down(tool: Tool) -> None:
    try:
        isolated(tool, "shutdown", tool.shutdown)
    except ToolError:
        logger.exception("%s did not shut down", tool.id)


def _version_key(version: str) -> tuple[tuple[int, str], ...]:
    """1.10 above 1.9, and 1.0 above 1.0-beta's text parts, which count as -1."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"[.-]", version))


def _class_name(tool: Tool) -> str:
    return f"{type(tool).__module__}.{type(tool).__qualname__}"


def _refuse_unfit(tool: Tool) -> None:
    where = _class_name(tool)
    name = getattr(tool, "name", "")
    if not _NAME.fullmatch(name):
        raise ValueError(f"{where}: the name {name!r} is not like 'category.toolName'")
    if not getattr(tool, "description", "").strip():
        raise ValueError(f"{where}: {name} has no description for the model")
    if not tool.version or "@" in tool.version:
        raise ValueError(f"{where}: {name} has the version {tool.version!r}; expected one like '1.0'")
    _refuse_params(tool.schema, where)
    refuse_unfit_limits(tool, where)


def comes_from_the_run(parameter: str) -> bool:
    """Whether a parameter of this name is refused, because it would say for whom a tool works."""
    return re.sub(r"_?(id|Id|ID)$", "", parameter).lower() in _FROM_THE_RUN


def _refuse_params(node: Any, where: str) -> None:
    if isinstance(node, list):
        for child in node:
            _refuse_params(child, where)
    if not isinstance(node, dict):
        return
    properties = node.get("properties")
    for parameter in properties if isinstance(properties, dict) else ():
        if comes_from_the_run(parameter):
            raise ValueError(f"{where}: the parameter {parameter!r} comes from the run (context), never from the model")
    if node.get("uniqueItems") is True:
        raise ValueError(f"{where}: a set has no stable order; use a list")
    for child in node.values():
        _refuse_params(child, where)
