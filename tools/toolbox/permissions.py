"""The gate: one pure function judges whether a call runs, waits for a person, or is refused."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from tools.contract import ErrorCode, Level, Tool, ToolError
from tools.contract.embedded_requests import describe_requests
from tools.toolbox.conditions import (
    COUNTED,
    OVER_HISTORY,
    BrokenCondition,
    Condition,
    Otherwise,
    Rule,
    describe_states,
    find_broken_conditions,
    need_history,
)
from tools.toolbox.facts import CallFacts, LiveFacts, ToolTraits, ValueSearch
from tools.toolbox.history import EarlierCalls
from tools.toolbox.provenance import OwnData, Provenance
from tools.toolbox.recorded_facts import RecordedTraits

MAX_HOSTS = 5
"""The maximum number of hosts or values that a reason names."""
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
        pinned: the only version that the employee may use, by tool name; without one, the newest.
    """

    tools: frozenset[str] = frozenset()
    mode: str = "general"
    capabilities: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    raised: Mapping[str, Level] = field(default_factory=dict)
    conditions: Mapping[str, tuple[Condition, ...]] = field(default_factory=dict)
    stopped: Mapping[str, str] = field(default_factory=dict)
    delegates: frozenset[int] = frozenset()
    pinned: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Policy:
    """Rules for all employees.

    Attributes:
        disabled: names or ids of disabled tools.
        strict_capabilities: True requires all of a tool's capabilities, False any one of them.
        features_by_tool: features required in addition to the tool's own, by name or id.
        allowed_hosts: hosts that open-world tools may contact without approval, in lower case.
        withheld: tools that cannot be used now, by name, each with the reason as a sentence.
        modes: the modes that exist; in any other mode, no tool can be used. None allows any.
    """

    disabled: frozenset[str] = frozenset()
    strict_capabilities: bool = True
    features_by_tool: Mapping[str, frozenset[str]] = field(default_factory=dict)
    allowed_hosts: frozenset[str] = frozenset()
    withheld: Mapping[str, str] = field(default_factory=dict)
    modes: frozenset[str] | None = None

    def has_mode(self, mode: str) -> bool:
        """Return True if the mode exists."""
        return self.modes is None or mode in self.modes


class Permission(StrEnum):
    """The machine's judgment of a call."""

    AUTO = "auto"
    """The call runs without approval."""
    ASK = "ask"
    """A person approves or denies the call."""
    FORBIDDEN = "forbidden"
    """The call never runs; the model receives the reason."""


class CauseKind(StrEnum):
    """The kinds of rules that make a call need approval."""

    LEVEL = "level"
    """The tool changes something."""
    RAISED_LEVEL = "raised_level"
    """An admin raised the tool's level."""
    HOSTS = "hosts"
    """The call contacts hosts that no admin has allowed."""
    OWN_DATA = "own_data"
    """The call sends the organization's own data outside."""
    UNSEEN_TEXT = "unseen_text"
    """The call may send private data outside, in text that was not seen before."""
    LIMIT = "limit"
    """The call breaks a condition of the employee's grant."""


@dataclass(frozen=True)
class Cause:
    """One rule that makes a call need approval.

    Attributes:
        text: the reason in plain words.
        param: the param that a limit names; empty for other kinds.
    """

    kind: CauseKind
    text: str
    param: str = ""


