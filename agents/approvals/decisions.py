"""Decisions of people on cards: approve, deny, edit, undo."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.db.models.functions import Now

from agents.accounts.models import Membership
from agents.approvals.attention import refuse_claimed
from agents.approvals.break_glass import require_glass
from agents.approvals.closed_cards import find_next_card, refuse_closed
from agents.approvals.current_calls import CurrentCall, judge_current
from agents.approvals.edited_calls import EditedCall
from agents.approvals.own_cards import find_own_card, lock_own_card, require_approver
from agents.approvals.votes import (
    cast_vote,
    find_standings,
    has_voted,
    keep_votes,
    require_vote,
    withdraw_vote,
)
from agents.approvals.warnings.card_marks import load_marks
from agents.approvals.warnings.marks import Mark
from agents.approvals.warnings.reach import reaches_far
from agents.employees.toolboxes import load_toolbox
from agents.platform.refusals import Conflict, Invalid, StaleDigest
from agents.runs.engine import next_step
from agents.runs.engine.cards import is_sealed, publish_decision, replace_card, seal
from agents.runs.engine.context import load_context
from agents.runs.engine.results import end_unexecuted
from agents.runs.engine.timing import MAX_GRACE_S, timing
from agents.runs.engine.transaction import Transaction, run_transaction
from agents.runs.events import ApprovalVoted
from agents.runs.models import (
    APPROVED_STATES,
    Approval,
    ApprovalKind,
    ApprovalStatus,
    CallStatus,
    ToolCall,
)
from agents.runs.provenance import list_edited
from tools.contract import ErrorCode, Level, ToolError

DENY_REASONS = ("Wrong target", "Wrong values", "Not needed", "Explain why first")
"""The reasons that a card offers for denying it. The person's own words may follow a reason after a
period."""
MAX_REASON = 2000
NOT_EDITED = "the edit was not applied"


@dataclass(frozen=True)
class Decision:
    """A person's decision about the card with this digest.

    Attributes:
        decision_id: a repeated request by the same person with the same id changes nothing and gets
            the same response.
        grace_s: the number of seconds before the call starts, during which the decision can be
            undone.
        confirm: the phrase that the person typed, if the card requires one; see
            `make_confirmation_phrase`.
        bulk_id: the bulk decision that this one belongs to.
        despite_claim_of: the username of another person who has claimed the card, if the decider
            was warned about that.
        breaks_glass: True to approve alone in an emergency, see `break_glass`.
        seen_approvals: the approvals that the person saw on the card, see `CardStanding.seen`; None
            skips the check.
        seen_marks: the kinds of the marks that the sender has seen, so that a bulk approval may
            include the card; see `MUST_BE_SEEN`.
        marks: the card's marks, which are stored with the decision; None to load them.
    """

    digest: str
    decision_id: str = ""
    reason: str = ""
    grace_s: int = 0
    confirm: str = ""
    bulk_id: UUID | None = None
    despite_claim_of: str = ""
    breaks_glass: bool = False
    seen_approvals: str | None = None
    seen_marks: frozenset[str] = frozenset()
    marks: tuple[Mark, ...] | None = None


def approve(member: Membership, approval_id: int, decision: Decision) -> Approval:
    """Approve a card, so that its call starts exactly as shown, or vote for it if a rule needs more
    people.

    Raises:
        Forbidden, NotFound, AlreadyDecided, Expired, StaleDigest, Claimed, Invalid
    """
    check_limits(decision)
    with lock_own_card(member, approval_id) as (tx, card):
        approve_locked(tx, member, card, decision)
        next_step.wake_if_possible(tx, member.user.get_username())
    return _reload(approval_id)


def approve_locked(tx: Transaction, member: Membership, card: Approval, decision: Decision) -> None:
    """Approve a card whose run is locked, or vote for it. The caller resumes the run, or rolls back
    after a refusal."""
    if is_repeated(member, card, decision, APPROVED_STATES):
        return
    refuse_undecidable(card, decision.digest)
    _refuse_unsealed(card)
    if decision.breaks_glass:
        right = require_glass(member, tx.run.organization, card, decision.reason)
    else:
        right = require_vote(member, tx.run.organization, card, decision.decision_id)
    if not right.is_repeated:
        refuse_claimed(card, decision.despite_claim_of)
        right.refuse_unseen(decision.seen_approvals)
    _check_confirmation(card, decision)
    if not cast_vote(card, right, decision.decision_id, decision.bulk_id):
        if not right.is_repeated:
            _publish_vote(
                tx, card, ApprovalVoted.of(card, member.user.get_username(), right.still_needed)
            )
        return
    start = tx.now + timedelta(seconds=decision.grace_s)
    record_decision(
        member,
        card,
        decision,
        ApprovalStatus.APPROVED,
        start_after=start,
        valid_until=start + timing().get_validity(tx.run.origin),
        ruling=right.ruling,
        broke_glass=decision.breaks_glass,
    )
    _move_call(card.tool_call, CallStatus.APPROVED)
    publish_and_audit(tx, member, card, decision.reason)
    if decision.breaks_glass:
        tx.audit(member.actor, "glass_broken", f"approval:{card.pk}", reason=decision.reason)


def deny(member: Membership, approval_id: int, decision: Decision) -> Approval:
    """Deny a card; its call ends, and the employee reads the reason. One approver's denial is
    enough, whatever the approval rules require.

    Raises:
        Forbidden, NotFound, AlreadyDecided, Expired, StaleDigest, Claimed, Invalid
    """
    check_limits(decision)
    with lock_own_card(member, approval_id) as (tx, card):
        deny_locked(tx, member, card, decision)
        next_step.wake_if_possible(tx, member.user.get_username())
    return _reload(approval_id)


def deny_locked(tx: Transaction, member: Membership, card: Approval, decision: Decision) -> None:
    """Deny a card whose run is locked. The caller resumes the run, or rolls back after a
    refusal."""
    if not may_deny(member, card, decision):
        return
    record_decision(member, card, decision, ApprovalStatus.DENIED)
    end_unexecuted(tx, card.tool_call, CallStatus.DENIED, write_denial(decision))
    publish_and_audit(tx, member, card, decision.reason)


def may_deny(member: Membership, card: Approval, decision: Decision) -> bool:
    """Return False if this denial repeats an earlier one; raise a refusal if the card cannot be
    denied."""
    if is_repeated(member, card, decision, (ApprovalStatus.DENIED,)):
        return False
    refuse_undecidable(card, decision.digest)
    refuse_claimed(card, decision.despite_claim_of)
    return True


def write_denial(decision: Decision) -> ToolError:
    """Write the error that the employee reads about a denied call."""
    words = f"A person denied this call.{f' Reason: {decision.reason}' if decision.reason else ''}"
    hint = "Respect this; do not ask for the same again."
    return ToolError(ErrorCode.APPROVAL_DENIED, words, recovery_hint=hint, attempted=False)


def edit(
    member: Membership, approval_id: int, decision: Decision, params: dict[str, Any]
) -> Approval:
    """Change the params of a card's call; return the new card, which needs a decision like any
    other.

    Raises:
        Forbidden, NotFound, AlreadyDecided, Expired, StaleDigest, Claimed
        Invalid: the params are invalid or not allowed; the card stays unchanged.
    """
    require_approver(member)
    check_limits(decision)
    card = find_own_card(member, approval_id)
    if is_repeated(member, card, decision, (ApprovalStatus.SUPERSEDED,)):
        return find_next_card(card) or card
    refuse_undecidable(card, decision.digest, NOT_EDITED)
    refuse_claimed(card, decision.despite_claim_of)
    context = replace(load_context(card.run_id), edited=list_edited(card.tool_call.params, params))
    try:
        edited = EditedCall(context, card.tool_call, params)
    except Invalid:
        # If the card was decided in the meantime, report that instead.
        refuse_undecidable(find_own_card(member, approval_id), decision.digest, NOT_EDITED)
        raise
    with lock_own_card(member, approval_id) as (tx, card):
        if is_repeated(member, card, decision, (ApprovalStatus.SUPERSEDED,)):
            return find_next_card(card) or card
        refuse_undecidable(card, decision.digest, NOT_EDITED)
        refuse_claimed(card, decision.despite_claim_of)
        if tx.run.cancel_requested_at is not None:
            raise Conflict("the run was cancelled", approval_status=card.status)
        if (objection := edited.judge_again(tx)) is not None:
            raise Conflict(objection.why, approval_status=card.status)
        call = card.tool_call
        if edited.verdict.params == call.params:
            raise Invalid("params", "nothing was changed")
        call.model_params = call.params if call.model_params is None else call.model_params
        edited.context.record_verdict(call, edited.verdict)
        call.provenance = edited.provenance.as_json()
        seal(call, edited.tool, edited.verdict.params)
        tx.audit(member.actor, "card_edited", f"approval:{card.pk}", params=call.params)
        card.decided_by = member.user
        Approval.objects.filter(pk=card.pk).update(
            decided_by=member.user,
            decided_at=Now(),
            decision_id=decision.decision_id,
            shown_marks=_store_marks(card, decision),
        )
        return replace_card(
            tx, card, edited.effect, f"{member.user.get_username()} edited the request."
        )


def undo(member: Membership, approval_id: int, decision_id: str = "") -> Approval:
    """Undo an approval before the call starts. Return the new pending card, which keeps the votes
    of other people.

    If the card still needs more people, only this member's vote is withdrawn, and the card itself
    is returned.

    Raises:
        Forbidden, NotFound
        Conflict: this member did not approve it, or the call has started.
    """
    require_approver(member)
    before = find_own_card(member, approval_id)
    if before.status == ApprovalStatus.PENDING and (withdrawn := _withdraw(member, approval_id)):
        return withdrawn
    current = judge_current(before)
    with lock_own_card(member, approval_id) as (tx, card):
        if replacement := _find_undone(member, card, decision_id):
            return replacement
        if card.status != ApprovalStatus.APPROVED or card.tool_call.status != CallStatus.APPROVED:
            raise Conflict("the call is no longer waiting to start", approval_status=card.status)
        if decision_id and decision_id != card.decision_id:
            raise Conflict("a later decision replaced this one", approval_status=card.status)
        if card.decided_by_id != member.user_id and not has_voted(member, card):
            raise Conflict("only a person who approved it can undo it")
        return renew_undone(tx, card, current, member.user)


def renew_undone(tx: Transaction, card: Approval, current: CurrentCall, user: User) -> Approval:
    """Replace a card whose approval this person undoes; the new card keeps the votes of other
    people."""
    tx.audit(f"user:{user.get_username()}", "decision_undone", f"approval:{card.pk}")
    why = f"{user.get_username()} undid the approval."
    current.seal_changes(card.tool_call)
    replacement = replace_card(tx, card, current.effect, why)
    keep_votes(card, replacement, without_user_id=user.pk)
    return replacement


def withdraw(tx: Transaction, card: Approval, user: User) -> bool:
    """Withdraw this person's vote from a waiting card whose run is locked; return False if they
    have none."""
    if card.status != ApprovalStatus.PENDING or not withdraw_vote(user.pk, card):
        return False
    standing = find_standings(tx.run.organization, [card]).get(card.pk)
    told = ApprovalVoted.of(card, user.get_username(), standing.needs if standing else "")
    _publish_vote(tx, card, replace(told, withdrawn=True))
    return True


def _withdraw(member: Membership, approval_id: int) -> Approval | None:
    """Withdraw this member's vote from a waiting card; return the card, or None if the member has
    no vote."""
    with lock_own_card(member, approval_id) as (tx, card):
        return card if withdraw(tx, card, member.user) else None


def _publish_vote(tx: Transaction, card: Approval, event: ApprovalVoted) -> None:
    """Publish and audit a vote or its withdrawal."""
    tx.publish(event)
    did = "vote_withdrawn" if event.withdrawn else "vote_cast"
    tx.audit(
        f"user:{event.by}", did, f"approval:{card.pk}", tool=card.tool_call.tool, digest=card.digest
    )
    tx.inbox_changed = True


def _find_undone(member: Membership, card: Approval, decision_id: str) -> Approval | None:
    """Find the pending card that replaced this card when this member undid the approval; None if
    there is none."""
    was_theirs = card.start_after is not None and card.decided_by_id == member.user_id
    if (
        card.status != ApprovalStatus.SUPERSEDED
        or not was_theirs
        or decision_id not in ("", card.decision_id)
    ):
        return None
    replacement = find_next_card(card)
    is_pending = replacement is not None and replacement.status == ApprovalStatus.PENDING
    return replacement if is_pending else None


def expire(approval_id: int) -> bool:
    """Expire a card that nobody decided in time; return False if it was decided in the meantime.
    The employee is informed that an expired card is not a refusal."""
    rows = Approval.objects.select_related("tool_call", "run__organization")
    card = rows.get(pk=approval_id)
    with run_transaction(card.run_id, wait=False) as tx:
        due = Approval.objects.filter(
            pk=card.pk, status=ApprovalStatus.PENDING, expires_at__lte=Now()
        )
        if not due.update(status=ApprovalStatus.EXPIRED, shown_marks=_store_marks(card)):
            return False
        missing = "answered" if card.kind == ApprovalKind.QUESTION else "decided"
        error = ToolError(
            ErrorCode.APPROVAL_EXPIRED,
            f"Nobody {missing} in time. This is not a refusal.",
            attempted=False,
        )
        call = ToolCall.objects.get(pk=card.tool_call_id)
        end_unexecuted(tx, call, CallStatus.EXPIRED, error)
        card.status = ApprovalStatus.EXPIRED
        publish_decision(tx, card, error.message)
        tx.audit("gadget", "card_expired", f"approval:{card.pk}")
        next_step.wake_if_possible(tx)
        return True


def make_confirmation_phrase(card: Approval) -> str | None:
    """Return the phrase to type for approval: the only target's name, the number of targets, or the
    tool's name; None if the card does not need a phrase.

    A card needs a phrase if its level is destructive or if it affects many objects.
    """
    if card.level != Level.DESTRUCTIVE and not reaches_far(card):
        return None
    targets = card.preview["targets"]
    if len(targets) == 1 and (name := _make_typeable(str(targets[0]["label"]))):
        return name
    if targets:
        return str(len(targets))
    call = card.tool_call
    tool = load_toolbox(card.organization_id).get_called_tool(call.tool, call.version)
    return (_make_typeable(tool.title) if tool else None) or call.tool


def _make_typeable(name: str) -> str | None:
    """Return the name with single spaces, because confirmations are compared in this form; None if
    a person cannot type it."""
    line = " ".join(name.split())
    return line if line and line.isprintable() else None


def _reload(approval_id: int) -> Approval:
    return Approval.objects.select_related("tool_call", "run", "decided_by").get(pk=approval_id)


def record_decision(
    member: Membership, card: Approval, decision: Decision, status: ApprovalStatus, **columns: Any
) -> None:
    """Record the decision with one conditional update; raise a refusal if the card is no longer
    open."""
    undecided = match_undecided(member).filter(pk=card.pk, digest=decision.digest)
    columns |= write_columns(member, decision) | {"shown_marks": _store_marks(card, decision)}
    if not undecided.update(status=status, **columns):
        refuse_undecidable(card, decision.digest)
        raise Conflict("the run was cancelled", approval_status=card.status)
    card.decided_by, card.status, card.decision_id = member.user, status, decision.decision_id


def _store_marks(card: Approval, decision: Decision | None = None) -> list[dict[str, str]]:
    """Return the marks of a waiting card as its row stores them."""
    known = decision.marks if decision else None
    marks = load_marks([card]).get(card.pk, ()) if known is None else known
    return [mark.as_json() for mark in marks]


def match_undecided(member: Membership) -> QuerySet[Approval]:
    """Select the cards of the member's organization that can still be decided."""
    return Approval.objects.filter(
        organization_id=member.organization_id,
        kind=ApprovalKind.APPROVAL,
        status=ApprovalStatus.PENDING,
        expires_at__gt=Now(),
        run__cancel_requested_at=None,
    )


