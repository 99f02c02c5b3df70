"""Bulk decisions: each card is decided separately, by its digest and with its own outcome."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Case, JSONField, Value, When

from agents.accounts.models import Membership
from agents.approvals.decisions import (
    Decision,
    approve_locked,
    check_limits,
    deny_locked,
    match_undecided,
    may_deny,
    publish_and_audit,
    undo,
    write_columns,
    write_denial,
)
from agents.approvals.own_cards import lock_own_cards
from agents.approvals.warnings.card_marks import load_marks
from agents.approvals.warnings.marks import (
    MUST_BE_SEEN,
    STALE,
    Mark,
    build_mark,
    name_marks,
    select_individual,
)
from agents.approvals.warnings.stale_targets import find_local_staleness
from agents.approvals.withheld_bulks import refuse_undone
from agents.platform.refusals import Invalid, Refusal
from agents.runs.engine import next_step
from agents.runs.engine.results import end_unexecuted
from agents.runs.engine.transaction import Transaction
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus, CallStatus

_Item = tuple[int, str, Decision]
"""A card's id, the action (`approve` or `deny`), and the decision."""


@dataclass(frozen=True)
class DecisionOutcome:
    """The outcome of one decision among many."""

    approval_id: int
    status: int
    code: str = ""
    detail: str = ""


def decide_many(
    member: Membership, items: Sequence[_Item], bulk_id: UUID | None = None
) -> list[DecisionOutcome]:
    """Decide each card separately, and return an outcome for each; cards that must be approved
    individually are refused.

    Args:
        bulk_id: the id that all requests of one bulk decision share; if it is None and there are
            two or more items, a new id is used for them.

    Raises:
        Conflict: the member has undone this bulk decision.
    """
    refuse_undone(member, bulk_id)
    bulk_id = bulk_id or (uuid4() if len(items) > 1 else None)
    waiting = Approval.objects.filter(
        organization_id=member.organization_id,
        pk__in=[pk for pk, _, _ in items],
        kind=ApprovalKind.APPROVAL,
        status=ApprovalStatus.PENDING,
    )
    cards = {card.pk: card for card in waiting.select_related("tool_call", "run__organization")}
    marks = load_marks(cards.values())
    decided = [
        (
            pk,
            action,
            replace(each, bulk_id=bulk_id, marks=marks.get(pk, ()) if pk in cards else None),
        )
        for pk, action, each in items
    ]
    approved = [cards[pk] for pk, action, _ in items if action == "approve" and pk in cards]
    return _decide_by_run(member, decided, find_bulk_refusals(approved, marks))


def find_bulk_refusals(
    cards: Collection[Approval], marks: Mapping[int, Sequence[Mark]]
) -> dict[int, tuple[Mark, ...]]:
    """Find the marks because of which these waiting approvals are refused in bulk, by card id.

    If a tool reads only local data, the card is also compared with the effect that its call would
    have now.

    Args:
        marks: the marks of these cards, and perhaps of others.
    """
    found = {pk: each for pk in marks if (each := select_individual(marks[pk]))}
    stale = {
        card.pk: (build_mark(STALE),)
        for card in cards
        if card.pk not in found and find_local_staleness(card) is not None
    }
    return found | stale


def undo_many(member: Membership, approval_ids: Sequence[int]) -> list[DecisionOutcome]:
    """Undo approvals one by one, and return an outcome for each."""
    outcomes = []
    for approval_id in approval_ids:
        try:
            undo(member, approval_id)
        except Refusal as refusal:
            outcomes.append(
                DecisionOutcome(approval_id, refusal.status, refusal.code, refusal.detail)
            )
        else:
            outcomes.append(DecisionOutcome(approval_id, 200))
    return outcomes


def _decide_by_run(
    member: Membership, items: Sequence[_Item], refusals: Mapping[int, Sequence[Mark]]
) -> list[DecisionOutcome]:
    """Decide the cards run by run, with one lock for each run; return outcomes in the order of the
    items."""
    runs = Approval.objects.filter(
        organization_id=member.organization_id, pk__in=[item[0] for item in items]
    )
    run_of = dict(runs.values_list("pk", "run_id"))
    by_run: dict[int | None, list[int]] = {}
    for place, (approval_id, _, _) in enumerate(items):
        by_run.setdefault(run_of.get(approval_id), []).append(place)
    outcomes: dict[int, DecisionOutcome] = {}
    for run_id, places in by_run.items():
        some = [items[place] for place in places]
        decided = (
            _refuse_all(some) if run_id is None else _decide_in_run(member, run_id, some, refusals)
        )
        outcomes |= dict(zip(places, decided, strict=True))
    return [outcomes[place] for place in range(len(items))]


