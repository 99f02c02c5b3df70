"""Create, revoke and end standing grants."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Count, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now

from agents.accounts import audit
from agents.accounts.models import Membership, Organization, Role
from agents.approvals.current_calls import replace_unstarted_card
from agents.approvals.own_cards import require_approver
from agents.employees.models import Employee
from agents.platform.refusals import Conflict, Forbidden, Invalid
from agents.platform.row_ids import get_row
from agents.runs.models import APPROVED_STATES, ENDED, Approval, ApprovalStatus, Run
from agents.standing_grants.account_hash import hash_account
from agents.standing_grants.models import StandingGrant
from agents.standing_grants.preapprovals import IN_FORCE, LOST_RIGHT, end_grants, tell_end
from agents.standing_grants.proposals import ProposedGrant, check_proposal, find_tool
from agents.standing_grants.result_fields import pin_sources, unpin_sources
from tools.toolbox.grant_sources import read_grant_condition

MAX_IN_FORCE = 200
"""The maximum number of an organization's standing grants that are in force with uses left."""
MAX_REPLACED_AT_ONCE = 20
"""The maximum number of cards that a revocation itself replaces, each with a new preview; the
sweeper replaces the others."""

_COUNTED = (
    Approval.objects.filter(standing_grant=OuterRef("pk"), status__in=APPROVED_STATES)
    .order_by()
    .values("standing_grant")
)
_USES = Coalesce(Subquery(_COUNTED.annotate(many=Count("*")).values("many")), 0)
"""The number of uses of each grant, as a subquery with an index: a join would read all cards of the
organization."""


def list_grants(organization_id: int) -> QuerySet[StandingGrant]:
    """Return the organization's standing grants, newest first, each with `used`, the number of its
    uses."""
    rows = StandingGrant.objects.filter(organization_id=organization_id)
    return (
        rows.select_related("employee", "run", "made_by", "revoked_by")
        .annotate(used=_USES)
        .order_by("-pk")
    )


def list_usable(organization_id: int) -> QuerySet[StandingGrant]:
    """Return the organization's standing grants that are in force and have uses left."""
    rows = StandingGrant.objects.filter(IN_FORCE, organization_id=organization_id)
    return rows.annotate(used=_USES).filter(used__lt=F("max_uses"))


def make_grant_once(
    member: Membership, proposal: ProposedGrant, client_grant_id: str
) -> tuple[StandingGrant, bool]:
    """Create a standing grant, and return it and True; or return the standing grant that the member
    has already created with the same id, and False.

    Raises:
        Conflict: the id belongs to a standing grant with other terms, or too many are in force.
        Forbidden, NotFound, Invalid
    """
    if made := find_made_before(member, proposal, client_grant_id):
        return made, False
    try:
        return make_grant(member, proposal, client_grant_id), True
    except IntegrityError:  # a concurrent identical request created it first
        if made := find_made_before(member, proposal, client_grant_id):
            return made, False
        raise


def find_made_before(
    member: Membership, proposal: ProposedGrant, client_grant_id: str
) -> StandingGrant | None:
    """Return the standing grant that an earlier request of the member with this id created; None if
    there is none.

    Raises:
        Conflict: the terms of that standing grant differ.
    """
    if not client_grant_id:
        return None
    mine = StandingGrant.objects.filter(organization=member.organization, made_by=member.user)
    made = mine.filter(client_grant_id=client_grant_id).first()
    if made is not None and not _has_terms(made, proposal):
        raise Conflict("This client_grant_id belongs to a standing grant with other terms.")
    return made


def _has_terms(made: StandingGrant, proposal: ProposedGrant) -> bool:
    try:
        conditions = unpin_sources(map(read_grant_condition, made.conditions))
    except (TypeError, ValueError):
        return False  # its stored terms are damaged
    return (
        (made.tool, made.employee_id, made.run_id, made.max_uses)
        == (proposal.tool, proposal.employee_id, proposal.run_id, proposal.max_uses)
        and made.params == sorted(proposal.params)
        and conditions == unpin_sources(proposal.conditions)
        and made.expires_at - made.made_at == proposal.lifetime
    )


