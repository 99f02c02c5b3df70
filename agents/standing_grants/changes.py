"""End standing grants whose tool, account or level has changed since their creation.

The gate ends such a standing grant when it compares a card with it. The sweeper ends the others,
whose tools may not be in use.
"""

from __future__ import annotations

from functools import lru_cache

from agents.accounts.models import Organization
from agents.employees.toolboxes import load_toolbox
from agents.runs.engine.context import load_grants, load_organization_rules
from agents.standing_grants.account_hash import hash_account
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.preapprovals import IN_FORCE, end_grants
from tools.contract import Level, Tool
from tools.toolbox.objections import Objection
from tools.toolbox.permissions import determine_level
from tools.toolbox.standing_grants import find_change


def end_changed() -> int:
    """End the standing grants in force whose tool, account or level has changed; return their
    number."""
    hash_once = lru_cache(hash_account)
    rows = (
        StandingGrant.objects.filter(IN_FORCE)
        .select_related("organization")
        .order_by("organization_id", "pk")
    )
    ended = 0
    for row in rows:
        tool = load_toolbox(row.organization_id).get_defined_tool(row.tool, row.definition_hash)
        if tool is not None and (
            change := _find_change(row, tool, hash_once(row.organization, tool))
        ):
            ended += end_grants(StandingGrant.objects.filter(pk=row.pk), change.why)
    return ended


def _find_change(row: StandingGrant, tool: Tool, account: str) -> Objection | None:
    try:
        terms = row.as_terms()
    except ValueError:
        return None  # a grant with unreadable terms does not approve anything
    return find_change(
        terms, tool.definition_hash, account, _find_level(row.organization, row.employee_id, tool)
    )


def _find_level(organization: Organization, employee_id: int | None, tool: Tool) -> Level:
    """Return the tool's level, or the higher level that an admin has set for the employee or for
    all employees."""
    rules = (
        load_organization_rules(organization.pk)
        if employee_id is None
        else load_grants(employee_id, "")
    )
    return determine_level(tool, rules)
