"""The gate: one pure function judges whether a call runs, waits for a person, or is refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

from tools.contract import ErrorCode, Level, Tool, ToolError, find_embedded_requests, find_named_hosts, parse_arguments
from tools.contract.embedded_requests import describe_requests
from tools.toolbox.conditions import BrokenCondition, Condition, Otherwise, Rule, find_broken_condition
from tools.toolbox.isolation import run_isolated
from tools.toolbox.provenance import OwnData, Provenance

MAX_HOSTS = 5
"""The most hosts, or values, named in a reason."""
_MAX_VALUE = 80


@dataclass(frozen=True)
class Grants:
    """Permissions of one employee; nothing is granted by default.

    Attributes:
        tools: exact names of the granted tools.
        mode: the named set of tools that the run works in.
        capabilities: capabilities of the employee.
        features: features of the organization's plan.
        raised: levels that an admin raised for this employee or for all, by tool name.
        conditions: conditions on the params, by tool name.
        stopped: names of stopped tools, each with the name of the person who stopped it.
        delegates: ids of the employees to whom it may delegate tasks.
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
    """Rules for all employees.

    Attributes:
        disabled: names or ids of disabled tools.
        strict_capabilities: True requires all of a tool's capabilities, False any one of them.
        features_by_tool: features required in addition to the tool's own, by name or id.
        allowed_hosts: hosts that open-world tools may contact without approval, in lower case.
        withheld: tools that cannot be used now, by name, with the reason as a sentence.
    """

    disabled: frozenset[str] = frozenset()
    strict_capabilities: bool = True
    features_by_tool: Mapping[str, frozenset[str]] = field(default_factory=dict)
    allowed_hosts: frozenset[str] = frozenset()
    withheld: Mapping[str, str] = field(default_factory=dict)


class ValueSearch(Protocol):
    """Searches for the values of a call in everything that its run has seen; asked only where the verdict needs it."""

    def trace(self, tool: Tool, params: Mapping[str, Any]) -> Provenance:
        """Find the origin of each value in the params."""

    def find_own_data(self, tool: Tool, params: Mapping[str, Any]) -> OwnData:
        """Find the values that come from the organization's own data."""


class Permission(StrEnum):
    """The machine's judgment of a call."""

    AUTO = "auto"
    """The call runs without approval."""
    ASK = "ask"
    """A person approves or denies the call."""
    FORBIDDEN = "forbidden"
    """The call never runs; the model receives the reason."""


@dataclass(frozen=True)
class Verdict:
    """The gate's judgment of one call, with its reason.

    Attributes:
        level: the tool's level, or the level to which an admin raised it.
        reason: the reason in plain words, for the card.
        params: the canonical params; empty if the call is forbidden.
        error: the error for the model; set if and only if the call is forbidden.
        provenance: the origins of the values, if a condition needed them.
    """

    permission: Permission
    level: Level
    reason: str
    params: dict[str, Any] = field(default_factory=dict)
    error: ToolError | None = None
    provenance: Provenance | None = None


