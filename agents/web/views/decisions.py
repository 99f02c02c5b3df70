"""Decisions made with plain forms: approve, deny, edit, undo, answer, and what became of an unknown outcome."""

from __future__ import annotations

from dataclasses import replace

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse

from agents.accounts.models import Membership, Role
from agents.approvals import decisions, questions, resolutions
from agents.approvals.closed_cards import refuse_closed
from agents.platform.refusals import Conflict, Expired, Forbidden, Invalid, StaleDigest
from agents.web.cards.cards import Card
from agents.web.cards.edit_form import blamed, changed_texts, fields_of, plainly
from agents.web.cards.fields import PREFIX, Field, Typed
from agents.web.cards.typed import UnreadableField, read_typed
from agents.web.views.approvals import found_card, of_one
from agents.web.views.pages import back_to_card, framed, page


@page("POST", of="approval")
def approve(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Lets the call start, after a grace in which it can be undone."""
    card = found_card(member, approval_id)
    decision = decisions.Decision(
        digest=_text(request, "digest"),
        decision_id=_text(request, "decision_id"),
        grace_s=card.grace_s,
        confirm=_text(request, "confirm"),
    )
    try:
        decisions.approve(member, approval_id, decision)
    except (Conflict, Expired, StaleDigest, Invalid) as refusal:
        return _not_decided(request, member, card, refusal)
    messages.success(request, "Approved.")
    return _back(request, card)


@page("POST", of="approval")
def deny(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Refuses the call; the reason is told to the employee."""
    card = found_card(member, approval_id)
    reason = ". ".join(part for part in (_text(request, "preset"), _text(request, "reason")) if part)
    decision = decisions.Decision(
        digest=_text(request, "digest"), decision_id=_text(request, "decision_id"), reason=reason
    )
    try:
        decisions.deny(member, approval_id, decision)
    except (Conflict, Expired, StaleDigest, Invalid) as refusal:
        return _not_decided(request, member, card, refusal)
    messages.success(request, "Denied.")
    return _back(request, card)


@page("POST", of="approval")
def edit(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Makes the changed card and shows it; approves nothing."""
    card = found_card(member, approval_id)
    if not member.may(Role.APPROVER):
        raise Forbidden("Only approvers change cards.")
    if card.tool is None:
        raise Conflict(f"The tool {card.call.tool!r} is not installed any more.")
    typed = {name.removeprefix(PREFIX): str(text) for name, text in request.POST.items() if name.startswith(PREFIX)}
    fields = fields_of(card.tool.schema, card.approval.params)
    try:
        refuse_closed(card.approval, decisions.NOT_EDITED)
        params = read_typed(fields, typed)
        fresh = decisions.edit(member, approval_id, decisions.Decision(digest=_text(request, "digest")), params)
    except (UnreadableField, Invalid) as problem:
        return _not_editable(request, member, replace(card, typed=Typed(typed, _problems(fields, problem))))
    except (Conflict, Expired, StaleDigest) as refusal:
        return _not_decided(request, member, replace(card, typed=Typed(typed)), refusal)
    messages.info(request, "This is the changed card. Nothing is approved yet.")
    return back_to_card(request, fresh.pk, reverse("approval", args=(fresh.pk,)))


@page("POST", of="approval")
def undo(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Takes an approval back while its call has not started; the card waits again."""
    card = found_card(member, approval_id)
    try:
        fresh = decisions.undo(member, approval_id)
    except Conflict as refusal:
        return _not_decided(request, member, card, refusal)
    messages.info(request, "Undone. The card waits again.")
    return back_to_card(request, fresh.pk, reverse("run", args=(card.run.pk,)))


@page("POST", of="approval")
def answer(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Answers a question, with one of its choices or in the person's own words."""
    card = found_card(member, approval_id)
    said = _text(request, "choice") or _text(request, "text").replace("\r\n", "\n")
    try:
        questions.answer(member, approval_id, said, _text(request, "decision_id"))
    except (Conflict, Expired, Invalid) as refusal:
        return _not_decided(request, member, replace(card, said=said), refusal)
    messages.success(request, "Answered.")
    return _back(request, card)


@page("POST", of="approval")
def resolve(request: HttpRequest, member: Membership, approval_id: int) -> HttpResponseBase:
    """Says whether a call with an unknown outcome happened, or acknowledges an effect that came late."""
    card = found_card(member, approval_id)
    try:
        outcome = _text(request, "outcome")
        resolutions.resolve(member, card.call.pk, outcome, _text(request, "reason"))
    except (Conflict, Invalid) as refusal:
        return _not_decided(request, member, card, refusal)
    messages.success(request, "Acknowledged." if outcome == resolutions.ACKNOWLEDGED else "Settled.")
    return _back(request, card)


def _text(request: HttpRequest, name: str) -> str:
    return request.POST.get(name, "").strip()


def _back(request: HttpRequest, card: Card) -> HttpResponse:
    return back_to_card(request, card.approval.pk, reverse("run", args=(card.run.pk,)))


def _not_decided(
    request: HttpRequest, member: Membership, card: Card, refusal: Conflict | Expired | StaleDigest | Invalid
) -> HttpResponse:
    """Why not, with the card as it is now."""
    now = found_card(member, card.approval.pk)
    newest = found_card(member, now.successor.pk) if now.successor is not None else replace(now, said=card.said)
    kept = {"refusal": refusal, "kept": _kept(card)}
    page = framed(request, member, "approvals/one.html", of_one(request, newest) | kept)
    page.status_code = refusal.status
    return page


def _kept(card: Card) -> list[tuple[str, str]]:
    """Return the text typed into the edit form of a closed card, so that it can be used again."""
    if card.tool is None or not card.typed.values:
        return []
    return changed_texts(fields_of(card.tool.schema, card.approval.params), card.typed)


def _problems(fields: list[Field], problem: UnreadableField | Invalid) -> dict[str, str]:
    """What is wrong, by the key of the field that it belongs to; of the whole form with an empty key."""
    if isinstance(problem, UnreadableField):
        return {problem.key: problem.detail}
    return {blamed(fields, problem.extra["field"].removeprefix("params.")): plainly(problem.detail)}


def _not_editable(request: HttpRequest, member: Membership, card: Card) -> HttpResponse:
    page = framed(request, member, "approvals/one.html", of_one(request, card))
    page.status_code = 422
    return page
