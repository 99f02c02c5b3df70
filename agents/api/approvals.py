"""Approvals: read the cards, and decide them one by one or many at once."""

from collections.abc import Sequence

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Body, Query, Router

from agents.accounts.models import Membership, Role
from agents.api.schemas import (
    Answering,
    ApprovalFilter,
    ApprovalShape,
    Approving,
    BulkDecisions,
    Denial,
    Order,
    Outcome,
    Outcomes,
    Page,
    Undoing,
)
from agents.approvals import decisions, questions
from agents.approvals.call_order import in_call_order
from agents.approvals.decisions import Decision
from agents.approvals.models import Approval, ApprovalStatus
from agents.platform.refusals import Forbidden

from .auth import member_of
from .documentation import refusals
from .lookup import PathId, found
from .paging import cut, id_in, newest_first

router = Router(tags=["Approvals"])

WHICHEVER = Undoing(decision_id="")


class ApprovalPage(Page[ApprovalShape]):
    """A part of the list of approvals."""


@router.get("", response=ApprovalPage, summary="List approvals")
def list_approvals(request: HttpRequest, filters: Query[ApprovalFilter]) -> ApprovalPage:
    """List the organization's cards; with `?status=pending` oldest first, and in call order within a run."""
    member = member_of(request)
    rows = _matching(member, filters)
    waiting_only = filters.status == ApprovalStatus.PENDING
    if filters.order == Order.OLDEST or (filters.order is None and waiting_only):
        after = id_in(filters.cursor) if filters.cursor else None
        page, next_cursor = cut(in_call_order(rows, member.organization_id, after), filters)
    else:
        page, next_cursor = newest_first(rows, filters)
    return ApprovalPage(items=_shapes_of(page), next_cursor=next_cursor)


@router.post("/decide", response=Outcomes, summary="Decide many", openapi_extra=refusals(403))
def decide_many(request: HttpRequest, payload: BulkDecisions) -> Outcomes:
    """One outcome for each, in their order. Approving a destructive call is refused here: it is confirmed by itself."""
    member = member_of(request)
    if not member.may(Role.APPROVER):
        raise Forbidden("Only approvers decide.")
    items = [
        (each.approval_id, each.action, Decision(each.digest, each.decision_id, each.reason))
        for each in payload.decisions
    ]
    outcomes = decisions.decide_many(member, items)
    return Outcomes(
        outcomes=[
            Outcome(approval_id=str(each.approval_id), status=each.status, code=each.code, detail=each.detail)
            for each in outcomes
        ]
    )


@router.get("/{approval_id}", response=ApprovalShape, summary="Show an approval", openapi_extra=refusals(404))
def show_approval(request: HttpRequest, approval_id: PathId) -> ApprovalShape:
    """One card."""
    return _shown(member_of(request), approval_id)


@router.post(
    "/{approval_id}/approve",
    response=ApprovalShape,
    summary="Approve",
    openapi_extra=refusals(403, 404, 409, 410, 412),
)
def approve(request: HttpRequest, approval_id: PathId, payload: Approving) -> ApprovalShape:
    """Lets the call start. With `params` nothing is approved: see `next_approval_id` for the changed card."""
    member = member_of(request)
    decision = Decision(
        digest=payload.digest, decision_id=payload.decision_id, grace_s=payload.grace_s, confirm=payload.confirm
    )
    if payload.params is None:
        return _shape_of(decisions.approve(member, approval_id, decision))
    decisions.edit(member, approval_id, decision, payload.params)
    return _shown(member, approval_id)


@router.post(
    "/{approval_id}/deny", response=ApprovalShape, summary="Deny", openapi_extra=refusals(403, 404, 409, 410, 412)
)
def deny(request: HttpRequest, approval_id: PathId, payload: Denial) -> ApprovalShape:
    """Refuses the call; the model hears the reason."""
    member = member_of(request)
    decision = Decision(payload.digest, payload.decision_id, payload.reason)
    return _shape_of(decisions.deny(member, approval_id, decision))


@router.post(
    "/{approval_id}/answer",
    response=ApprovalShape,
    summary="Answer a question",
    openapi_extra=refusals(403, 404, 409, 410),
)
def answer(request: HttpRequest, approval_id: PathId, payload: Answering) -> ApprovalShape:
    """Answers an employee's question (`kind` question; its text and choices stand in `preview`), as an operator may."""
    member = member_of(request)
    questions.answer(member, approval_id, payload.text, payload.decision_id)
    return _shown(member, approval_id)


@router.post(
    "/{approval_id}/undo", response=ApprovalShape, summary="Undo an approval", openapi_extra=refusals(403, 404, 409)
)
def undo(request: HttpRequest, approval_id: PathId, payload: Body[Undoing] = WHICHEVER) -> ApprovalShape:
    """Takes your approval back until the call starts; `next_approval_id` is the card that waits again."""
    member = member_of(request)
    decisions.undo(member, approval_id, payload.decision_id)
    return _shown(member, approval_id)


def _approvals_of(member: Membership) -> QuerySet[Approval]:
    rows = Approval.objects.filter(organization_id=member.organization_id)
    return rows.select_related("tool_call", "run__organization", "decided_by")


def _matching(member: Membership, filters: ApprovalFilter) -> QuerySet[Approval]:
    wanted = {
        "status": filters.status,
        "kind": filters.kind,
        "run_id": filters.run_id,
        "run__employee_id": filters.employee_id,
        "tool_call__tool": filters.tool or None,
    }
    return _approvals_of(member).filter(**{name: value for name, value in wanted.items() if value is not None})


def _shown(member: Membership, approval_id: int) -> ApprovalShape:
    return _shape_of(found(_approvals_of(member), approval_id, "approval"))


def _shape_of(card: Approval) -> ApprovalShape:
    return _shapes_of([card])[0]


def _shapes_of(cards: Sequence[Approval]) -> list[ApprovalShape]:
    replaced = [card.tool_call_id for card in cards if card.status == ApprovalStatus.SUPERSEDED]
    others = Approval.objects.filter(tool_call_id__in=replaced) if replaced else Approval.objects.none()
    ids = {(call, sequence): pk for call, sequence, pk in others.values_list("tool_call_id", "sequence", "pk")}
    return [_shape(card, ids.get((card.tool_call_id, card.sequence + 1))) for card in cards]


def _shape(card: Approval, next_id: int | None) -> ApprovalShape:
    call = card.tool_call
    return ApprovalShape(
        id=str(card.pk),
        kind=card.kind,
        status=card.status,
        run_id=str(card.run_id),
        employee_id=str(card.run.employee_id),
        call_id=str(call.pk),
        tool=call.tool,
        level=card.level,
        params=card.params,
        digest=card.digest,
        sentence=card.sentence,
        preview=card.preview,
        why=card.why,
        warning=card.warning,
        confirm=decisions.confirm_phrase(card),
        requested_at=card.requested_at,
        expires_at=card.expires_at,
        decided_by=card.decided_by.get_username() if card.decided_by else None,
        decided_at=card.decided_at,
        reason=card.reason,
        start_after=card.start_after,
        next_approval_id=None if next_id is None else str(next_id),
    )