def judge_call(  # noqa: PLR0913, PLR0917 - see MANY_ARGUMENTS in the architecture test
    tool: Tool | None,
    arguments: str | dict[str, Any],
    grants: Grants,
    policy: Policy,
    name: str = "",
    values: ValueSearch | None = None,
) -> Verdict:
    """Judge one call. It never raises, even if the arguments are invalid or the tool fails to check them.

    Args:
        tool: the tool, or None if there is no tool with this name.
        arguments: the model's JSON text, or params that are already parsed.
        name: the requested name, to quote if there is no such tool.
        values: searches for the origins of values; None if there is no run in which they could have been seen.
    """
    refusal = find_refusal(tool, grants, policy, name)
    if tool is None or refusal is not None:
        level = determine_level(tool, grants) if tool else Level.DESTRUCTIVE
        return _forbid(level, refusal or _build_not_found_error(name, grants, policy))
    level = determine_level(tool, grants)
    try:
        raw = parse_arguments(arguments) if isinstance(arguments, str) else arguments
        params = run_isolated(tool, "check_params", lambda: tool.check_params(raw))
        requests = find_embedded_requests(params) if tool.is_from_outside else ()
        if requests and not tool.carries_requests:
            level = Level.DESTRUCTIVE
        conditions = grants.conditions.get(tool.name, ())
        provenance = _trace_values(tool, params, conditions, values)
        broken = find_broken_condition(conditions, params, provenance)
        if broken is not None and broken.otherwise is Otherwise.FORBID:
            return replace(_forbid(level, _build_condition_error(tool, broken)), provenance=provenance)
        hosts = find_hosts(tool, params)
        reach = _explain_hosts(hosts, policy)
        if not reach and (tool.open_world or hosts):
            reach = _explain_own_data(tool, params, values)
        reason = "; ".join(filter(None, (_explain_level(tool, level, requests), reach, _explain_condition(broken))))
    except ToolError as error:
        return _forbid(level, error)
    if reason:
        return Verdict(Permission.ASK, level, reason, params, provenance=provenance)
    return Verdict(Permission.AUTO, level, f"{level} level: runs without approval", params, provenance=provenance)


def find_refusal(tool: Tool | None, grants: Grants, policy: Policy, name: str = "") -> ToolError | None:
    """Return the reason why this employee cannot use the tool with any params; None if it can."""
    if tool is None:
        return _build_not_found_error(name, grants, policy)
    if (disabled := _refuse_disabled(tool, grants, policy)) is not None:
        return disabled
    if tool.name not in grants.tools:
        return _build_refusal(
            ErrorCode.NOT_PERMITTED, f"You may not use the tool {tool.name!r}: it was not granted to you."
        )
    if tool.is_system:
        return _build_refusal(ErrorCode.NOT_PERMITTED, f"The tool {tool.name!r} is for the platform only.")
    if not is_in_mode(tool, grants.mode):
        return _build_refusal(
            ErrorCode.NOT_PERMITTED, f"The tool {tool.name!r} is not part of the mode {grants.mode!r}."
        )
    return _refuse_missing_capabilities(tool, grants, policy) or _refuse_missing_features(tool, grants, policy)


def determine_level(tool: Tool, grants: Grants) -> Level:
    """Return the tool's level, or a higher one that an admin set for the employee or for all; never a lower one."""
    raised = grants.raised.get(tool.name)
    return raised if raised is not None and raised.rank > tool.level.rank else tool.level


def is_in_mode(tool: Tool, mode: str) -> bool:
    """Return True if the tool belongs to the mode; a tool without modes belongs to every mode."""
    return tool.modes is None or mode in tool.modes


def _refuse_disabled(tool: Tool, grants: Grants, policy: Policy) -> ToolError | None:
    if tool.name in policy.disabled or tool.id in policy.disabled:
        return _build_refusal(ErrorCode.TOOL_DISABLED, f"The tool {tool.name!r} is disabled.")
    stopped_by = grants.stopped.get(tool.name)
    if stopped_by is None:
        return None
    return _build_refusal(ErrorCode.TOOL_DISABLED, f"The tool {tool.name!r} was stopped by {stopped_by}.")


def _refuse_missing_capabilities(tool: Tool, grants: Grants, policy: Policy) -> ToolError | None:
    missing = tool.capabilities - grants.capabilities
    if not missing or (not policy.strict_capabilities and missing != tool.capabilities):
        return None
    return _build_refusal(
        ErrorCode.NOT_PERMITTED,
        f"The tool {tool.name!r} requires a capability that you lack: {', '.join(sorted(missing))}.",
    )


def _refuse_missing_features(tool: Tool, grants: Grants, policy: Policy) -> ToolError | None:
    required = tool.features.union(*(policy.features_by_tool.get(key, frozenset()) for key in (tool.name, tool.id)))
    missing = required - grants.features
    if not missing:
        return None
    return _build_refusal(
        ErrorCode.NOT_PERMITTED,
        f"The tool {tool.name!r} requires a feature that the organization's plan lacks: {', '.join(sorted(missing))}.",
    )


