"""Break-glass: in an emergency, an admin approves a card alone, although approval rules need other
people.

An organization has to allow break-glass. The card, the audit and a notice to all admins record it
permanently.
"""

from collections.abc import Callable

from django.db.models import Q, QuerySet

from agents.accounts.models import Membership, Organization, Role
from agents.approvals.requesters import find_requesters
from agents.approvals.votes import CardStanding, VoteRight, find_standings
from agents.employees.models import Employee, ToolRule
from agents.platform.refusals import Conflict, Forbidden, Invalid
from agents.runs.models import Approval
from tools.toolbox.approval_rules import Entitlement

MIN_REASON = 20

REACHES: list[Callable[[Organization, QuerySet[Membership]], bool]] = []
"""Predicates that return True if a notice can reach one of the given admins; `notices` adds a
predicate."""


def require_glass(
    member: Membership, organization: Organization, card: Approval, reason: str
) -> VoteRight:
    """Return this admin's right to approve the card alone. Call this under the lock of the card's
    run.

    Raises:
        Forbidden: the admin may not approve it, or the organization does not allow break-glass.
        Conflict: the admin can approve the card without break-glass, or a stop is active.
        Invalid: the reason is too short.
    """
    if sum(char.isprintable() for char in "".join(reason.split())) < MIN_REASON:
        raise Invalid("reason", f"write a reason of at least {MIN_REASON} characters")
    standing = find_standings(organization, [card]).get(card.pk)
    if refusal := explain_refusal(member, organization, card, standing):
        raise refusal
    if standing is None:
        raise Conflict("no approval rule holds this card back")
    voter = standing.voters.get(member.user_id)
    return VoteRight(Entitlement(None, completes=True), standing, voter, breaks_glass=True)


def explain_refusal(
    member: Membership, organization: Organization, card: Approval, standing: CardStanding | None
) -> Forbidden | Conflict | None:
    """Return the reason why this member cannot break the glass for this card; None if they can."""
    if (barred := _find_bar(member, organization, card)) is not None:
        return barred
    if standing is None or standing.may_decide(member).completes:
        return Conflict("approve this card in the ordinary way: you can do so alone")
    return (
        Conflict("this is stopped, and break-glass never overrides a stop")
        if _is_stopped(card)
        else None
    )


def _is_stopped(card: Approval) -> bool:
    """Return True if everything, the employee or the tool is stopped, even if the stop has not
    reached the run yet."""
    stopped = Q(stopped_at__isnull=False)
    employees = Employee.objects.filter(
        stopped | Q(organization__stopped_at__isnull=False), pk=card.run.employee_id
    )
    rules = ToolRule.objects.filter(
        stopped, organization_id=card.organization_id, tool=card.tool_call.tool
    )
    return employees.exists() or rules.exists()


def _find_bar(member: Membership, organization: Organization, card: Approval) -> Forbidden | None:
    admins = Membership.objects.filter(
        organization=organization, role=Role.ADMIN, user__is_active=True
    )
    if not organization.break_glass:
        return Forbidden("this organization does not allow break-glass")
    if not admins.filter(pk=member.pk).exists():
        return Forbidden("only admins can break the glass")
    if any(each.user_id == member.user_id for each in find_requesters([card]).get(card.pk, ())):
        return Forbidden(
            "you asked for this call or edited it, so another admin must break the glass"
        )
    if any(reaches(organization, admins.exclude(pk=member.pk)) for reaches in REACHES):
        return None
    return Forbidden(
        "no other admin has a confirmed address for notices, and there is no break-glass address"
    )
