"""Decisions sent as plain forms: approve, deny, edit, undo, answer, and resolve an unknown
outcome."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from agents.accounts.models import Membership, Role
from agents.approvals import decisions, dismissals, questions, resolutions, withheld_bulks
from agents.approvals.closed_cards import refuse_closed
from agents.platform.refusals import Conflict, Expired, Forbidden, Invalid, StaleDigest
from agents.runs.models import ApprovalStatus
from agents.web.cards.cards import Card
from agents.web.cards.edit_form import build_fields, find_problems, list_changed_texts
from agents.web.cards.form_fields import FormInput, read_typed_texts
from agents.web.cards.form_values import InvalidFieldText, parse_form
from agents.web.text.safe_text import quote_outside
from agents.web.views.approvals import build_card_context, find_card
from agents.web.views.pages import member_view, redirect_to_card, render_page


@member_view("POST", page="approval")
def approve(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Approve the call. Unless more people must approve it, it starts after a short delay during
    which the approval can be undone."""
    card = find_card(member, approval_id)
    decision = _read_decision(
        request, card, grace_s=card.grace_s, seen_approvals=request.POST.get("seen_approvals")
    )
    try:
        decided = decisions.approve(member, approval_id, decision)
    except (Conflict, Expired, StaleDigest, Invalid) as refusal:
        return _render_refused_decision(request, member, card, refusal)
    is_waiting = decided.status == ApprovalStatus.PENDING
    messages.success(
        request,
        "Your approval counts. More people must approve this." if is_waiting else "Approved.",
    )
    return _redirect_back(request, card)


