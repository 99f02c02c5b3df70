"""The kinds of rows that limit people and employees: their values, and how to remove or recreate a
row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Model, QuerySet

from agents.accounts.models import Membership, Organization
from agents.approval_rules.models import ApprovalRule, ApproverGroup
from agents.employees.models import Employee, Grant, ModelProvider, ToolRule
from agents.platform.refusals import Conflict
from agents.restores.values import (
    LimitField,
    describe_rule_conditions,
    describe_tools,
    take_common,
    take_higher,
    take_higher_level,
    take_lower,
    take_lower_role,
    take_newer,
    take_off,
    take_on,
)
from tools.connections.models import AllowedHost, Source, SourceTool

Values = dict[str, Any]


@dataclass(frozen=True)
class LimitKind:
    """A kind of rows that limit people or employees.

    Attributes:
        organization: the field path from a row to the organization's id.
        restricts: True if a row forbids something; otherwise a row permits something.
        end: removes the row, or makes it ineffective.
        related: the related rows to load with each row.
    """

    name: str
    label: str
    model: type[Model]
    fields: tuple[LimitField, ...]
    organization: str = "organization_id"
    restricts: bool = False
    end: Callable[[Any], None] = lambda row: row.delete()
    related: tuple[str, ...] = ()

    def list_rows(self, organization_id: int) -> QuerySet[Any]:
        """List the organization's rows, oldest first."""
        rows = self.model._default_manager.filter(**{self.organization: organization_id})
        return rows.select_related(*self.related).order_by("pk")

    def read_values(self, row: Model) -> Values:
        """Return the row's values as JSON."""
        return {field.name: field.read_value(row) for field in self.fields}

    def write_values(self, row: Model, values: Values) -> None:
        """Set the values and save the row; a column stays unchanged if an older version stored no
        value for it."""
        saved_first = row._state.adding
        for field in sorted(self.fields, key=lambda field: saved_first and field.write is not None):
            if field.name in values:
                field.write_value(row, values[field.name])
        row.save()

    def find_stricter(self, restored: Values, newer: Values) -> Values:
        """Return the stricter value of each field that is in both."""
        both = [field for field in self.fields if field.name in restored.keys() & newer.keys()]
        return {
            field.name: field.stricter(restored[field.name], newer[field.name]) for field in both
        }


def _budget(name: str, label: str) -> LimitField:
    return LimitField(name, label, take_lower)


def _user_field(name: str, label: str, *, is_secret: bool = False) -> LimitField:
    """Return the field for a column of a member's account."""

    def write(row: Membership, value: Any) -> None:
        setattr(row.user, name, value)
        row.user.save(update_fields=[name])

    stricter = take_newer if is_secret else take_off
    return LimitField(name, label, stricter, lambda row: getattr(row.user, name), write, is_secret)


def _write_members(row: ApproverGroup, names: list[str]) -> None:
    if row._state.adding:
        row.save()
    row.members.set(
        Membership.objects.filter(organization_id=row.organization_id, user__username__in=names)
    )


def _read_members(row: ApproverGroup) -> list[str]:
    return sorted(row.members.values_list("user__username", flat=True))


def _group_field(name: str, label: str) -> LimitField:
    """Return the field for a group of an approval rule, stored by name, because its id may differ
    after a restore."""

    def read(row: ApprovalRule) -> str:
        group = getattr(row, name)
        return group.name if group else ""

    def write(row: ApprovalRule, value: str) -> None:
        group = ApproverGroup.objects.filter(
            organization_id=row.organization_id, name=value
        ).first()
        if value and group is None:
            raise Conflict(
                f"There is no group {value}. Confirm its line first, or create the group."
            )
        setattr(row, name, group)

    return LimitField(name, label, take_newer, read, write)


def _write_employee(row: ApprovalRule, employee_id: int | None) -> None:
    own = Employee.objects.filter(organization_id=row.organization_id)
    if employee_id is not None and not own.filter(pk=employee_id).exists():
        raise Conflict("The employee of this rule is not in the backup. Leave the rule out.")
    row.employee_id = employee_id


def _read_tools(row: Employee) -> Values:
    return {
        grant.tool: {
            "level": grant.level,
            "version": grant.version,
            "conditions": grant.conditions,
            "delegates": grant.delegates,
        }
        for grant in row.grants.order_by("tool")
    }


def _write_tools(row: Employee, tools: Values) -> None:
    row.grants.exclude(tool__in=tools).delete()
    for tool, values in tools.items():
        Grant.objects.update_or_create(employee=row, tool=tool, defaults=values)


def _take_stricter_tools(restored: Values, newer: Values) -> Values:
    return {
        tool: {
            **values,
            "level": take_higher_level(restored[tool]["level"], values["level"]),
            "delegates": take_common(restored[tool]["delegates"], values["delegates"]),
        }
        for tool, values in newer.items()
        if tool in restored
    }


def _read_source_tools(row: Source) -> Values:
    chosen = row.tools.filter(is_chosen=True).order_by("tool")
    return {tool.tool: {"level": tool.level, "accepted": tool.accepted_hash} for tool in chosen}


def _write_source_tools(row: Source, tools: Values) -> None:
    SourceTool.objects.filter(source=row).exclude(tool__in=tools).update(is_chosen=False)
    for tool, values in tools.items():
        rows = SourceTool.objects.filter(source=row, tool=tool)
        rows.update(is_chosen=True, level=values["level"], accepted_hash=values["accepted"])


