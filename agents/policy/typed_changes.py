"""Read changes to the rules from a form that a person filled in, or from JSON that a page sent
back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from agents.employees.limit_sentences import parse_condition
from agents.employees.models import Employee
from agents.employees.toolboxes import load_toolbox
from agents.platform.refusals import Invalid
from agents.platform.row_ids import parse_row_id_or_none
from agents.policy.named_rules import check_named_rule, name_groups
from agents.policy.policy_drafts import LABELS, OF_CARDS, OF_HOSTS, ChangeKind, PolicyChange
from agents.standing_grants.proposals import check_proposal, find_tool
from tools.contract import Level, Tool
from tools.toolbox import Condition, Otherwise, Rule

MAX_CHANGES = 20
MAX_HOST = 253
MAX_BLANK = 200
FORM_LABELS = {
    kind: label
    for kind, label in LABELS.items()
    if kind not in (ChangeKind.STANDING_GRANT, *OF_CARDS)
}
"""The changes that the form offers; standing grants and approval rules have their own forms."""
RULES = {
    Rule.EQUALS: "is",
    Rule.ONE_OF: "is one of (separated by commas)",
    Rule.PATTERN: "matches the pattern",
    Rule.MINIMUM: "is at least",
    Rule.MAXIMUM: "is at most",
    Rule.MAX_LENGTH: "has at most this many characters or entries",
    Rule.NOT_FROM_OUTSIDE: "does not come from outside",
}
RULES_OVER_HISTORY = {
    Rule.CALL_COUNT: "the tool is called at most so often",
    Rule.SUM: "the sum of the parameter is at most",
    Rule.ONLY_AFTER: "an earlier call in this run had the same value",
}
"""The rules that the form offers as sentences of `limit_sentences`, with their blanks."""
_BLANKS = ("param", "most", "period", "after", "same")


def read_change(organization_id: int, given: Mapping[str, str]) -> PolicyChange:
    """Read one change from the fields of a form: kind, tool, employee, level, param, rule, value,
    otherwise, host.

    Raises:
        Invalid: a field is wrong; the text is for people.
    """
    if given.get("kind") not in FORM_LABELS:
        raise Invalid("kind", "Choose what to change.")
    kind = ChangeKind(given["kind"])
    if kind in OF_HOSTS:
        return PolicyChange(kind, host=_read_host(given.get("host", "")))
    employee_id = _read_employee(organization_id, given.get("employee", ""))
    tool = find_tool(organization_id, given.get("tool", "").replace("\0", ""), employee_id)
    if tool is None or tool.is_system:
        raise Invalid("tool", "Choose a tool.")
    change = PolicyChange(kind, tool.name, employee_id)
    if kind is ChangeKind.LEVEL:
        return replace(change, level=_read_level(tool, given.get("level", "")))
    if kind is not ChangeKind.LIMIT:
        return change
    if given.get("rule") in RULES_OVER_HISTORY:
        return replace(change, condition=_read_sentence(organization_id, tool, given))
    return replace(change, condition=_read_condition(tool, given))


def read_changes(organization_id: int, text: str) -> tuple[PolicyChange, ...]:
    """Read changes that a page sent back as JSON, and check that they belong to the organization.

    Raises:
        Invalid
    """
    try:
        stored = json.loads(text) if text.strip() else []
        changes = tuple(PolicyChange.from_json(each) for each in stored)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise Invalid("changes", "These changes cannot be read. Start over.") from error
    rules = [change.rule for change in changes if change.rule is not None]
    employees = {change.employee_id for change in changes} | {rule.employee_id for rule in rules}
    if not employees - {None} <= list_employees(organization_id).keys():
        raise Invalid("changes", "One of these employees no longer exists. Start over.")
    if len(changes) > MAX_CHANGES:
        raise Invalid("changes", f"A policy draft has at most {MAX_CHANGES} changes.")
    for change in changes:
        if change.kind is ChangeKind.STANDING_GRANT:
            check_proposal(organization_id, change.as_proposed_grant())
    for rule in rules:
        check_named_rule(organization_id, rule)
    return name_rule_groups(organization_id, changes)


def name_rule_groups(
    organization_id: int, changes: Iterable[PolicyChange]
) -> tuple[PolicyChange, ...]:
    """Return the changes with the current names of the groups in their approval rules."""
    return tuple(
        replace(change, rule=name_groups(organization_id, change.rule)) if change.rule else change
        for change in changes
    )


def list_employees(organization_id: int) -> dict[int, str]:
    """Return the names of the organization's employees by id, sorted by name."""
    return dict(
        Employee.objects.filter(organization_id=organization_id)
        .order_by("name")
        .values_list("pk", "name")
    )


def _read_employee(organization_id: int, text: str) -> int | None:
    if not text:
        return None
    pk = parse_row_id_or_none(text)
    if pk is None or not Employee.objects.filter(organization_id=organization_id, pk=pk).exists():
        raise Invalid("employee", "Choose an employee, or all employees.")
    return pk


def _read_host(text: str) -> str:
    host = text.strip().lower()
    if not host or len(host) > MAX_HOST or any(each in host for each in " /\0:@"):
        raise Invalid(
            "host", "Enter the name of a host, such as api.example.com, without https:// or a path."
        )
    return host


def _read_level(tool: Tool, text: str) -> Level:
    if text not in tuple(Level) or Level(text).rank <= tool.level.rank:
        raise Invalid(
            "level",
            f"{tool.title} has the level {tool.level.value}. Only a higher level can be set.",
        )
    return Level(text)


def _read_condition(tool: Tool, given: Mapping[str, str]) -> Condition:
    param, rule = given.get("param", "").strip(), given.get("rule", "")
    known = sorted(tool.schema["properties"])
    if param.partition(".")[0] not in known:
        names = ", ".join(known) or "none"
        raise Invalid("param", f"{tool.title} has no parameter {param[:80]!r}. It has: {names}.")
    if rule not in tuple(RULES):
        raise Invalid("rule", "Choose a rule.")
    otherwise = given.get("otherwise", "") or Otherwise.ASK.value
    stored = {
        "param": param,
        "rule": rule,
        "value": _read_value(Rule(rule), given.get("value", "")[:1_000]),
    }
    try:
        return Condition.from_json({**stored, "otherwise": otherwise})
    except ValueError as error:
        raise Invalid("value", f"{error}.") from error


def _read_sentence(organization_id: int, tool: Tool, given: Mapping[str, str]) -> Condition:
    """Read a limit over history from the fields of a form, and refuse wrong fields as Invalid."""
    catalog = {one.name: one for one in load_toolbox(organization_id).tools() if not one.is_system}
    catalog[tool.name] = tool
    row = {name: given.get(name, "").replace("\0", "")[:MAX_BLANK] for name in _BLANKS}
    otherwise = given.get("otherwise", "") or Otherwise.ASK.value
    try:
        return parse_condition(
            {**row, "sentence": given["rule"], "tool": tool.name, "otherwise": otherwise}, catalog
        )
    except ValueError as error:
        raise Invalid("value", f"Limit of {tool.title}: {error}.") from error


def _read_value(rule: Rule, text: str) -> Any:
    if rule is Rule.NOT_FROM_OUTSIDE:
        return True
    if rule is Rule.PATTERN:
        return text
    if rule is Rule.ONE_OF:
        return [_read_literal(part.strip()) for part in text.split(",") if part.strip()]
    return _read_literal(text.strip())


def _read_literal(text: str) -> Any:
    """Parse a number, boolean or quoted text; return any other text unchanged."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, str | int | float | bool) else text
