"""The gate: one pure function decides whether a call runs, waits for a person, or is refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tools.contract import ErrorCode, Level, Tool, ToolError, inner_requests, named_hosts, parse_arguments
from tools.contract.inner_requests import in_words

from .conditions import Broken, Condition, Otherwise, first_broken
from .isolation import isolated

MOST_HOSTS = 5
"""The most hosts named in a reason."""


@dataclass(frozen=True)
class Grants:
    """What one employee may use; nothing by default.

    Attributes:
        tools: exact names.
        mode: the named set of tools that the run works in.
        capabilities: of the employee.
        features: of the organisation's plan.
        raised: levels that an admin raised for this employee or for all, by a tool's name.
        conditions: on the params, by a tool's name.
        stopped: tools that somebody has stopped for now, by name, and who.
        delegates: ids of the employees to whom it may hand a task.
    """

    tools: frozenset[str] = frozenset()
    mode: str = "general"
    capabilities: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    raised: Mapping[str, Level] = field(default_factory=dict)
    conditions: Mapping[str, tuple[Condition, ...]] = field(default_factory=dict)
    stopped: Mapping[str, str] = field(default_factory=dict)
    delegates: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Policy:
    """What holds for every employee.

    Attributes:
        disabled: names or ids.
        strict_capabilities: True demands all of a tool's capabilities, False any one of them.
        features_by_tool: by name or id, demanded on top of the tool's own.
        allowed_hosts: where open-world tools may go unasked, in lower case.
        withheld: tools that were there and cannot be used now, by name, and why, as a sentence.
    """

    disabled: frozenset[str] = frozenset()
    strict_capabilities: bool = True
    features_by_tool: Mapping[str, frozenset[str]] = field(default_factory=dict)
    allowed_hosts: frozenset[str] = frozenset()
    withheld: Mapping[str, str] = field(default_factory=dict)


class Permission(StrEnum):
    """What the machine decides about a call."""

    AUTO = "auto"
    """Runs by itself."""
    ASK = "ask"
    """A person approves or denies it."""
    FORBIDDEN = "forbidden"
    """Never runs; the model is told why."""


@dataclass(frozen=True)
class Verdict:
    """The decision about one call.

    Attributes:
        level: the tool's level, as far as an admin raised it.
        reason: for the card, in plain words.
        params: canonical; empty when forbidden.
        error: for the model; set exactly when forbidden.
    """

    permission: Permission
    level: Level
    reason: str
    params: dict[str, Any] = field(default_factory=dict)
    error: ToolError | None = None


def verdict_for(
    tool: Tool | None,
    arguments: str | dict[str, Any],
    grants: Grants,
    policy: Policy,
    name: str = "",
) -> Verdict:
    """Judge one call. Never raises, whatever the arguments are and however the tool fails to check them.

    Args:
        tool: None if no tool has that name.
        arguments: the model's JSON text, or params that were parsed already.
        name: what was asked for, to quote it when there is no such tool.
    """
    refusal = refusal_for(tool, grants, policy, name)
    if tool is None or refusal is not None:
        level = level_of(tool, grants) if tool else Level.DESTRUCTIVE
        return _forbidden(level, refusal or _not_found(name, grants, policy))
    level = level_of(tool, grants)
    try:
        raw = parse_arguments(arguments) if isinstance(arguments, str) else arguments
        params = isolated(tool, "check_params", lambda: tool.check_params(raw))
        inner = inner_requests(params) if tool.is_from_outside else ()
        if inner and not tool.carries_requests:
            level = Level.DESTRUCTIVE
        broken = first_broken(grants.conditions.get(tool.name, ()), params)
        if broken is not None and broken.otherwise is Otherwise.FORBID:
            return _forbidden(level, _outside_the_grant(tool, broken))
        why = (_why_level(tool, level, inner), _why_beyond(tool, params, policy), _why_broken(broken))
        reason = "; ".join(filter(None, why))
    except ToolError as error:
        return _forbidden(level, error)
    if reason:
        return Verdict(Permission.ASK, level, reason, params)
    return Verdict(Permission.AUTO, level, f"{level} level: runs by itself", params)


def refusal_for(tool: Tool | None, grants: Grants, policy: Policy, name: str = "") -> ToolError | None:
    """Why this employee cannot use the tool at all, whatever the params; None if it can."""
    if tool is None:
        return _not_found(name, grants, policy)
    if (off := _switched_off(tool, grants, policy)) is not None:
        return off
    if tool.name not in grants.tools:
        return _refused(ErrorCode.NOT_PERMITTED, f"You may not use the tool {tool.name!r}: it was not granted to you.")
    if tool.is_system:
        return _refused(ErrorCode.NOT_PERMITTED, f"The tool {tool.name!r} is for the platform only.")
    if not in_mode(tool, grants.mode):
        return _refused(ErrorCode.NOT_PERMITTED, f"The tool {tool.name!r} is not part of the mode {grants.mode!r}.")
    return _lacking_capabilities(tool, grants, policy) or _lacking_features(tool, grants, policy)


def level_of(tool: Tool, grants: Grants) -> Level:
    """The tool's level, or a higher one that an admin set for the employee or for all; never a lower one."""
    raised = grants.raised.get(tool.name)
    return raised if raised is not None and raised.rank > tool.level.rank else tool.level


