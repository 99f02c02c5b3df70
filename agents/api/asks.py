"""Operations on asks: an agent asks before it acts, redeems the approval, and reports the outcome;
people can only read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, cast

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import BaseModel, ConfigDict, Field

from agents.accounts.models import Membership
from agents.api.auth import BearerToken, SessionCookie
from agents.api.card_schemas import CardMark
from agents.api.documentation import document_problems
from agents.api.lookup import PathId
from agents.api.paging import take_newest
from agents.api.schemas import CursorPage, PageQuery
from agents.approvals.warnings.card_marks import load_marks
from agents.approvals.warnings.card_reading import read_card
from agents.approvals.warnings.marks import Mark
from agents.gateway.asks import AskedRequest, note_asking, submit
from agents.gateway.models import AgentKey, Ask
from agents.gateway.redemptions import (
    AskState,
    cancel,
    cancel_effects,
    load_state,
    load_states,
    redeem,
    report_outcome,
)
from agents.platform.refusals import Forbidden
from agents.platform.row_ids import get_row
from agents.web.views.absolute_links import build_absolute_link
from tools.contract import Level

router = Router(tags=["Asks"], auth=[BearerToken(takes_agent_keys=True), SessionCookie()])

AskStatus = Literal[
    "waiting",
    "approved",
    "denied",
    "expired",
    "cancelled",
    "redeemed",
    "succeeded",
    "failed",
    "unknown",
    "rejected",
]


class NewAsk(BaseModel):
    """An action for which an agent requests approval."""

    model_config = ConfigDict(extra="forbid")

    action: str = Field(description="The name of the action, such as `deploy.production`.")
    params: dict[str, Any] = Field(
        default_factory=dict, description="Exactly what the agent will do."
    )
    level: Level = Field(
        Level.DESTRUCTIVE,
        description="The agent's judgment; a higher level of the organization for the action replaces it.",
    )
    sentence: str = Field(
        "", description="What the agent will do, in the agent's own words; shown as unverified."
    )
    effect: str = Field(
        "",
        description="What the action will change, in the agent's own words; shown as unverified.",
    )
    effect_key: str = Field(
        "", description="Names the business effect: two open asks never share one."
    )
    expires_s: int | None = Field(None, description="Seconds until the card expires.")
    client_request_id: str = Field(
        "", description="Sending the same id again returns the same ask."
    )
    audience: str = Field("", description="The system that will check the receipt.")


class AskDetail(BaseModel):
    """One ask."""

    id: str
    status: AskStatus
    action: str
    params: dict[str, Any]
    params_digest: str = Field(
        description="SHA-256 of the params: JSON in UTF-8, sorted keys, no spaces."
    )
    level: Level
    effect_key: str
    asked_by: str = Field(description="The name of the agent key.")
    url: str = Field(description="The page of the card, behind the login.")
    run_id: str
    approval_id: str
    marks: list[CardMark] = Field(
        description="As on the card; for the agent itself only those of its own words."
    )
    requested_at: datetime
    expires_at: datetime
    decided_by: str
    decided_at: datetime | None
    reason: str
    receipt: str | None = Field(
        description="Only while the approval can be redeemed, and only for the agent that asked."
    )
    receipt_expires_at: datetime | None
    redeemed_at: datetime | None
    reported_at: datetime | None


class AskList(CursorPage[AskDetail]):
    """A page of the list of asks."""


class Redemption(BaseModel):
    """The receipt to redeem."""

    model_config = ConfigDict(extra="forbid")

    receipt: str = Field(max_length=8_000)


class ReportedOutcome(BaseModel):
    """The outcome of an action, as the agent reports it."""

    model_config = ConfigDict(extra="forbid")

    outcome: Literal["succeeded", "failed"]
    summary: str = ""


class CancelledEffects(BaseModel):
    """The business effects whose open asks an agent cancels."""

    model_config = ConfigDict(extra="forbid")

    effect_key_prefix: str = Field(
        min_length=8, max_length=200, description="The beginning of the asks' effect keys."
    )


class CancelledAsks(BaseModel):
    """The number of asks that were cancelled."""

    cancelled: int


class AskFilter(PageQuery):
    """Filters for asks."""

    effect_key: str = Field("", max_length=200, description="Only asks about this business effect.")


class WaitQuery(BaseModel):
    """The time to wait for a decision."""

    wait_s: float = Field(0, ge=0, le=30, description="Seconds to wait while the ask is undecided.")


@router.post(
    "",
    response={201: AskDetail, 200: AskDetail},
    summary="Ask before acting",
    openapi_extra=document_problems(403, 409, 422),
)
def create_ask(request: HttpRequest, payload: NewAsk) -> Status[AskDetail]:
    """Create a card for an action that the agent takes itself (201). A repeated ask, or an equal
    one that is open, is returned again (200)."""
    fields = payload.model_dump()
    ask, is_new = submit(
        _get_key(request), AskedRequest(**{**fields, "level": payload.level.value})
    )
    return Status(201 if is_new else 200, _build_detail(request, load_state(ask)))


@router.get("", response=AskList, summary="List asks")
def list_asks(request: HttpRequest, filters: Query[AskFilter]) -> AskList:
    """List asks, newest first: an agent's own, or for a member those of the organization."""
    rows = _select(request)
    if filters.effect_key:
        rows = rows.filter(effect__key=filters.effect_key)
    page, next_cursor = take_newest(rows, filters)
    return AskList(
        items=_build_details(request, load_states(page)),
        next_cursor=next_cursor,
    )