def make_grant(
    member: Membership, proposal: ProposedGrant, client_grant_id: str = ""
) -> StandingGrant:
    """Create a standing grant; only admins can create a standing grant for all employees.

    Args:
        client_grant_id: the member's own id for the standing grant, or empty.

    Raises:
        Forbidden, NotFound
        Invalid: names the invalid field and the reason.
        Conflict: too many standing grants are in force.
    """
    require_approver(member)
    organization = member.organization
    tool = check_proposal(organization.pk, proposal)
    _check_scope(member, proposal)
    conditions = pin_sources(
        proposal.conditions, partial(find_tool, organization.pk, employee_id=proposal.employee_id)
    )
    with transaction.atomic():
        if list_usable(organization.pk).count() >= MAX_IN_FORCE:
            raise Conflict(
                f"There are already {MAX_IN_FORCE} standing grants in force. Revoke one first."
            )
        grant = StandingGrant.objects.create(
            organization=organization,
            tool=tool.name,
            definition_hash=tool.definition_hash,
            level=tool.level.value,
            account=hash_account(organization, tool),
            employee_id=proposal.employee_id,
            run_id=proposal.run_id,
            params=sorted(proposal.params),
            conditions=[condition.as_json() for condition in conditions],
            max_uses=proposal.max_uses,
            expires_at=Now() + proposal.lifetime,
            made_by=member.user,
            client_grant_id=client_grant_id,
        )
        terms = {"tool": tool.name, "conditions": grant.conditions, "params": grant.params}
        scope = {
            "employee": proposal.employee_id,
            "run": proposal.run_id,
            "uses": proposal.max_uses,
        }
        _record(
            member,
            "standing_grant_made",
            grant,
            **terms,
            **scope,
            seconds=int(proposal.lifetime.total_seconds()),
        )
    grant.refresh_from_db()
    return grant


def revoke_grant(member: Membership, grant_id: int) -> StandingGrant:
    """Revoke a standing grant: it no longer approves calls, and calls that have not started get new
    cards.

    Raises:
        Forbidden, NotFound
        Conflict: the standing grant is no longer in force.
    """
    require_approver(member)
    grant = find_grant(member, grant_id)
    with transaction.atomic():
        revoked = StandingGrant.objects.filter(
            IN_FORCE, organization=member.organization, pk=grant.pk
        )
        if not revoked.update(revoked_at=Now(), revoked_by=member.user):
            raise Conflict(f"Standing grant {grant_id} is no longer in force.")
        _record(member, "standing_grant_revoked", grant)
        owner_id = grant.made_by_id if grant.made_by_id != member.user_id else None
        tell_end(grant, _describe_revocation(member.user), owner_id)
    waiting = Approval.objects.filter(standing_grant=grant, status=ApprovalStatus.APPROVED)
    for card_id in list(waiting.order_by("pk").values_list("pk", flat=True)[:MAX_REPLACED_AT_ONCE]):
        replace_withdrawn(card_id)
    return find_grant(member, grant_id)


def replace_withdrawn(card_id: int) -> bool:
    """Replace a card whose standing grant has ended or been revoked, so that a person decides;
    return False if its call has started."""
    grant = StandingGrant.objects.select_related("revoked_by").get(answered=card_id)
    because = _describe_revocation(grant.revoked_by) if grant.revoked_by else grant.ended_because
    return replace_unstarted_card(
        card_id, f"The standing grant that approved this has ended: {because}"
    )


def _describe_revocation(user: User) -> str:
    return f"{user.get_username()} revoked it."


def find_grant(member: Membership, grant_id: int) -> StandingGrant:
    """Return a standing grant of the member's organization, with the number of its uses.

    Raises:
        NotFound
    """
    return get_row(list_grants(member.organization_id), grant_id, "standing grant")


def end_without_right(grant_id: int) -> bool:
    """End a standing grant because its maker can no longer decide cards; return False if it is no
    longer in force."""
    return bool(end_grants(StandingGrant.objects.filter(pk=grant_id), LOST_RIGHT))


def _check_scope(member: Membership, proposal: ProposedGrant) -> None:
    organization: Organization = member.organization
    if proposal.employee_id is None:
        if not member.may(Role.ADMIN):
            raise Forbidden(
                "Only admins can make standing grants for every employee. Choose one employee."
            )
    elif not Employee.objects.filter(
        organization=organization, pk=proposal.employee_id, is_active=True
    ).exists():
        raise Invalid("employee", f"There is no active employee {proposal.employee_id}.")
    if proposal.run_id is None:
        return
    run = (
        Run.objects.filter(organization=organization, pk=proposal.run_id)
        .only("employee_id", "status")
        .first()
    )
    if run is None or proposal.employee_id not in (None, run.employee_id):
        raise Invalid(
            "run", f"There is no run {proposal.run_id} that this standing grant can apply to."
        )
    if run.status in ENDED:
        raise Invalid("run", f"Run {proposal.run_id} has ended.")


def _record(member: Membership, action: str, grant: StandingGrant, **payload: Any) -> None:
    audit.record(member, action, f"standing_grant:{grant.pk}", **payload)
