"""Policy drafts: rule changes that can be stored, described in words, and applied to recorded
rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from agents.policy.named_rules import describe_rule, read_named_rule, store_named_rule
from agents.standing_grants.proposals import ProposedGrant
from tools.contract import Level
from tools.toolbox import Condition, Grants, Policy
from tools.toolbox.approval_rules import RuleTerms
from tools.toolbox.grant_sources import read_grant_condition
from tools.toolbox.snapshots import RecordedRules

STOPPED_BY = "this policy draft"


class ChangeKind(StrEnum):
    """The changes that a policy draft can make."""

    GRANT = "grant"
    REVOKE = "revoke"
    LEVEL = "level"
    LIMIT = "limit"
    """Adds one limit."""
    NO_LIMITS = "no_limits"
    ALLOW_HOST = "allow_host"
    FORBID_HOST = "forbid_host"
    """Removes a host from the allowed hosts, so that calls to it need approval."""
    STOP = "stop"
    STANDING_GRANT = "standing_grant"
    """Adds a standing grant, which approves calls for which the gate requires approval."""
    APPROVAL_RULE = "approval_rule"
    """Adds an approval rule, or replaces the rule with the same id."""
    NO_APPROVAL_RULE = "no_approval_rule"
    """Removes an approval rule."""


OF_HOSTS = (ChangeKind.ALLOW_HOST, ChangeKind.FORBID_HOST)
"""The changes to the allowed hosts, which apply to the whole organization."""
OF_CARDS = (ChangeKind.APPROVAL_RULE, ChangeKind.NO_APPROVAL_RULE)
"""The changes to the people who must approve cards. They do not affect any verdict; all other
changes are about calls."""
LABELS = {
    ChangeKind.GRANT: "Allow the tool",
    ChangeKind.REVOKE: "Disallow the tool",
    ChangeKind.LEVEL: "Raise the tool's level",
    ChangeKind.LIMIT: "Add a limit to the tool",
    ChangeKind.NO_LIMITS: "Remove all limits of the tool",
    ChangeKind.ALLOW_HOST: "Allow a host without approval",
    ChangeKind.FORBID_HOST: "Require approval for a host",
    ChangeKind.STOP: "Stop the tool",
    ChangeKind.STANDING_GRANT: "Approve calls to the tool with a standing grant",
    ChangeKind.APPROVAL_RULE: "Approval rule",
    ChangeKind.NO_APPROVAL_RULE: "Remove the approval rule",
}


@dataclass(frozen=True)
class PolicyChange:
    """One rule change of a policy draft.

    Attributes:
        employee_id: the employee whom the change concerns; None for all employees.
        level: the new level, for LEVEL.
        condition: the added limit, for LIMIT.
        host: the host, for the changes in `OF_HOSTS`.
        params, conditions: the terms, for STANDING_GRANT; see `ProposedGrant`.
        rule: the approval rule, for the changes in `OF_CARDS`; its id is 0 if it is new.
    """

    kind: ChangeKind
    tool: str = ""
    employee_id: int | None = None
    level: Level | None = None
    condition: Condition | None = None
    host: str = ""
    params: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    rule: RuleTerms | None = None

    @classmethod
    def from_grant(cls, proposal: ProposedGrant) -> PolicyChange:
        """Return the change that adds this standing grant, without the grant's run, uses and
        lifetime."""
        return cls(
            ChangeKind.STANDING_GRANT,
            proposal.tool,
            proposal.employee_id,
            params=proposal.params,
            conditions=proposal.conditions,
        )

    def as_proposed_grant(self) -> ProposedGrant:
        """Return the standing grant that the change adds."""
        return ProposedGrant(self.tool, self.employee_id, None, self.params, self.conditions)

    def as_json(self) -> dict[str, Any]:
        """Return the change as JSON, without its empty parts."""
        parts = {
            "kind": self.kind.value,
            "tool": self.tool,
            "employee": self.employee_id,
            "level": self.level.value if self.level else None,
            "condition": self.condition.as_json() if self.condition else None,
            "host": self.host,
            "params": list(self.params),
            "conditions": [condition.as_json() for condition in self.conditions],
            "rule": store_named_rule(self.rule) if self.rule else None,
        }
        return {name: value for name, value in parts.items() if value not in ("", None, [])}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> PolicyChange:
        """Parse a change from its JSON.

        Raises:
            KeyError, TypeError, ValueError: the JSON is not a change.
        """
        kind = ChangeKind(stored["kind"])
        condition, params = stored.get("condition"), stored.get("params", [])
        if not isinstance(params, list):
            raise TypeError(f"{params!r} are not names of params")
        return cls(
            kind,
            str(stored.get("tool", "")),
            _load_employee_id(stored.get("employee")),
            Level(stored["level"]) if stored.get("level") else None,
            Condition.from_json(condition) if condition else None,
            str(stored.get("host", "")),
            tuple(map(str, params)),
            tuple(map(read_grant_condition, stored.get("conditions", ()))),
            read_named_rule(stored["rule"]) if kind in OF_CARDS else None,
        )

    def concerns(self, employee_id: int) -> bool:
        """Return True if the change is for this employee, or for all employees."""
        return self.employee_id in (None, employee_id)

    def describe(self, employees: Mapping[int, str]) -> str:
        """Describe the change in words, such as `Dana: stop data.bulkDelete`."""
        if self.rule is not None:
            terms = (
                ""
                if self.kind is ChangeKind.NO_APPROVAL_RULE
                else f": {describe_rule(self.rule, employees)}"
            )
            return f"{LABELS[self.kind]} “{self.rule.name}”{terms}"
        if self.kind in OF_HOSTS:
            return f"{LABELS[self.kind]}: {self.host}"
        who = (
            "All employees"
            if self.employee_id is None
            else employees.get(self.employee_id, "A removed employee")
        )
        what = f"{LABELS[self.kind][:1].lower()}{LABELS[self.kind][1:]}".replace(
            "the tool", self.tool
        )
        more = (
            f" to {self.level.value}"
            if self.level
            else f" ({self.condition.describe()})"
            if self.condition
            else ""
        )
        return f"{who}: {what}{more}"


def _load_employee_id(stored: Any) -> int | None:
    if stored is not None and type(stored) is not int:  # True would be employee 1
        raise TypeError(f"{stored!r} is not an employee's id")
    return stored


def apply_changes(rules: RecordedRules, changes: Iterable[PolicyChange]) -> RecordedRules:
    """Return a copy of the rules with these changes. Standing grants and approval rules are left
    out, because they are applied elsewhere."""
    grants, policy = rules.grants, rules.policy
    for change in changes:
        if change.kind in OF_HOSTS:
            policy = _change_hosts(policy, change)
        elif change.kind is not ChangeKind.STANDING_GRANT and change.kind not in OF_CARDS:
            grants = _change_grants(grants, change)
    return replace(rules, grants=grants, policy=policy)


def _change_hosts(policy: Policy, change: PolicyChange) -> Policy:
    host = {change.host.lower()}
    allowed = (
        policy.allowed_hosts | host
        if change.kind is ChangeKind.ALLOW_HOST
        else policy.allowed_hosts - host
    )
    return replace(policy, allowed_hosts=allowed)


def _change_grants(grants: Grants, change: PolicyChange) -> Grants:
    tool = change.tool
    match change.kind:
        case ChangeKind.GRANT:
            return replace(grants, tools=grants.tools | {tool})
        case ChangeKind.REVOKE:
            return replace(grants, tools=grants.tools - {tool})
        case ChangeKind.LEVEL if change.level is not None:
            levels = (change.level, grants.raised.get(tool, change.level))
            return replace(
                grants, raised={**grants.raised, tool: max(levels, key=lambda level: level.rank)}
            )
        case ChangeKind.LIMIT if change.condition is not None:
            limits = (*grants.conditions.get(tool, ()), change.condition)
            return replace(grants, conditions={**grants.conditions, tool: limits})
        case ChangeKind.NO_LIMITS:
            return replace(
                grants,
                conditions={name: each for name, each in grants.conditions.items() if name != tool},
            )
        case ChangeKind.STOP:
            return replace(grants, stopped={**grants.stopped, tool: STOPPED_BY})
    raise ValueError(f"{change.kind} lacks its value")