def write_columns(member: Membership, decision: Decision) -> dict[str, Any]:
    """Return the values of the columns that every decision writes."""
    same = {name: getattr(decision, name) for name in ("reason", "bulk_id", "decision_id")}
    return {**same, "decided_by": member.user, "decided_at": Now()}


def refuse_undecidable(card: Approval, digest: str, consequence: str = "") -> None:
    """Raise a refusal if this card cannot be decided with this digest."""
    if card.kind != ApprovalKind.APPROVAL:
        raise Conflict(
            f"a card of kind {card.kind!r} cannot be approved or denied",
            approval_status=card.status,
        )
    refuse_closed(card, consequence)
    if card.digest != digest:
        raise StaleDigest(
            "the card has changed since it was shown: its digest is different", digest=card.digest
        )


def _refuse_unsealed(card: Approval) -> None:
    if not is_sealed(card):
        detail = (
            "the card or its call was changed in the database; deny it, or edit it to ask again"
        )
        raise Conflict(detail, approval_status=card.status)


def is_repeated(
    member: Membership, card: Approval, decision: Decision, statuses: tuple[ApprovalStatus, ...]
) -> bool:
    """Return True if this decision repeats an earlier decision that gave the card one of these
    states."""
    return bool(
        decision.decision_id
        and card.decision_id == decision.decision_id
        and card.decided_by_id == member.user_id
        and card.status in statuses
    )


