"""Store, describe and check the approval rules of policy drafts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agents.approval_rules.models import MAX_NEEDED, ApprovalRule, ApproverGroup
from agents.approval_rules.who_may_decide import describe_people
from agents.platform.refusals import Invalid
from tools.toolbox.approval_rules import Group, RuleTerms
from tools.toolbox.rulings import read_rule, store_rule

MAX_NAME = 80
REMOVED = "a removed group"


def store_named_rule(rule: RuleTerms) -> dict[str, Any]:
    """Return the rule as JSON. It contains the ids of the rule's groups, so that a reader sees the
    groups' current names."""
    return {**store_rule(rule), "name": rule.name}


def read_named_rule(stored: Mapping[str, Any]) -> RuleTerms:
    """Read a stored rule.

    Raises:
        KeyError, TypeError, ValueError: the stored value is not a rule.
    """
    try:
        rule = read_rule(stored)
    except OverflowError as error:
        raise ValueError(f"a number of the rule is too large: {error}") from error
    if not 1 <= rule.needed <= MAX_NEEDED:
        raise ValueError(f"a rule cannot need {rule.needed} people")
    # `True` is an int in Python, and would name employee 1.
    if rule.employee_id is not None and type(rule.employee_id) is not int:
        raise TypeError(f"{rule.employee_id!r} is not an employee's id")
    if "\0" in f"{stored['name']}{rule.tool}{rule.category}":
        raise ValueError("no name contains NUL")
    return replace(rule, name=str(stored["name"])[:MAX_NAME])


def check_named_rule(organization_id: int, rule: RuleTerms) -> None:
    """Check that the rule and the groups that it names belong to the organization.

    Raises:
        Invalid
    """
    rules = ApprovalRule.objects.filter(organization_id=organization_id)
    if rule.id and rule.id not in set(rules.values_list("pk", flat=True)):
        raise Invalid("changes", "One of these approval rules no longer exists. Start over.")
    if not {group.id for group in _list_groups(rule)} <= _load_groups(organization_id).keys():
        raise Invalid("changes", "One of these groups no longer exists. Start over.")


def name_groups(organization_id: int, rule: RuleTerms) -> RuleTerms:
    """Return the rule with the current names of its groups."""
    if not _list_groups(rule):
        return rule
    names = _load_groups(organization_id)
    first, second = (
        group and Group(group.id, names.get(group.id, REMOVED))
        for group in (rule.group, rule.second_group)
    )
    return replace(rule, group=first, second_group=second)


def describe_rule(rule: RuleTerms, employees: Mapping[int, str]) -> str:
    """Describe the people that a rule requires and the cards that it covers, such as `needs 2
    approvers; for data.updateRecord`."""
    parts = [describe_people(rule, [rule.group] if rule.group else ())]
    if rule.escalates_after is not None and rule.second_group is not None:
        hours = int(rule.escalates_after.total_seconds() // 3600)
        parts.append(
            f"after {hours} hour{'' if hours == 1 else 's'} also people of {rule.second_group.name}"
        )
    scope = [rule.tool or rule.category or "every tool"]
    if rule.level is not None:
        scope.append(f"{rule.level.value} level")
    if rule.employee_id is not None:
        scope.append(employees.get(rule.employee_id, "a removed employee"))
    if rule.conditions:
        scope.append(
            f"if {' and '.join(condition.describe_match() for condition in rule.conditions)}"
        )
    return "; ".join([*parts, f"for {', '.join(scope)}"])


def _list_groups(rule: RuleTerms) -> list[Group]:
    return [group for group in (rule.group, rule.second_group) if group is not None]


def _load_groups(organization_id: int) -> dict[int, str]:
    return dict(
        ApproverGroup.objects.filter(organization_id=organization_id).values_list("pk", "name")
    )