@router.post(
    "/cancel",
    response=CancelledAsks,
    summary="Cancel the asks of one session",
    openapi_extra=document_problems(403, 422),
)
def cancel_asks(request: HttpRequest, payload: CancelledEffects) -> CancelledAsks:
    """Cancel the agent's open asks whose effect keys begin with the prefix; asks that were redeemed
    stay."""
    return CancelledAsks(cancelled=cancel_effects(_get_key(request), payload.effect_key_prefix))


@router.get(
    "/{ask_id}", response=AskDetail, summary="Get one ask", openapi_extra=document_problems(404)
)
def get_ask(request: HttpRequest, ask_id: PathId, waiting: Query[WaitQuery]) -> AskDetail:
    """Return the ask. With `wait_s`, the response comes when the ask is decided, or after that
    time."""
    ask = get_row(_select(request), ask_id, "ask")
    state = load_state(ask)
    if state.is_waiting and isinstance(_get_caller(request), AgentKey):
        note_asking(ask)
    return _build_detail(request, state)


@router.post(
    "/{ask_id}/redeem",
    response=AskDetail,
    summary="Redeem the approval, once",
    openapi_extra=document_problems(403, 404, 409, 410, 422),
)
def redeem_ask(request: HttpRequest, ask_id: PathId, payload: Redemption) -> AskDetail:
    """Redeem the approval. The agent may act only if this returns 200, which it does once."""
    return _build_detail(
        request, redeem(_get_key_of(request, ask_id), str(ask_id), payload.receipt)
    )


@router.post(
    "/{ask_id}/outcome",
    response=AskDetail,
    summary="Say what happened",
    openapi_extra=document_problems(403, 404, 409, 422),
)
def report_ask_outcome(request: HttpRequest, ask_id: PathId, payload: ReportedOutcome) -> AskDetail:
    """Report what happened after the redemption. Without a report, the outcome is unknown after an
    hour."""
    state = report_outcome(
        _get_key_of(request, ask_id), str(ask_id), payload.outcome, payload.summary
    )
    return _build_detail(request, state)


@router.post(
    "/{ask_id}/cancel",
    response=AskDetail,
    summary="Cancel an ask",
    openapi_extra=document_problems(403, 404),
)
def cancel_ask(request: HttpRequest, ask_id: PathId) -> AskDetail:
    """Cancel the ask, so that nobody has to decide it; an ask that was redeemed or has ended does
    not change."""
    return _build_detail(request, cancel(_get_key_of(request, ask_id), str(ask_id)))


def _get_caller(request: HttpRequest) -> AgentKey | Membership:
    return cast("AgentKey | Membership", request.auth)  # type: ignore[attr-defined]


def _get_key(request: HttpRequest) -> AgentKey:
    caller = _get_caller(request)
    if not isinstance(caller, AgentKey):
        raise Forbidden("Only an agent key can do this. Create one on the page Agents.")
    return caller


def _get_key_of(request: HttpRequest, ask_id: int) -> AgentKey:
    """Return the agent key that sent the request, after checking that the key may see the ask."""
    get_row(_select(request), ask_id, "ask")
    return _get_key(request)


def _select(request: HttpRequest) -> Any:
    caller = _get_caller(request)
    rows = Ask.objects.select_related("run__organization", "key", "effect")
    if isinstance(caller, AgentKey):
        return rows.filter(key=caller)
    return rows.filter(run__organization_id=caller.organization_id)


def _build_detail(request: HttpRequest, state: AskState) -> AskDetail:
    return _build_details(request, [state])[0]


def _build_details(request: HttpRequest, states: Sequence[AskState]) -> list[AskDetail]:
    """Build the details. An agent gets only the marks that follow from its own words, because other
    marks would reveal what the organization knows."""
    cards = [state.card for state in states]
    if isinstance(_get_caller(request), AgentKey):
        marks = {card.pk: read_card(card).marks for card in cards}
    else:
        marks = load_marks(cards)
    return [_fill_detail(request, state, marks.get(state.card.pk, ())) for state in states]


def _fill_detail(request: HttpRequest, state: AskState, marks: Sequence[Mark]) -> AskDetail:
    ask, call, card = state.ask, state.call, state.card
    is_agent = isinstance(_get_caller(request), AgentKey)
    is_decided = card.decided_at is not None and not state.is_waiting
    return AskDetail(
        id=str(ask.pk),
        status=cast("AskStatus", state.status),
        action=ask.action,
        params=call.params,
        params_digest=state.params_digest,
        level=Level(call.level),
        effect_key=ask.effect.key if ask.effect else "",
        asked_by=ask.key.name,
        url=build_absolute_link(request, "approval", str(card.pk)),
        run_id=str(ask.run_id),
        approval_id=str(card.pk),
        marks=[CardMark(**mark.as_json()) for mark in marks],
        requested_at=card.requested_at,
        expires_at=card.expires_at,
        decided_by=card.decider if is_decided else "",
        decided_at=card.decided_at if is_decided else None,
        reason=card.reason if is_decided else "",
        receipt=(state.sign() or None) if is_agent else None,
        receipt_expires_at=card.valid_until if state.status == "approved" else None,
        redeemed_at=ask.redeemed_at,
        reported_at=ask.reported_at,
    )
