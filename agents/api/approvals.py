"""Operations on approvals: list and read cards, and decide them one by one or in bulk."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Body, Query, Router

from agents.accounts.models import Membership, Role
from agents.api.auth import get_member
from agents.api.card_schemas import (
    ApprovalDetail,
    CardMark,
    CardVote,
    DecisionResult,
    DecisionResults,
    UndoneBulk,
    ValueFromOutside,
)
from agents.api.documentation import document_problems
from agents.api.lookup import PathId, PathUuid
from agents.api.paging import Page, decode_id, start_at_cursor, take_filtered, take_page
from agents.api.schemas import (
    AnswerRequest,
    ApprovalFilter,
    ApproveRequest,
    BulkDecisions,
    BulkUndo,
    CursorPage,
    DenyRequest,
    DismissRequest,
    ListOrder,
    UndoRequest,
)
from agents.approvals import bulk, decisions, dismissals, questions, withheld_bulks
from agents.approvals.attention import find_claims
from agents.approvals.call_order import sort_by_call
from agents.approvals.models import Claim
from agents.approvals.seen_marks import refuse_unseen
from agents.approvals.votes import CardStanding, find_standings
from agents.approvals.warnings.card_marks import load_marks
from agents.approvals.warnings.done_already import is_shown_as_done
from agents.approvals.warnings.marks import Mark
from agents.approvals.warnings.restored import find_restore_warning
from agents.platform.refusals import Forbidden
from agents.platform.row_ids import get_row
from agents.runs.models import IS_PENDING, Approval, ApprovalKind, ApprovalStatus, ToolCall
from agents.web.lists.decision_pages import filter_by_tool
from agents.web.lists.run_pages import filter_by_status
from tools.toolbox.provenance import Provenance

router = Router(tags=["Approvals"])

ANY_DECISION = UndoRequest(decision_id="")


class ApprovalList(CursorPage[ApprovalDetail]):
    """A page of the list of approvals."""


@router.get("", response=ApprovalList, summary="List approvals")
def list_approvals(request: HttpRequest, filters: Query[ApprovalFilter]) -> ApprovalList:
    """List the organization's cards. With `?status=pending` they come oldest first, in call order
    within a run."""
    member = get_member(request)
    waiting_only = filters.status == ApprovalStatus.PENDING
    if filters.order == ListOrder.OLDEST or (filters.order is None and waiting_only):
        after = decode_id(filters.cursor) if filters.cursor else None
        rows = _filter_approvals(_select_approvals(member), filters)
        rows = rows.filter(IS_PENDING) if waiting_only else rows
        page, next_cursor = take_page(sort_by_call(rows, member.organization_id, after), filters)
    else:
        page, next_cursor = _take_newest(member, filters)
    return ApprovalList(items=_build_details(page), next_cursor=next_cursor)


@router.post(
    "/decide",
    response=DecisionResults,
    summary="Decide in bulk",
    openapi_extra=document_problems(403, 409),
)
def decide_many(request: HttpRequest, payload: BulkDecisions) -> DecisionResults:
    """Approve or deny several cards; return one result for each, in order.

    Some cards cannot be approved here, such as destructive ones: approve each on its own. Others
    can be approved only if `seen_marks` names their `marks`.
    """
    member = get_member(request)
    if not member.may(Role.APPROVER):
        raise Forbidden("Only approvers can decide. Ask an admin for the role.")
    items = [
        (
            each.approval_id,
            each.action,
            decisions.Decision(
                *(each.digest, each.decision_id, each.reason, each.grace_s),
                despite_claim_of=each.despite_claim_of,
                seen_marks=frozenset(each.seen_marks),
            ),
        )
        for each in payload.decisions
    ]
    return _build_results(bulk.decide_many(member, items, payload.bulk_id))


@router.post(
    "/undo", response=DecisionResults, summary="Undo in bulk", openapi_extra=document_problems(403)
)
def undo_many(request: HttpRequest, payload: BulkUndo) -> DecisionResults:
    """Undo several of your approvals before their calls start; return one result for each, in
    order."""
    member = get_member(request)
    if not member.may(Role.APPROVER):
        raise Forbidden("Only approvers can undo approvals. Ask an admin for the role.")
    return _build_results(bulk.undo_many(member, payload.approval_ids))


@router.post(
    "/bulks/{bulk_id}/undo",
    response=UndoneBulk,
    summary="Undo a bulk approval",
    openapi_extra=document_problems(403, 404),
)
def undo_bulk(request: HttpRequest, bulk_id: PathUuid) -> UndoneBulk:
    """Undo all your approvals with this `bulk_id` at once: no further call of theirs starts.

    Their cards are then renewed one by one; `GET /api/approvals/bulks/{bulk_id}` returns how many
    calls had already started.
    """
    member = get_member(request)
    if not member.may(Role.APPROVER):
        raise Forbidden("Only approvers can undo approvals. Ask an admin for the role.")
    return _build_undone(withheld_bulks.withhold(member, bulk_id))


@router.get(
    "/bulks/{bulk_id}",
    response=UndoneBulk,
    summary="Show an undone bulk approval",
    openapi_extra=document_problems(404),
)
def show_undone_bulk(request: HttpRequest, bulk_id: PathUuid) -> UndoneBulk:
    """Return how far the undo of a bulk approval is."""
    return _build_undone(withheld_bulks.read_state(get_member(request), bulk_id))


def _build_undone(state: withheld_bulks.WithheldState) -> UndoneBulk:
    return UndoneBulk(
        bulk_id=state.bulk_id,
        cards=state.cards,
        started=state.started,
        waiting_again=state.waiting_again,
        left=state.left,
        votes=state.votes,
    )


def _build_results(outcomes: Iterable[bulk.DecisionOutcome]) -> DecisionResults:
    return DecisionResults(
        outcomes=[
            DecisionResult(
                approval_id=str(each.approval_id),
                status=each.status,
                code=each.code,
                detail=each.detail,
            )
            for each in outcomes
        ]
    )


@router.get(
    "/{approval_id}",
    response=ApprovalDetail,
    summary="Show an approval",
    openapi_extra=document_problems(404),
)
def show_approval(request: HttpRequest, approval_id: PathId) -> ApprovalDetail:
    """Return one card."""
    return _load_detail(get_member(request), approval_id)


@router.post(
    "/{approval_id}/approve",
    response=ApprovalDetail,
    summary="Approve a call",
    openapi_extra=document_problems(403, 404, 409, 410, 412),
)
def approve(request: HttpRequest, approval_id: PathId, payload: ApproveRequest) -> ApprovalDetail:
    """Approve the call, so that it can start; if an approval rule needs more people, the card keeps
    waiting for them.

    If the card has certain `marks`, `seen_marks` must name them. With `params`, nothing is
    approved: `next_approval_id` names the changed card.
    """
    member = get_member(request)
    decision = decisions.Decision(
        digest=payload.digest,
        decision_id=payload.decision_id,
        grace_s=payload.grace_s,
        confirm=payload.confirm,
        despite_claim_of=payload.despite_claim_of,
        seen_approvals=payload.seen_approvals,
        seen_marks=frozenset(payload.seen_marks),
    )
    if payload.params is None:
        decision = refuse_unseen(member, approval_id, decision)
        return _build_detail(decisions.approve(member, approval_id, decision))
    decisions.edit(member, approval_id, decision, payload.params)
    return _load_detail(member, approval_id)


@router.post(
    "/{approval_id}/deny",
    response=ApprovalDetail,
    summary="Deny a call",
    openapi_extra=document_problems(403, 404, 409, 410, 412),
)
def deny(request: HttpRequest, approval_id: PathId, payload: DenyRequest) -> ApprovalDetail:
    """Deny the call; the reason is sent to the model."""
    member = get_member(request)
    decision = decisions.Decision(
        payload.digest,
        payload.decision_id,
        payload.reason,
        despite_claim_of=payload.despite_claim_of,
    )
    return _build_detail(decisions.deny(member, approval_id, decision))


@router.post(
    "/{approval_id}/dismiss",
    response=ApprovalDetail,
    summary="Dismiss a card",
    openapi_extra=document_problems(403, 404, 409, 410, 412),
)
def dismiss(request: HttpRequest, approval_id: PathId, payload: DismissRequest) -> ApprovalDetail:
    """Dismiss a card whose call would no longer change anything; nothing runs, and the card becomes
    `answered`."""
    member = get_member(request)
    decision = decisions.Decision(
        payload.digest,
        payload.decision_id,
        payload.reason,
        despite_claim_of=payload.despite_claim_of,
    )
    dismissals.dismiss(member, approval_id, decision)
    return _load_detail(member, approval_id)


@router.post(
    "/{approval_id}/answer",
    response=ApprovalDetail,
    summary="Answer a question",
    openapi_extra=document_problems(403, 404, 409, 410),
)
def answer(request: HttpRequest, approval_id: PathId, payload: AnswerRequest) -> ApprovalDetail:
    """Answer an employee's question: a card of `kind` question, with text and choices in `preview`.
    Operators can."""
    member = get_member(request)
    questions.answer(member, approval_id, questions.Answer(payload.text, payload.decision_id))
    return _load_detail(member, approval_id)


@router.post(
    "/{approval_id}/undo",
    response=ApprovalDetail,
    summary="Undo an approval",
    openapi_extra=document_problems(403, 404, 409),
)
def undo(
    request: HttpRequest, approval_id: PathId, payload: Body[UndoRequest] = ANY_DECISION
) -> ApprovalDetail:
    """Undo your approval before the call starts; `next_approval_id` names the card that waits
    again."""
    member = get_member(request)
    decisions.undo(member, approval_id, payload.decision_id)
    return _load_detail(member, approval_id)


def _select_approvals(member: Membership) -> QuerySet[Approval]:
    rows = Approval.objects.filter(organization_id=member.organization_id)
    return rows.select_related("tool_call", "run__organization", "decided_by")


def _filter_approvals(rows: QuerySet[Approval], filters: ApprovalFilter) -> QuerySet[Approval]:
    wanted = {
        "status": filters.status,
        "kind": filters.kind,
        "run_id": filters.run_id,
        "run__employee_id": filters.employee_id,
    }
    rows = rows.filter(**{name: value for name, value in wanted.items() if value is not None})
    return filter_by_tool(rows, filters.tool) if filters.tool else rows


def _take_newest(member: Membership, filters: ApprovalFilter) -> Page[Approval]:
    """Return a page of cards, newest first, read from a single index: the cards of a run, those
    with a status, or all cards."""
    rows = _select_approvals(member).order_by("-pk")
    if filters.run_id is not None:
        return take_page(start_at_cursor(_filter_approvals(rows, filters), filters), filters)
    if filters.status is not None:
        # In this order, the database can read the index of statuses backwards.
        rows = filter_by_status(rows, filters.status).order_by("-status", "-pk")
    if filters.kind is None and filters.employee_id is None and not filters.tool:
        return take_page(start_at_cursor(rows, filters), filters)
    return take_filtered(rows, lambda some: _filter_approvals(some, filters), filters)


def _load_detail(member: Membership, approval_id: int) -> ApprovalDetail:
    return _build_detail(get_row(_select_approvals(member), approval_id, "approval"))


def _build_detail(card: Approval) -> ApprovalDetail:
    return _build_details([card])[0]


def _build_details(cards: Sequence[Approval]) -> list[ApprovalDetail]:
    replaced = [card.tool_call_id for card in cards if card.status == ApprovalStatus.SUPERSEDED]
    others = (
        Approval.objects.filter(tool_call_id__in=replaced) if replaced else Approval.objects.none()
    )
    ids = {
        (call, sequence): pk
        for call, sequence, pk in others.values_list("tool_call_id", "sequence", "pk")
    }
    waiting = [
        card
        for card in cards
        if (card.kind, card.status) == (ApprovalKind.APPROVAL, ApprovalStatus.PENDING)
    ]
    standings = find_standings(waiting[0].run.organization, waiting) if waiting else {}
    claims = find_claims(waiting[0].organization_id) if waiting else {}
    marks = load_marks(cards)
    return [
        _fill_detail(
            card,
            _DetailFacts(
                marks.get(card.pk, ()),
                ids.get((card.tool_call_id, card.sequence + 1)),
                standings.get(card.pk),
                claims.get(card.tool_call_id) if card in waiting else None,
            ),
        )
        for card in cards
    ]


def _list_outside_values(call: ToolCall) -> list[ValueFromOutside]:
    return [
        ValueFromOutside(
            path=each.path,
            value=each.value,
            stands_out=each.stands_out,
            tool=each.tool,
            call_id=None if each.call_id is None else str(each.call_id),
            run_id=None if each.run_id is None else str(each.run_id),
        )
        for each in Provenance.from_json(call.provenance).list_outside()
    ]


@dataclass(frozen=True)
class _DetailFacts:
    """The facts that the detail of a card shows but the card's row does not contain."""

    marks: Sequence[Mark]
    next_id: int | None
    standing: CardStanding | None
    claim: Claim | None