@member_view("POST", page="approval")
def break_glass(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Approve the call alone in an emergency, although approval rules need other people."""
    card = find_card(member, approval_id)
    reason = _read_text(request, "reason")
    decision = _read_decision(request, card, reason=reason, grace_s=card.grace_s, breaks_glass=True)
    try:
        decisions.approve(member, approval_id, decision)
    except (Conflict, Expired, StaleDigest, Invalid) as refusal:
        return _render_refused_decision(
            request, member, replace(card, refused_glass=decision.reason), refusal
        )
    messages.success(request, "Approved under break-glass. All admins are notified.")
    return _redirect_back(request, card)


@member_view("POST", page="approval")
def deny(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Deny the call; the reason is sent to the employee."""
    card = find_card(member, approval_id)
    reason = ". ".join(
        part for part in (_read_text(request, "preset"), _read_text(request, "reason")) if part
    )
    decision = _read_decision(request, card, reason=reason)
    try:
        decisions.deny(member, approval_id, decision)
    except (Conflict, Expired, StaleDigest, Invalid) as refusal:
        return _render_refused_decision(
            request, member, replace(card, refused_reason=_read_text(request, "reason")), refusal
        )
    messages.success(request, "Denied.")
    return _redirect_back(request, card)


@member_view("POST", page="approval")
def dismiss(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """End a card whose effect already exists, without running its call."""
    card = find_card(member, approval_id)
    decision = _read_decision(request, card)
    try:
        dismissals.dismiss(member, approval_id, decision)
    except (Conflict, Expired, StaleDigest, Invalid) as refusal:
        return _render_refused_decision(request, member, card, refusal)
    messages.success(request, "Dismissed.")
    return _redirect_back(request, card)


@member_view("POST", page="approval")
def edit(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Replace the card with an edited one and show it; this does not approve it yet."""
    card = find_card(member, approval_id)
    if not member.may(Role.APPROVER):
        raise Forbidden("Only approvers can edit cards.")
    if card.tool is None:
        raise Conflict(f"The tool {quote_outside(card.call.tool)} is no longer installed.")
    typed = read_typed_texts(request.POST)
    fields = build_fields(card.tool.schema, card.approval.params)
    try:
        refuse_closed(card.approval, decisions.NOT_EDITED)
        params = parse_form(fields, typed)
        decision = decisions.Decision(
            digest=_read_text(request, "digest"),
            despite_claim_of=_read_text(request, "despite_claim_of"),
            marks=card.around.marks,
        )
        new_card = decisions.edit(member, approval_id, decision, params)
    except (InvalidFieldText, Invalid) as problem:
        form_input = FormInput(typed, find_problems(fields, problem))
        return _render_invalid_edit(request, member, replace(card, form_input=form_input))
    except (Conflict, Expired, StaleDigest) as refusal:
        return _render_refused_decision(
            request, member, replace(card, form_input=FormInput(typed)), refusal
        )
    messages.info(request, "This is the edited card. Nothing is approved yet.")
    return redirect_to_card(
        request, new_card.pk, reverse("approval", args=(new_card.pk,)), is_waiting=True
    )


@member_view("POST", page="approval")
def undo(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Undo an approval whose call has not started; the card waits for a decision again."""
    card = find_card(member, approval_id)
    try:
        new_card = decisions.undo(member, approval_id)
    except Conflict as refusal:
        return _render_refused_decision(request, member, card, refusal)
    messages.info(request, "Undone. The card is waiting for a decision again.")
    return redirect_to_card(
        request, new_card.pk, reverse("run", args=(card.run.pk,)), is_waiting=True
    )


@member_view("POST", page="approvals")
def undo_bulk(request: HttpRequest, member: Membership, bulk_id: UUID) -> HttpResponseBase:
    """Undo a bulk approval: its remaining calls do not start, and its cards are renewed one by
    one."""
    withheld_bulks.withhold(member, bulk_id)
    messages.info(request, "Undone. No further calls will start.")
    return redirect(f"{reverse('approvals')}?undone={bulk_id}")


@member_view("POST", page="approval")
def answer(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Answer a question, with one of its choices or in the person's own words."""
    card = find_card(member, approval_id)
    text = _read_text(request, "choice") or _read_text(request, "text").replace("\r\n", "\n")
    given = questions.Answer(text, _read_text(request, "decision_id"), is_typed=True)
    try:
        questions.answer(member, approval_id, given)
    except (Conflict, Expired, Invalid) as refusal:
        return _render_refused_decision(
            request, member, replace(card, refused_answer=text), refusal
        )
    messages.success(request, "Answered.")
    return _redirect_back(request, card)


@member_view("POST", page="approval")
def resolve(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Resolve a call with an unknown outcome, or acknowledge a late effect."""
    card = find_card(member, approval_id)
    try:
        outcome = _read_text(request, "outcome")
        resolutions.resolve(member, card.call.pk, outcome, _read_text(request, "reason"))
    except (Conflict, Invalid) as refusal:
        return _render_refused_decision(
            request, member, replace(card, refused_reason=_read_text(request, "reason")), refusal
        )
    messages.success(
        request, "Acknowledged." if outcome == resolutions.ACKNOWLEDGED else "Resolved."
    )
    return _redirect_back(request, card)


def _read_decision(request: HttpRequest, card: Card, **more: Any) -> decisions.Decision:
    """Read the fields that the forms of all decisions send."""
    return decisions.Decision(
        digest=_read_text(request, "digest"),
        decision_id=_read_text(request, "decision_id"),
        confirm=_read_text(request, "confirm"),
        despite_claim_of=_read_text(request, "despite_claim_of"),
        marks=card.around.marks,
        **more,
    )


def _read_text(request: HttpRequest, name: str) -> str:
    return request.POST.get(name, "").strip()


def _redirect_back(request: HttpRequest, card: Card) -> HttpResponse:
    return redirect_to_card(request, card.approval.pk, reverse("run", args=(card.run.pk,)))


def _render_refused_decision(
    request: HttpRequest,
    member: Membership,
    card: Card,
    refusal: Conflict | Expired | StaleDigest | Invalid,
) -> HttpResponse:
    """Show the reason for a refused decision, with the card's current state and the typed text."""
    current = find_card(member, card.approval.pk)
    newest = current if current.successor is None else find_card(member, current.successor.pk)
    if newest is current:
        newest = replace(newest, refused_answer=card.refused_answer)
    newest = replace(newest, refused_glass=card.refused_glass)
    context = build_card_context(request, member, newest)
    lost = card.refused_reason or ("" if context["may_break_glass"] else card.refused_glass)
    typed = [*_collect_typed_texts(card), *([("Reason", lost)] if lost else [])]
    return render_page(
        request, member, "approvals/one.html", context | {"refusal": refusal, "typed_texts": typed}
    )


def _collect_typed_texts(card: Card) -> list[tuple[str, str]]:
    """Return the texts that were typed into a closed card's edit form, so that the person can reuse
    them."""
    if card.tool is None or not card.form_input.values:
        return []
    return list_changed_texts(build_fields(card.tool.schema, card.approval.params), card.form_input)


def _render_invalid_edit(request: HttpRequest, member: Membership, card: Card) -> HttpResponse:
    page = render_page(
        request, member, "approvals/one.html", build_card_context(request, member, card)
    )
    page.status_code = 422
    return page
