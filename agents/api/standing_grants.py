"""Operations on standing grants: list, make and revoke them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from django.http import HttpRequest
from django.utils import timezone
from ninja import Query, Router
from ninja.responses import Status
from pydantic import BaseModel, Field

from agents.accounts.models import Organization
from agents.api.auth import get_member
from agents.api.documentation import document_problems
from agents.api.lookup import PathId
from agents.api.paging import take_newest
from agents.api.schemas import CursorPage, Name, PageQuery, RequestBody, RowId
from agents.approvals.own_cards import require_approver
from agents.platform.refusals import Forbidden, Invalid
from agents.standing_grants.coverage import find_contradiction
from agents.standing_grants.making import (
    find_grant,
    find_made_before,
    list_grants,
    make_grant_once,
    revoke_grant,
)
from agents.standing_grants.models import MAX_DAYS, MAX_USES, StandingGrant
from agents.standing_grants.pauses import Pause, find_pauses
from agents.standing_grants.proposals import ProposedGrant, check_proposal
from tools.contract import storable_json
from tools.toolbox.conditions import Condition
from tools.toolbox.grant_sources import read_grant_condition

router = Router(tags=["Standing grants"])

MAX_CONDITIONS = 200
GrantStatus = Literal["active", "paused", "used_up", "expired", "revoked", "ended"]


class GrantCondition(BaseModel):
    """A condition on one param. A call must meet every condition of the standing grant."""

    param: str = Field(min_length=1, max_length=500, examples=["changes.status"])
    rule: Literal[
        "equals", "one_of", "minimum", "maximum", "prefix", "host", "comes_from", "typed", "each"
    ]
    value: Any = Field(
        examples=["active"],
        description="For `comes_from` {sources: [{tool, path, where}], also}: a field of results in the same run, "
        "and the conditions on that call's own params. For `typed` {also}: a person typed it in the run. For `each` "
        "{rule, value, also}: each entry of the list. `also` are further exact values, such as null.",
    )


class StandingGrantRequest(RequestBody):
    """The terms of a new standing grant."""

    tool: str = Field(min_length=1, max_length=120, examples=["data.updateRecord"])
    employee_id: RowId | None = Field(
        None, description="If omitted, the grant is for every employee; only admins can omit it."
    )
    run_id: RowId | None = Field(
        None, description="The only run that the grant is for; if omitted, all runs."
    )
    conditions: list[GrantCondition] = Field(default_factory=list, max_length=MAX_CONDITIONS)
    free_params: list[str] = Field(
        default_factory=list,
        max_length=MAX_CONDITIONS,
        description="Params without a condition: any value that does not come from outside. "
        "Params that are neither here nor in `conditions` must be absent.",
    )
    max_uses: int = Field(ge=1, le=MAX_USES)
    lifetime_s: int = Field(ge=1, le=MAX_DAYS * 24 * 3600)
    client_grant_id: Name = Field(
        "",
        description="Your own id for this request. A repeated request returns the grant that the first one created.",
    )


class StandingGrantDetail(BaseModel):
    """One standing grant."""

    id: str
    status: GrantStatus
    tool: str
    level: str
    employee_id: str | None
    run_id: str | None
    conditions: list[dict[str, Any]]
    free_params: list[str]
    max_uses: int
    used: int
    made_by: str
    made_at: datetime
    expires_at: datetime
    ended_because: str
    paused_because: str = Field(
        description="Why some calls, or all if the status is `paused`, currently need a person; otherwise empty."
    )


class StandingGrantList(CursorPage[StandingGrantDetail]):
    """A page of the list of standing grants."""


@router.get("", response=StandingGrantList, summary="List standing grants")
def list_standing_grants(request: HttpRequest, filters: Query[PageQuery]) -> StandingGrantList:
    """List the organization's standing grants, newest first."""
    organization = get_member(request).organization
    page, next_cursor = take_newest(list_grants(organization.pk), filters)
    return StandingGrantList(items=_build_details(organization, page), next_cursor=next_cursor)