def _fill_detail(card: Approval, facts: _DetailFacts) -> ApprovalDetail:
    call, standing = card.tool_call, facts.standing
    return ApprovalDetail(
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
        words=card.words,
        from_outside=_list_outside_values(call),
        marks=[CardMark(**mark.as_json()) for mark in facts.marks],
        warning=find_restore_warning(card),
        confirm=decisions.make_confirmation_phrase(card) or "",
        claimed_by=facts.claim.user.get_username() if facts.claim else "",
        is_done=card.status == ApprovalStatus.PENDING and is_shown_as_done(card),
        broke_glass=card.broke_glass,
        needs=standing.needs if standing else "",
        still_needed=standing.needs if standing else "",
        rules_applied=standing.applied if standing else [],
        votes=[
            CardVote(
                by=vote.voter.name, deputy_for=vote.deputy_for.name if vote.deputy_for else None
            )
            for vote in (standing.counted if standing else ())
        ],
        approved_by=standing.approved_by if standing else [],
        requested_at=card.requested_at,
        expires_at=card.expires_at,
        decided_by=card.decider or None,
        decided_at=card.decided_at,
        reason=card.reason,
        bulk_id=card.bulk_id,
        start_after=card.start_after,
        after=None if card.after_id is None else str(card.after_id),
        next_approval_id=None if facts.next_id is None else str(facts.next_id),
    )