@dataclass(frozen=True)
class Verdict:
    """The gate's judgment of one call, with its reason.

    Attributes:
        level: the tool's level, or the level to which an admin raised it.
        reason: the reason in plain words, for the card.
        params: the canonical params; empty if the call is forbidden.
        error: the error for the model; set if and only if the call is forbidden.
        provenance: the origins of the values, if a condition needed them.
        causes: the rules that make the call need approval; empty if it needs none.
        facts: the facts that the verdict used, as JSON by name, without the provenance; `tool` is
            the id of a granted tool, or the traits of any other.
    """

    permission: Permission
    level: Level
    reason: str
    params: dict[str, Any] = field(default_factory=dict)
    error: ToolError | None = None
    provenance: Provenance | None = None
    causes: tuple[Cause, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the part of the verdict that is stored with the call: {verdict, causes, facts}."""
        causes = [[each.kind.value, each.text, each.param] for each in self.causes]
        return {"verdict": self.permission.value, "causes": causes, "facts": self.facts}


def judge_call(  # noqa: PLR0913, PLR0917 - see MANY_ARGUMENTS in the architecture test
    tool: Tool | None,
    arguments: str | dict[str, Any],
    grants: Grants,
    policy: Policy,
    name: str = "",
    values: ValueSearch | None = None,
    earlier: EarlierCalls | None = None,
) -> Verdict:
    """Judge one call without ever raising, even for invalid arguments or a failing tool.

    Args:
        tool: the tool, or None if there is no tool with this name.
        arguments: the model's JSON text, or params that are already parsed.
        name: the requested name, to quote if there is no such tool.
        values: searches for the origins of values; None outside a run, because there are no texts
            to search there.
        earlier: the employee's earlier calls; None if they are not known.
    """
    if tool is None:
        return replace(judge_missing_tool(name, grants, policy), facts={"name": name})
    facts = LiveFacts(tool, arguments, values, earlier)
    verdict = judge_facts(tool, facts, grants, policy)
    if verdict.error is not None:
        facts.keep_params()
    kept = tool.id if tool.name in grants.tools else RecordedTraits.of(tool).as_json()
    return replace(verdict, facts={**facts.used, "tool": kept})


def judge_missing_tool(name: str, grants: Grants, policy: Policy) -> Verdict:
    """Judge a call of a tool that does not exist, or that is withheld."""
    return _forbid(Level.DESTRUCTIVE, _build_not_found_error(name, grants, policy))


def judge_facts(tool: ToolTraits, facts: CallFacts, grants: Grants, policy: Policy) -> Verdict:
    """Judge one call only by its facts, the grants and the policy."""
    level = determine_level(tool, grants)
    if (refusal := find_refusal(tool, grants, policy)) is not None:
        return _forbid(level, refusal)
    try:
        params, requests = facts.params, facts.requests
        if requests and not tool.carries_requests:
            level = Level.DESTRUCTIVE
        conditions = grants.conditions.get(tool.name, ())
        provenance = facts.provenance if _need_provenance(conditions) else None
        history = facts.history if need_history(conditions) else None
        broken = find_broken_conditions(conditions, params, provenance, history)
        if broken and broken[0].otherwise is Otherwise.FORBID:
            return replace(
                _forbid(level, _build_condition_error(tool, broken[0])), provenance=provenance
            )
        found = (
            _explain_level(tool, level, requests),
            *_explain_destination(tool, level, facts, policy),
            *(Cause(CauseKind.LIMIT, each.reason, each.param) for each in broken),
        )
        states = describe_states(conditions, params, history)
    except ToolError as error:
        return _forbid(level, error)
    causes = tuple(cause for cause in found if cause is not None)
    if causes:
        reason = "; ".join([*(cause.text for cause in causes), *states])
        return Verdict(Permission.ASK, level, reason, params, provenance=provenance, causes=causes)
    reason = "; ".join([f"{level} level: runs without approval", *states])
    return Verdict(Permission.AUTO, level, reason, params, provenance=provenance)


def find_refusal(tool: ToolTraits, grants: Grants, policy: Policy) -> ToolError | None:
    """Return the reason why this employee cannot use the tool with any params; None if it can."""
    if (disabled := _refuse_disabled(tool, grants, policy)) is not None:
        return disabled
    if tool.name not in grants.tools:
        return _build_refusal(
            ErrorCode.NOT_PERMITTED,
            f"You may not use the tool {tool.name!r}: it was not granted to you.",
        )
    return (
        _refuse_other_version(tool, grants)
        or _refuse_other_mode(tool, grants, policy)
        or _refuse_missing_capabilities(tool, grants, policy)
        or _refuse_missing_features(tool, grants, policy)
    )


def select_usable(tools: Iterable[Tool], grants: Grants, policy: Policy) -> list[Tool]:
    """Select the tools that this employee may use, in the same order."""
    return [tool for tool in tools if find_refusal(tool, grants, policy) is None]


def determine_level(tool: ToolTraits, grants: Grants) -> Level:
    """Return the tool's level, or a higher one set by an admin for the employee or for all."""
    raised = grants.raised.get(tool.name)
    return raised if raised is not None and raised.rank > tool.level.rank else tool.level


def is_in_mode(tool: ToolTraits, mode: str) -> bool:
    """Return True if the tool belongs to the mode; a tool without modes belongs to every mode."""
    return tool.modes is None or mode in tool.modes


def _refuse_disabled(tool: ToolTraits, grants: Grants, policy: Policy) -> ToolError | None:
    if tool.name in policy.disabled or tool.id in policy.disabled:
        return _build_refusal(ErrorCode.TOOL_DISABLED, f"The tool {tool.name!r} is disabled.")
    stopped_by = grants.stopped.get(tool.name)
    if stopped_by is None:
        return None
    return _build_refusal(
        ErrorCode.TOOL_DISABLED, f"The tool {tool.name!r} was stopped by {stopped_by}."
    )


def _refuse_other_version(tool: ToolTraits, grants: Grants) -> ToolError | None:
    pinned = grants.pinned.get(tool.name)
    if pinned is None or tool.id == f"{tool.name}@{pinned}":
        return None
    message = f"You may use the tool {tool.name!r} only in version {pinned}."
    return _build_refusal(ErrorCode.NOT_PERMITTED, message)


def _refuse_other_mode(tool: ToolTraits, grants: Grants, policy: Policy) -> ToolError | None:
    mode = grants.mode
    if tool.is_system:
        message = f"The tool {tool.name!r} is for the platform only."
    elif not policy.has_mode(mode):
        message = f"There is no mode {mode!r}, so no tool can be used."
    elif not is_in_mode(tool, mode):
        message = f"The tool {tool.name!r} is not part of the mode {mode!r}."
    else:
        return None
    return _build_refusal(ErrorCode.NOT_PERMITTED, message)


def _refuse_missing_capabilities(
    tool: ToolTraits, grants: Grants, policy: Policy
) -> ToolError | None:
    missing = tool.capabilities - grants.capabilities
    if not missing or (not policy.strict_capabilities and missing != tool.capabilities):
        return None
    return _build_refusal(
        ErrorCode.NOT_PERMITTED,
        f"The tool {tool.name!r} requires a capability that you lack: {', '.join(sorted(missing))}.",
    )


def _refuse_missing_features(tool: ToolTraits, grants: Grants, policy: Policy) -> ToolError | None:
    required = tool.features.union(
        *(policy.features_by_tool.get(key, frozenset()) for key in (tool.name, tool.id))
    )
    missing = required - grants.features
    if not missing:
        return None
    return _build_refusal(
        ErrorCode.NOT_PERMITTED,
        f"The tool {tool.name!r} requires a feature that the organization's plan lacks: {', '.join(sorted(missing))}.",
    )


def _explain_level(tool: ToolTraits, level: Level, requests: tuple[str, ...]) -> Cause | None:
    if not level.has_side_effects:
        return None
    carries = f"; {describe_requests(requests)}" if requests else ""
    is_raised = level is not tool.level and not (requests and not tool.carries_requests)
    if is_raised:
        return Cause(
            CauseKind.RAISED_LEVEL,
            f"an admin raised the level from {tool.level} to {level}{carries}",
        )
    effect = (
        "this may delete data or change many items"
        if level is Level.DESTRUCTIVE
        else "this changes data"
    )
    return Cause(CauseKind.LEVEL, f"{effect}{carries}")


def _explain_destination(
    tool: ToolTraits, level: Level, facts: CallFacts, policy: Policy
) -> Iterator[Cause | None]:
    """Explain why the hosts that the call contacts, and the data sent there, need approval."""
    hosts = facts.hosts
    unlisted = _explain_hosts(hosts, policy)
    yield unlisted
    if not (tool.open_world or hosts):
        return
    own = facts.own_data
    yield _explain_own_data(own)
    is_asked = own.has_unseen_text and hosts is not None and not level.has_side_effects
    # The approval is looked up even for unlisted hosts, so that replays can allow these hosts.
    if is_asked and not facts.is_approved_before and unlisted is None:
        where = f"to {_name_hosts(sorted(hosts or ()))}" if hosts else "outside"
        text = f"may carry private data {where}: this run has read some, and the address or text is new"
        yield Cause(CauseKind.UNSEEN_TEXT, text)


def _explain_hosts(hosts: frozenset[str] | None, policy: Policy) -> Cause | None:
    """Name the hosts that no admin has allowed; None if there are none."""
    if hosts is None:
        return Cause(CauseKind.HOSTS, "the tool may contact any address on the internet")
    unlisted = sorted(host for host in hosts if host.lower() not in policy.allowed_hosts)
    if not unlisted:
        return None
    return Cause(
        CauseKind.HOSTS, f"contacts {_name_hosts(unlisted)}, not on the list of allowed hosts"
    )


def _name_hosts(hosts: list[str]) -> str:
    more = f" and {len(hosts) - MAX_HOSTS:,} more" if len(hosts) > MAX_HOSTS else ""
    return f"{', '.join(hosts[:MAX_HOSTS])}{more}"


def _need_provenance(conditions: tuple[Condition, ...]) -> bool:
    return any(condition.rule is Rule.NOT_FROM_OUTSIDE for condition in conditions)


def _explain_own_data(found: OwnData) -> Cause | None:
    """Name the organization's own values that a call would send to the hosts that it contacts; None
    if there are none."""
    carried = found.values
    if not carried:
        too_many = "may send your own data outside: there are too many values or results to search"
        return Cause(CauseKind.OWN_DATA, too_many) if found.is_partial else None
    quoted = ", ".join(
        f'"{value[:_MAX_VALUE]}{"…" if len(value) > _MAX_VALUE else ""}"'
        for value in carried[:MAX_HOSTS]
    )
    more = f" and {len(carried) - MAX_HOSTS:,} more" if len(carried) > MAX_HOSTS else ""
    return Cause(CauseKind.OWN_DATA, f"sends your own data outside: {quoted}{more}")


def _build_condition_error(tool: ToolTraits, broken: BrokenCondition) -> ToolError:
    """Build the error for a broken condition; the hint says if the same call may pass later."""
    hints = dict.fromkeys(COUNTED, "Try again later.") | {Rule.ONLY_AFTER: "Make that call first."}
    return ToolError(
        ErrorCode.LIMIT_EXCEEDED if broken.rule in OVER_HISTORY else ErrorCode.NOT_PERMITTED,
        f"You may use {tool.name!r} only within limits: {broken.reason}.",
        recovery_hint=hints.get(broken.rule, "Keep the params within these limits."),
        attempted=False,
    )


def _forbid(level: Level, error: ToolError) -> Verdict:
    return Verdict(Permission.FORBIDDEN, level, error.message, {}, error)


def _build_not_found_error(name: str, grants: Grants, policy: Policy) -> ToolError:
    if name in policy.withheld and name in grants.tools:
        return _build_refusal(ErrorCode.TOOL_NOT_FOUND, policy.withheld[name])
    if name in grants.pinned:
        message = f"The tool {name!r} is not installed in version {grants.pinned[name]}, the only one that you may use."
        return _build_refusal(ErrorCode.TOOL_NOT_FOUND, message)
    return _build_refusal(
        ErrorCode.TOOL_NOT_FOUND,
        f"There is no tool {name!r}." if name else "There is no such tool.",
    )


def _build_refusal(code: ErrorCode, message: str) -> ToolError:
    return ToolError(
        code, message, recovery_hint="Use one of the tools that you were given.", attempted=False
    )