def _explain_level(tool: Tool, level: Level, requests: tuple[str, ...]) -> str:
    if not level.has_side_effects:
        return ""
    carries = f"; {describe_requests(requests)}" if requests else ""
    is_raised = level is not tool.level and not (requests and not tool.carries_requests)
    if is_raised:
        return f"an admin raised the level from {tool.level} to {level}{carries}"
    effect = "this may delete data or change many items" if level is Level.DESTRUCTIVE else "this changes data"
    return f"{effect}{carries}"


def _explain_hosts(hosts: frozenset[str] | None, policy: Policy) -> str:
    """Name the hosts that no admin has allowed."""
    if hosts is None:
        return "the tool may contact any address on the internet"
    unlisted = sorted(host for host in hosts if host.lower() not in policy.allowed_hosts)
    if not unlisted:
        return ""
    more = f" and {len(unlisted) - MAX_HOSTS:,} more" if len(unlisted) > MAX_HOSTS else ""
    return f"contacts {', '.join(unlisted[:MAX_HOSTS])}{more}, not on the list of allowed hosts"


def _trace_values(
    tool: Tool, params: dict[str, Any], conditions: tuple[Condition, ...], values: ValueSearch | None
) -> Provenance | None:
    """Find the origins of the values if a condition depends on them."""
    is_needed = any(condition.rule is Rule.NOT_FROM_OUTSIDE for condition in conditions)
    return values.trace(tool, params) if is_needed and values is not None else None


def _explain_own_data(tool: Tool, params: dict[str, Any], values: ValueSearch | None) -> str:
    """Name the organization's own values that a call to allowed hosts would tell them."""
    if values is None:
        return ""
    found = values.find_own_data(tool, params)
    carried = found.values
    if not carried:
        too_many = "may send your own data outside: there are too many values or results to search"
        return too_many if found.is_partial else ""
    quoted = ", ".join(
        f'"{value[:_MAX_VALUE]}{"…" if len(value) > _MAX_VALUE else ""}"' for value in carried[:MAX_HOSTS]
    )
    more = f" and {len(carried) - MAX_HOSTS:,} more" if len(carried) > MAX_HOSTS else ""
    return f"sends your own data outside: {quoted}{more}"


def find_hosts(tool: Tool, params: dict[str, Any]) -> frozenset[str] | None:
    """Find the hosts that a call contacts, including those of outside tools that declare none; None if unknown.

    Raises:
        ToolError: the tool cannot read the params.
    """
    if tool.open_world:
        return run_isolated(tool, "hosts", lambda: tool.hosts(tool.load_params(params)))
    if not tool.is_from_outside:
        return frozenset()
    return run_isolated(tool, "address_params", lambda: find_named_hosts(params, tool.address_params))


def _explain_condition(broken: BrokenCondition | None) -> str:
    return broken.reason if broken else ""


def _build_condition_error(tool: Tool, broken: BrokenCondition) -> ToolError:
    return ToolError(
        ErrorCode.NOT_PERMITTED,
        f"You may use {tool.name!r} only within limits: {broken.reason}.",
        recovery_hint="Keep the params within these limits.",
        attempted=False,
    )


def _forbid(level: Level, error: ToolError) -> Verdict:
    return Verdict(Permission.FORBIDDEN, level, error.message, {}, error)


def _build_not_found_error(name: str, grants: Grants, policy: Policy) -> ToolError:
    if name in policy.withheld and name in grants.tools:
        return _build_refusal(ErrorCode.TOOL_NOT_FOUND, policy.withheld[name])
    return _build_refusal(ErrorCode.TOOL_NOT_FOUND, f"There is no tool {name!r}." if name else "There is no such tool.")


def _build_refusal(code: ErrorCode, message: str) -> ToolError:
    return ToolError(code, message, recovery_hint="Use one of the tools that you were given.", attempted=False)
