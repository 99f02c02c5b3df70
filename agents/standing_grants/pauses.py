"""Find pauses of standing grants: calls that their makers could not decide alone under the current
rules, and params that now need a condition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agents.accounts.models import Organization
from agents.approval_rules.loading import load_rules, load_voters
from agents.approvals.requesters import find_requesters
from agents.employees.toolboxes import load_toolbox
from agents.runs.models import Approval
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.proposals import describe_need, find_naming
from tools.contract import Level
from tools.toolbox import Toolbox
from tools.toolbox.approval_rules import CastVote, RuledCard, RuleTerms, Voter, count_votes


@dataclass(frozen=True)
class Pause:
    """The reason why a standing grant in force leaves calls to a person.

    Attributes:
        is_complete: True if the standing grant approves no call at all now.
    """

    because: str
    is_complete: bool


def find_pauses(organization: Organization, grants: Iterable[StandingGrant]) -> dict[int, Pause]:
    """Find the pauses of these standing grants, by grant id. An approval rule, the two-person rule
    or a free param that names something can pause a standing grant.

    Costs one query for the rules and, if there are any, two more. Under the two-person rule,
    standing grants for a single run also cost the queries of `find_requesters`.
    """
    rows = list(grants)
    if not rows:
        return {}
    rules = load_rules(organization)
    toolbox = load_toolbox(organization.pk)
    unconditioned = {row.pk: _find_unconditioned(row, toolbox) for row in rows}
    found = {pk: pause for pk, pause in unconditioned.items() if pause is not None}
    if not rules:
        return found
    voters = load_voters(organization.pk, {row.made_by_id for row in rows})
    in_own_run = _find_in_own_run(rows) if organization.four_eyes else frozenset()
    for row in rows:
        maker = row.made_by.get_username()
        unmet = _find_unmet(
            row, [rule for rule in rules if not rule.conditions], voters.get(row.made_by_id)
        )
        if unmet is not None:
            found[row.pk] = Pause(
                f"Approval rule “{unmet.name}”: {maker} cannot approve these calls alone.",
                is_complete=True,
            )
        elif organization.four_eyes and row.pk not in found:
            found[row.pk] = _describe(maker, is_complete=row.pk in in_own_run)
    return found


def _find_unconditioned(row: StandingGrant, toolbox: Toolbox) -> Pause | None:
    """Return the pause of a standing grant if one of its free params always names something; None
    otherwise."""
    tool = toolbox.get_defined_tool(row.tool, row.definition_hash)
    try:
        free = row.as_terms().free_params
    except ValueError:
        return None  # a grant with unreadable terms does not approve anything
    if tool is None or not (naming := find_naming(tool, free)):
        return None
    return Pause(f"{min(naming)} {describe_need(naming[min(naming)])}", is_complete=True)


def _find_unmet(
    row: StandingGrant, rules: Iterable[RuleTerms], maker: Voter | None
) -> RuleTerms | None:
    """Find a rule that matches every call of the standing grant and that its maker cannot meet
    alone."""
    tool = load_toolbox(row.organization_id).get_defined_tool(row.tool, row.definition_hash)
    call = RuledCard(
        row.tool, tool.category if tool else "", Level(row.level), row.employee_id or 0
    )
    votes = [] if maker is None else [CastVote(maker)]
    return next((state.rule for state in count_votes(call, votes, rules) if state.missing), None)


def _find_in_own_run(grants: Iterable[StandingGrant]) -> set[int]:
    """Return the ids of the standing grants that are limited to a run which their maker
    requested."""
    makers = {row.pk: row.made_by_id for row in grants if row.run_id is not None}
    # Unsaved cards, because `find_requesters` takes cards and needs only their run.
    runs = [Approval(pk=row.pk, run_id=row.run_id) for row in grants if row.run_id is not None]
    asked = find_requesters(runs)
    return {pk for pk, maker in makers.items() if any(each.user_id == maker for each in asked[pk])}


def _describe(maker: str, *, is_complete: bool) -> Pause:
    if is_complete:
        return Pause(
            f"Two-person rule: {maker} requested this run, so someone else must approve its calls.",
            is_complete,
        )
    return Pause(
        f"Two-person rule: this standing grant never approves calls that {maker} requested.",
        is_complete,
    )