def check_limits(decision: Decision) -> None:
    """Raise Invalid if a text of the decision is too long or contains a NUL, or if the grace period
    is not within its limits."""
    if len(decision.reason) > MAX_REASON or "\0" in decision.reason:
        raise Invalid("reason", f"reason may have at most {MAX_REASON:,} characters, and no NUL")
    if not 0 <= decision.grace_s <= MAX_GRACE_S:
        raise Invalid("grace_s", f"grace_s is {decision.grace_s}, but must be 0 to {MAX_GRACE_S}")
    if len(decision.decision_id) > 200 or "\0" in decision.decision_id:
        raise Invalid("decision_id", "decision_id may have at most 200 characters, and no NUL")


def _check_confirmation(card: Approval, decision: Decision) -> None:
    phrase = make_confirmation_phrase(card)
    if phrase is not None and " ".join(decision.confirm.split()) != phrase:
        why = (
            "a destructive call"
            if card.level == Level.DESTRUCTIVE
            else "a call that affects this many objects"
        )
        raise Invalid("confirm", f"type {phrase!r} to confirm {why}")


def _move_call(call: ToolCall, status: CallStatus) -> None:
    if not ToolCall.objects.filter(pk=call.pk, status=CallStatus.AWAITING_APPROVAL).update(
        status=status
    ):
        raise Conflict("the call is not waiting for approval", call_status=call.status)


def publish_and_audit(tx: Transaction, member: Membership, card: Approval, reason: str) -> None:
    """Publish and audit a decision. The card's status names the decision; ANSWERED means that the
    card was dismissed."""
    publish_decision(tx, card, reason)
    tx.audit(
        member.actor,
        "card_dismissed" if card.status == ApprovalStatus.ANSWERED else f"card_{card.status}",
        f"approval:{card.pk}",
        tool=card.tool_call.tool,
        digest=card.digest,
        reason=reason,
    )