@router.post(
    "",
    response={201: StandingGrantDetail, 200: StandingGrantDetail},
    summary="Make a standing grant",
    openapi_extra=document_problems(403, 409),
)
def make_standing_grant(
    request: HttpRequest, payload: StandingGrantRequest
) -> Status[StandingGrantDetail]:
    """Make a standing grant in your own name (201). This needs a browser session; a token is
    refused.

    Sending the same `client_grant_id` again returns the same standing grant (200), even if it has
    ended.

    A standing grant that can match no call of the tool is refused.
    """
    member = get_member(request)
    if "Authorization" in request.headers:
        raise Forbidden(
            "A token cannot make standing grants. Log in with a browser and make it there."
        )
    require_approver(member)
    conditions = tuple(_read_condition(each) for each in payload.conditions)
    named = {condition.param for condition in conditions}
    proposal = ProposedGrant(
        tool=payload.tool,
        employee_id=payload.employee_id,
        run_id=payload.run_id,
        params=tuple(sorted(named.union(payload.free_params))),
        conditions=conditions,
        max_uses=payload.max_uses,
        lifetime=timedelta(seconds=payload.lifetime_s),
    )
    made = find_made_before(member, proposal, payload.client_grant_id)
    if made is None and (
        nothing := find_contradiction(proposal, check_proposal(member.organization_id, proposal))
    ):
        raise Invalid("conditions", nothing.why)
    made, is_new = make_grant_once(member, proposal, payload.client_grant_id)
    return Status(
        201 if is_new else 200,
        _build_details(member.organization, [find_grant(member, made.pk)])[0],
    )


@router.post(
    "/{grant_id}/revoke",
    response=StandingGrantDetail,
    summary="Revoke a standing grant",
    openapi_extra=document_problems(403, 404, 409),
)
def revoke_standing_grant(request: HttpRequest, grant_id: PathId) -> StandingGrantDetail:
    """Revoke a standing grant at once. Calls that it approved and that have not started become
    cards again."""
    member = get_member(request)
    return _build_details(member.organization, [revoke_grant(member, grant_id)])[0]


def _read_condition(given: GrantCondition) -> Condition:
    try:
        storable_json(given.value)
    except (ValueError, RecursionError) as error:
        what = f"{given.param}: the value has a number or a text that cannot be stored."
        raise Invalid("conditions", what) from error
    try:
        return read_grant_condition({"otherwise": "ask", **given.model_dump()})
    except (ValueError, TypeError) as error:
        raise Invalid("conditions", f"{str(error)[:1].upper()}{str(error)[1:]}.") from error


def _build_details(
    organization: Organization, grants: Sequence[StandingGrant]
) -> list[StandingGrantDetail]:
    statuses = {grant.pk: _determine_status(grant) for grant in grants}
    pauses = find_pauses(
        organization, [grant for grant in grants if statuses[grant.pk] == "active"]
    )
    return [_build_detail(grant, statuses[grant.pk], pauses.get(grant.pk)) for grant in grants]


def _build_detail(
    grant: StandingGrant, status: GrantStatus, pause: Pause | None
) -> StandingGrantDetail:
    conditions, free_params = _list_terms(grant)
    return StandingGrantDetail(
        id=str(grant.pk),
        status="paused" if pause is not None and pause.is_complete else status,
        tool=grant.tool,
        level=grant.level,
        employee_id=str(grant.employee_id) if grant.employee_id else None,
        run_id=str(grant.run_id) if grant.run_id else None,
        conditions=conditions,
        free_params=free_params,
        max_uses=grant.max_uses,
        used=_count_uses(grant),
        made_by=grant.made_by.get_username(),
        made_at=grant.made_at,
        expires_at=grant.expires_at,
        ended_because=grant.ended_because,
        paused_because=pause.because if pause else "",
    )


def _list_terms(grant: StandingGrant) -> tuple[list[dict[str, Any]], list[str]]:
    """List the conditions and the free params. If the stored terms are damaged, both lists are
    empty, because the standing grant then does not approve any call."""
    try:
        terms = grant.as_terms()
    except ValueError:
        return [], []
    conditions = [
        {"param": one.param, "rule": one.rule.value, "value": one.value} for one in terms.conditions
    ]
    return conditions, sorted(terms.free_params)


def _count_uses(grant: StandingGrant) -> int:
    """Return the number of uses, which `list_grants` has counted."""
    return int(grant.used)  # type: ignore[attr-defined]


def _determine_status(grant: StandingGrant) -> GrantStatus:
    if grant.revoked_at is not None:
        return "revoked"
    if grant.ended_at is not None:
        return "ended"
    if grant.expires_at <= timezone.now():
        return "expired"
    return "used_up" if _count_uses(grant) >= grant.max_uses else "active"
