"""Load approval rules from their rows, and people in the form that rules compare."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace

from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from agents.accounts.models import Membership, Organization, Role
from agents.approval_rules.models import ApprovalRule, Deputy
from tools.toolbox.approval_rules import NEVER_MET, TWO_PERSON_RULE, RuleTerms, Voter

logger = logging.getLogger(__name__)
HAS_RULES = Exists(
    ApprovalRule.objects.filter(organization_id=OuterRef("organization_id"), is_active=True)
)
"""The annotation `has_rules`, for rows that belong to an organization. It saves a query if the
organization has no approval rules."""


def load_rules(organization: Organization) -> list[RuleTerms]:
    """Load the organization's approval rules in one query, with the two-person rule if it is on.

    A rule that cannot be read matches every card and is never met, so that it never makes approval
    easier.
    """
    rows = ApprovalRule.objects.filter(organization_id=organization.pk, is_active=True)
    rules = [_read(row) for row in rows.select_related("group", "second_group").order_by("pk")]
    return [*rules, TWO_PERSON_RULE] if organization.four_eyes else rules


def load_voters(organization_id: int, user_ids: Collection[int] | None = None) -> dict[int, Voter]:
    """Load members of the organization as voters, by user id, together with the people whom they
    represent; this takes two queries.

    Args:
        user_ids: the users to load, with the people whom they represent; None for all members.
    """
    deputies = _load_deputies(organization_id)
    wanted = (
        None
        if user_ids is None
        else _add_represented(_add_represented(set(user_ids), deputies), deputies)
    )
    found = _load_members(organization_id, wanted)
    represented = {pk: [found[other] for other in deputies[pk] if other in found] for pk in found}
    alone = {pk: replace(voter, deputy_for=tuple(represented[pk])) for pk, voter in found.items()}
    return {
        pk: replace(voter, deputy_for=tuple(alone[other.id] for other in represented[pk]))
        for pk, voter in found.items()
    }


def _add_represented(user_ids: set[int], deputies: dict[int, list[int]]) -> set[int]:
    """Return the ids of these users and of the people whom they represent."""
    return user_ids | {other for pk in user_ids for other in deputies[pk]}


def _load_members(organization_id: int, user_ids: Collection[int] | None) -> dict[int, Voter]:
    rows = Membership.objects.filter(organization_id=organization_id)
    if user_ids is not None:
        rows = rows.filter(user_id__in=user_ids)
    columns = ("user_id", "user__username", "user__is_active", "role", "approver_groups")
    found: dict[int, Voter] = {}
    for user_id, name, is_active, role, group_id in rows.order_by("user_id").values_list(*columns):
        known = found.get(user_id)
        groups = known.groups if known else frozenset()
        found[user_id] = Voter(
            id=user_id,
            name=name,
            may_approve=is_active and Role(role).includes(Role.APPROVER),
            groups=groups if group_id is None else groups | {group_id},
        )
    return found


def _load_deputies(organization_id: int) -> dict[int, list[int]]:
    """Load, for each user, the ids of the people whose deputy this user is now."""
    rows = Deputy.objects.filter(
        member__organization_id=organization_id,
        deputy__organization_id=organization_id,
        starts_at__lte=Now(),
        ends_at__gt=Now(),
    )
    found = defaultdict(list)
    for deputy, other in rows.order_by("pk").values_list("deputy__user_id", "member__user_id"):
        found[deputy].append(other)
    return found


def _read(row: ApprovalRule) -> RuleTerms:
    try:
        return row.as_terms()
    except (TypeError, ValueError) as error:
        logger.error("approval rule %s cannot be read, so nobody can meet it: %s", row.pk, error)  # noqa: TRY400
        return replace(NEVER_MET, id=row.pk, name=row.name)
