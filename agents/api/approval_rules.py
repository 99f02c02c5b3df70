"""Operations that read approval rules and their groups; people create and change them in the
admin."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import BaseModel, Field

from agents.api.auth import get_member
from agents.api.paging import take_newest
from agents.api.schemas import CursorPage, PageQuery
from agents.approval_rules.models import ApprovalRule, ApproverGroup

rules_router = Router(tags=["Approval rules"])
groups_router = Router(tags=["Approval rules"])


class ApprovalRuleDetail(BaseModel):
    """One approval rule; an empty text or null matches any value."""

    id: str
    name: str
    is_active: bool
    tool: str
    category: str
    level: str
    employee_id: str | None
    conditions: list[dict[str, Any]]
    needed: int = Field(description="The number of people who must approve each card.")
    group_id: str | None = Field(
        description="The group of the people who must approve; null for every approver."
    )
    excludes_requesters: bool = Field(
        description="Approvals by people who asked for the call or edited it do not count."
    )
    escalate_hours: int | None
    second_group_id: str | None = Field(
        description="The group whose approvals also count after `escalate_hours`."
    )


class ApprovalRuleList(CursorPage[ApprovalRuleDetail]):
    """A page of the list of approval rules."""


class GroupDetail(BaseModel):
    """One group of people whom approval rules name."""

    id: str
    name: str
    members: list[str] = Field(description="Their usernames.")


class GroupList(CursorPage[GroupDetail]):
    """A page of the list of groups."""


@rules_router.get("", response=ApprovalRuleList, summary="List approval rules")
def list_approval_rules(request: HttpRequest, filters: Query[PageQuery]) -> ApprovalRuleList:
    """List the organization's approval rules, newest first, without its two-person rule."""
    rows = ApprovalRule.objects.filter(organization_id=get_member(request).organization_id)
    page, next_cursor = take_newest(rows, filters)
    return ApprovalRuleList(items=[_build_rule(rule) for rule in page], next_cursor=next_cursor)


@groups_router.get("", response=GroupList, summary="List groups")
def list_groups(request: HttpRequest, filters: Query[PageQuery]) -> GroupList:
    """List the organization's groups of approvers, newest first."""
    rows = ApproverGroup.objects.filter(organization_id=get_member(request).organization_id)
    page, next_cursor = take_newest(rows.prefetch_related("members__user"), filters)
    return GroupList(items=[_build_group(group) for group in page], next_cursor=next_cursor)


def _build_rule(rule: ApprovalRule) -> ApprovalRuleDetail:
    return ApprovalRuleDetail(
        id=str(rule.pk),
        name=rule.name,
        is_active=rule.is_active,
        tool=rule.tool,
        category=rule.category,
        level=rule.level,
        employee_id=_as_text(rule.employee_id),
        conditions=rule.conditions,
        needed=rule.needed,
        group_id=_as_text(rule.group_id),
        excludes_requesters=rule.excludes_requesters,
        escalate_hours=rule.escalate_hours,
        second_group_id=_as_text(rule.second_group_id),
    )


def _build_group(group: ApproverGroup) -> GroupDetail:
    names = sorted(member.user.get_username() for member in group.members.all())
    return GroupDetail(id=str(group.pk), name=group.name, members=names)


def _as_text(row_id: int | None) -> str | None:
    return None if row_id is None else str(row_id)