def _take_stricter_source_tools(restored: Values, newer: Values) -> Values:
    return {
        tool: {**values, "level": take_higher_level(restored[tool]["level"], values["level"])}
        for tool, values in newer.items()
        if tool in restored
    }


def _remove_member(row: Membership) -> None:
    """Remove the member; an account that is in no other organization also stops being a
    superuser."""
    row.delete()
    if not row.user.memberships.exists():
        type(row.user).objects.filter(pk=row.user_id).update(is_superuser=False)


def _deactivate(row: Any) -> None:
    type(row).objects.filter(pk=row.pk).update(is_active=False)


KINDS = (
    LimitKind(
        "organization",
        "Organization",
        Organization,
        (
            LimitField("four_eyes", "two-person rule", take_on),
            LimitField("break_glass", "break-glass", take_off),
            LimitField("break_glass_address", "break-glass address", take_newer),
            LimitField("card_days", "card lifetime (days)", take_lower),
            LimitField("confirm_count", "confirm above (objects)", take_lower),
            LimitField("confirm_percent", "confirm above (percent)", take_lower),
            LimitField("plan_features", "plan features", take_common),
            LimitField("languages", "languages", take_common, lambda row: row.languages or []),
            LimitField("learns_languages", "learn languages", take_off),
            _budget("month_tokens", "monthly token limit"),
            _budget("month_cost", "monthly cost limit"),
        ),
        organization="pk",
    ),
    LimitKind(
        "member",
        "Member",
        Membership,
        (
            LimitField("role", "role", take_lower_role),
            _user_field("is_active", "can log in"),
            _user_field("is_superuser", "superuser"),
            _user_field("password", "password", is_secret=True),
        ),
        end=_remove_member,
        related=("user",),
    ),
    LimitKind(
        "group",
        "Approver group",
        ApproverGroup,
        (
            LimitField("name", "name", take_newer),
            LimitField("members", "members", take_common, _read_members, _write_members),
        ),
        restricts=True,
    ),
    LimitKind(
        "approval_rule",
        "Approval rule",
        ApprovalRule,
        (
            LimitField("name", "name", take_newer),
            LimitField("is_active", "active", take_on),
            LimitField("needed", "people", take_higher),
            LimitField("excludes_requesters", "without requesters", take_on),
            LimitField("tool", "tool", take_newer),
            LimitField("category", "category", take_newer),
            LimitField("level", "level", take_newer),
            LimitField(
                "employee", "employee", take_newer, lambda row: row.employee_id, _write_employee
            ),
            LimitField("conditions", "conditions", take_newer, words=describe_rule_conditions),
            _group_field("group", "group"),
            LimitField("escalate_hours", "hours until the second group", take_newer),
            _group_field("second_group", "second group"),
        ),
        restricts=True,
        related=("group", "second_group"),
    ),
    LimitKind(
        "tool_rule",
        "Tool rule",
        ToolRule,
        (
            LimitField("tool", "tool", take_newer),
            LimitField("level", "level", take_higher_level),
            LimitField("stopped_at", "stopped", take_on),
            LimitField("stopped_by", "stopped by", take_on),
        ),
        restricts=True,
    ),
    LimitKind(
        "employee",
        "Employee",
        Employee,
        (
            LimitField("is_active", "active", take_off),
            LimitField("stopped_at", "stopped", take_on),
            LimitField("stopped_by", "stopped by", take_on),
            LimitField("max_passes", "pass limit", take_lower),
            _budget("run_minutes", "time limit (min)"),
            _budget("run_tokens", "token limit per run"),
            _budget("run_cost", "cost limit per run"),
            _budget("month_tokens", "monthly token limit"),
            _budget("month_cost", "monthly cost limit"),
            _budget("month_minutes", "monthly model time limit (min)"),
            LimitField("capabilities", "capabilities", take_common),
            LimitField(
                "tools",
                "allowed tools",
                _take_stricter_tools,
                _read_tools,
                _write_tools,
                words=describe_tools,
            ),
        ),
        end=_deactivate,
    ),
    LimitKind(
        "provider",
        "Model provider",
        ModelProvider,
        (
            LimitField("is_active", "active", take_off),
            LimitField("base_url", "address", take_newer),
            LimitField("prices", "prices", take_newer),
        ),
        end=_deactivate,
    ),
    LimitKind(
        "source",
        "Tool source",
        Source,
        (
            LimitField("is_active", "active", take_off),
            LimitField("address", "address", take_newer),
            LimitField("base_url", "address of operations", take_newer),
            LimitField("command", "command", take_newer),
            LimitField(
                "tools",
                "enabled tools",
                _take_stricter_source_tools,
                _read_source_tools,
                _write_source_tools,
                words=describe_tools,
            ),
        ),
        end=_deactivate,
    ),
    LimitKind(
        "host",
        "Allowed host",
        AllowedHost,
        (
            LimitField("without_card", "reachable without approval", take_off),
            LimitField("may_be_private", "private network allowed", take_off),
            LimitField("opened_by_superuser", "opened by a superuser", take_off),
        ),
    ),
)
"""All kinds of limits, in the order of the page: groups come before the rules that name them."""
BY_NAME = {kind.name: kind for kind in KINDS}


def bump_versions(organization_id: int) -> None:
    """Make every process reload the organization's tools and credentials."""
    Organization.objects.filter(pk=organization_id).update(
        tools_version=F("tools_version") + 1, credentials_version=F("credentials_version") + 1
    )