def _refuse_all(items: Sequence[_Item]) -> list[DecisionOutcome]:
    return [
        DecisionOutcome(pk, 404, "not_found", f"there is no approval {pk}") for pk, _, _ in items
    ]


def _decide_in_run(
    member: Membership, run_id: int, items: Sequence[_Item], refusals: Mapping[int, Sequence[Mark]]
) -> list[DecisionOutcome]:
    """Decide cards of one run in one transaction. A refused decision does not change anything, and
    does not affect the other decisions."""
    try:
        with lock_own_cards(member, run_id, [item[0] for item in items]) as (tx, cards):
            outcomes = _deny_alike(tx, member, cards, items) or [
                _refuse_individual(item, refusals) or _decide_one(tx, member, cards[item[0]], item)
                for item in items
            ]
            if any(outcome.status == 200 for outcome in outcomes):
                next_step.wake_if_possible(tx, member.user.get_username())
            return outcomes
    except Refusal as refusal:
        return [
            DecisionOutcome(pk, refusal.status, refusal.code, refusal.detail) for pk, _, _ in items
        ]


def _deny_alike(
    tx: Transaction, member: Membership, cards: Mapping[int, Approval], items: Sequence[_Item]
) -> list[DecisionOutcome]:
    """Deny all cards together if they can all be denied with the same reason; otherwise return an
    empty list."""
    ids, terms = (
        {pk for pk, _, _ in items},
        {(action, replace(decision, digest="", marks=None)) for _, action, decision in items},
    )
    if len(terms) > 1 or len(ids) < len(items) or items[0][1] != "deny":
        return []
    try:
        check_limits(items[0][2])
        if not all(may_deny(member, cards[pk], decision) for pk, _, decision in items):
            return []
    except Refusal:
        return []
    if not _deny_together(tx, member, cards, {pk: decision for pk, _, decision in items}):
        return []
    return [DecisionOutcome(pk, 200) for pk, _, _ in items]


def _deny_together(
    tx: Transaction,
    member: Membership,
    cards: Mapping[int, Approval],
    decisions: Mapping[int, Decision],
) -> bool:
    """Deny cards of one locked run in one statement. The caller has checked each card with
    `may_deny`, and resumes the run.

    Args:
        decisions: the decision about each card, by card id; they differ only in digest and marks.

    Returns:
        False if a card has changed since it was read; then no card is denied.
    """
    denied, decision = [cards[pk] for pk in decisions], next(iter(decisions.values()))
    still_open = set(
        match_undecided(member)
        .filter(pk__in=list(decisions))
        .values_list("pk", "digest", "tool_call__status")
    )
    if still_open != {(card.pk, card.digest, CallStatus.AWAITING_APPROVAL) for card in denied}:
        return False
    shown = (
        When(pk=pk, then=Value([mark.as_json() for mark in each.marks], JSONField()))
        for pk, each in decisions.items()
        if each.marks
    )
    Approval.objects.filter(pk__in=list(decisions)).update(
        status=ApprovalStatus.DENIED,
        shown_marks=Case(*shown, default=Value([], JSONField())),
        **write_columns(member, decision),
    )
    for card in denied:
        card.decided_by, card.status, card.decision_id = (
            member.user,
            ApprovalStatus.DENIED,
            decision.decision_id,
        )
        end_unexecuted(tx, card.tool_call, CallStatus.DENIED, write_denial(decision))
        publish_and_audit(tx, member, card, decision.reason)
    return True


def _refuse_individual(
    item: _Item, refusals: Mapping[int, Sequence[Mark]]
) -> DecisionOutcome | None:
    approval_id, action, decision = item
    seen = MUST_BE_SEEN.intersection(decision.seen_marks)
    left = [mark for mark in refusals.get(approval_id, ()) if mark.kind not in seen]
    if action != "approve" or not left:
        return None
    refusal = Invalid("action", f"this card must be approved individually: {name_marks(left)}")
    return DecisionOutcome(approval_id, refusal.status, refusal.code, refusal.detail)


def _decide_one(
    tx: Transaction, member: Membership, card: Approval, item: _Item
) -> DecisionOutcome:
    approval_id, action, decision = item
    try:
        check_limits(decision)
        if action == "deny":
            # A denial does not need a savepoint, because it writes only after its last check.
            deny_locked(tx, member, card, decision)
        elif action == "approve":
            with transaction.atomic():
                approve_locked(tx, member, card, decision)
        else:
            raise Invalid("action", f"action is {action!r}, but must be 'approve' or 'deny'")
    except Refusal as refusal:
        return DecisionOutcome(approval_id, refusal.status, refusal.code, refusal.detail)
    if card.status == ApprovalStatus.PENDING:
        return DecisionOutcome(
            approval_id, 202, "voted", "your approval counts, and more people must approve it"
        )
    return DecisionOutcome(approval_id, 200)