def in_mode(tool: Tool, mode: str) -> bool:
    """Whether the tool belongs to the mode; a tool that names no modes belongs to every one."""
    return tool.modes is None or mode in tool.modes


def _switched_off(tool: Tool, grants: Grants, policy: Policy) -> ToolError | None:
    if tool.name in policy.disabled or tool.id in policy.disabled:
        return _refused(ErrorCode.TOOL_DISABLED, f"The tool {tool.name!r} is switched off.")
    stopped_by = grants.stopped.get(tool.name)
    if stopped_by is None:
        return None
    return _refused(ErrorCode.TOOL_DISABLED, f"The tool {tool.name!r} was stopped by {stopped_by}.")


def _lacking_capabilities(tool: Tool, grants: Grants, policy: Policy) -> ToolError | None:
    missing = tool.capabilities - grants.capabilities
    if not missing or (not policy.strict_capabilities and missing != tool.capabilities):
        return None
    return _refused(
        ErrorCode.NOT_PERMITTED,
        f"The tool {tool.name!r} demands a capability that you lack: {', '.join(sorted(missing))}.",
    )


def _lacking_features(tool: Tool, grants: Grants, policy: Policy) -> ToolError | None:
    demanded = tool.features.union(*(policy.features_by_tool.get(key, frozenset()) for key in (tool.name, tool.id)))
    missing = demanded - grants.features
    if not missing:
        return None
    return _refused(
        ErrorCode.NOT_PERMITTED,
        f"The tool {tool.name!r} demands a feature that the organisation's plan lacks: {', '.join(sorted(missing))}.",
    )


def _why_level(tool: Tool, level: Level, inner: tuple[str, ...]) -> str:
    if not level.has_side_effects:
        return ""
    carries = f"; {in_words(inner)}" if inner else ""
    is_raised = level is not tool.level and not (inner and not tool.carries_requests)
    raised = f" (raised from {tool.level} by an admin)" if is_raised else ""
    always = "always " if level is Level.DESTRUCTIVE else ""
    return f"{level} level{raised}: a person {always}decides{carries}"


def _why_beyond(tool: Tool, params: dict[str, Any], policy: Policy) -> str:
    """Name the hosts that the params lead to and that no admin has allowed."""
    hosts = _hosts(tool, params)
    if hosts is None:
        return "the tool may reach any address on the internet: a person decides"
    beyond = sorted(host for host in hosts if host.lower() not in policy.allowed_hosts)
    if not beyond:
        return ""
    more = f" and {len(beyond) - MOST_HOSTS:,} more" if len(beyond) > MOST_HOSTS else ""
    return f"reaches {', '.join(beyond[:MOST_HOSTS])}{more}, not on the list of allowed hosts: a person decides"


def _hosts(tool: Tool, params: dict[str, Any]) -> frozenset[str] | None:
    """Find the hosts of a call, also for tools from outside that do not declare any."""
    if tool.open_world:
        return isolated(tool, "hosts", lambda: tool.hosts(tool.load_params(params)))
    if not tool.is_from_outside:
        return frozenset()
    return isolated(tool, "address_params", lambda: named_hosts(params, tool.address_params))


def _why_broken(broken: Broken | None) -> str:
    return f"{broken.reason}: a person decides" if broken else ""


def _outside_the_grant(tool: Tool, broken: Broken) -> ToolError:
    return ToolError(
        ErrorCode.NOT_PERMITTED,
        f"You may use {tool.name!r} only within limits: {broken.reason}.",
        recovery_hint="Ask for what is within these limits.",
        attempted=False,
    )


def _forbidden(level: Level, error: ToolError) -> Verdict:
    return Verdict(Permission.FORBIDDEN, level, error.message, {}, error)


def _not_found(name: str, grants: Grants, policy: Policy) -> ToolError:
    if name in policy.withheld and name in grants.tools:
        return _refused(ErrorCode.TOOL_NOT_FOUND, policy.withheld[name])
    return _refused(ErrorCode.TOOL_NOT_FOUND, f"There is no tool {name!r}." if name else "There is no such tool.")


def _refused(code: ErrorCode, message: str) -> ToolError:
    return ToolError(code, message, recovery_hint="Use one of the tools that you were given.", attempted=False)
