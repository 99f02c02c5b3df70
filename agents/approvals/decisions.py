"""Decisions of people on cards: approve, deny, edit, undo."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from agents.accounts.models import Membership
from agents.approvals.break_glass import require_glass
from agents.approvals.claims import refuse_claimed
from agents.approvals.closed_cards import find_next_card, refuse_closed
from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.approvals.own_cards import find_own_card, lock_own_card, require_approver
from agents.approvals.unstarted_cards import compute_current_effect
from agents.approvals.votes import cast_vote, find_standings, has_voted, keep_votes, require_vote, withdraw_vote
from agents.approvals.warnings.reach import reaches_far
from agents.employees.toolboxes import load_toolbox
from agents.notices.models import NoticeKind
from agents.platform.refusals import Conflict, Invalid, StaleDigest
from agents.runs.engine import next_step
from agents.runs.engine.cards import (
    CallEffect,
    compute_effect,
    describe_impossible,
    is_sealed,
    publish_decision,
    replace_card,
    seal,
)
from agents.runs.engine.context import RunContext, has_same_verdict, load_context
from agents.runs.engine.results import end_unexecuted
from agents.runs.engine.timing import timing
from agents.runs.engine.transaction import Transaction, run_transaction
from agents.runs.events import ApprovalVoted
from agents.runs.models import CallStatus, ToolCall
from agents.runs.provenance import list_edited
from tools.contract import ErrorCode, Level, Tool, ToolError
from tools.toolbox.asked_actions import find_asked_action
from tools.toolbox.permissions import Permission, Verdict

DENY_REASONS = ("Wrong target", "Wrong values", "Not needed", "Explain first why this is needed")
"""Reasons that a card offers for denying it; a person's own words may follow one after a full stop."""
MAX_REASON = 2000
MAX_GRACE_S = 60
MAX_UNDOABLE = 200
NOT_EDITED = "the edit was not applied"


@dataclass(frozen=True)
class Decision:
    """A person's decision about the card with this digest.

    Attributes:
        decision_id: repeating one by the same person gets the same answer.
        grace_s: the seconds before the call starts, in which the decision can be undone.
        confirm: the phrase that the person typed, at destructive level.
        bulk_id: the bulk decision that this one belongs to.
        despite_claim_of: the username of a person who has taken the card, if the person was warned of that.
        breaks_glass: approve alone in an emergency, see `break_glass`.
    """

    digest: str
    decision_id: str = ""
    reason: str = ""
    grace_s: int = 0
    confirm: str = ""
    bulk_id: UUID | None = None
    despite_claim_of: str = ""
    breaks_glass: bool = False


def approve(member: Membership, approval_id: int, decision: Decision) -> Approval:
    """Approve a card, so that its call starts exactly as shown; or vote for it, if a rule needs more people.

    Raises:
        Forbidden, NotFound, AlreadyDecided, Expired, StaleDigest, Claimed, Invalid
    """
    _check_limits(decision)
    with lock_own_card(member, approval_id) as (tx, card):
        if _is_repeated(member, card, decision, (ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED)):
            return card
        _refuse_undecidable(card, decision.digest)
        _refuse_unsealed(card)
        if decision.breaks_glass:
            right = require_glass(member, tx.run.organization, card, decision.reason)
        else:
            right = require_vote(member, tx.run.organization, card, decision.decision_id)
        if not right.is_repeated:
            refuse_claimed(card, decision.despite_claim_of)
        _check_confirmation(card, decision)
        if not cast_vote(card, right, decision.decision_id):
            if not right.is_repeated:
                _publish_vote(tx, card, ApprovalVoted.of(card, member.user.get_username(), right.still_needed))
            return card
        start = tx.now + timedelta(seconds=decision.grace_s)
        until = start + timing().get_validity(tx.run.origin)
        _record_decision(
            member,
            card,
            decision,
            ApprovalStatus.APPROVED,
            start_after=start,
            valid_until=until,
            ruling=right.ruling,
            broke_glass=decision.breaks_glass,
        )
        _move_call(card.tool_call, CallStatus.APPROVED)
        _publish_and_audit(tx, member, card, decision.reason)
        if decision.breaks_glass:
            tx.tell(NoticeKind.BREAK_GLASS, card)
            by = f"user:{member.user.get_username()}"
            tx.audit(by, "glass_broken", f"approval:{card.pk}", reason=decision.reason)
        next_step.wake_if_possible(tx, member.user.get_username())
    return _reload(approval_id)


def deny(member: Membership, approval_id: int, decision: Decision) -> Approval:
    """Deny a card; its call ends, and the employee reads the reason. The first denial counts, whoever it is by.

    Raises:
        Forbidden, NotFound, AlreadyDecided, Expired, StaleDigest, Claimed, Invalid
    """
    _check_limits(decision)
    with lock_own_card(member, approval_id) as (tx, card):
        if _is_repeated(member, card, decision, (ApprovalStatus.DENIED,)):
            return card
        _refuse_undecidable(card, decision.digest)
        refuse_claimed(card, decision.despite_claim_of)
        _record_decision(member, card, decision, ApprovalStatus.DENIED)
        because = f" Reason: {decision.reason}" if decision.reason else ""
        hint = "Respect this; do not ask for the same again."
        denied = ToolError(
            ErrorCode.APPROVAL_DENIED, f"A person denied this call.{because}", recovery_hint=hint, attempted=False
        )
        end_unexecuted(tx, card.tool_call, CallStatus.DENIED, denied)
        _publish_and_audit(tx, member, card, decision.reason)
        next_step.wake_if_possible(tx, member.user.get_username())
    return _reload(approval_id)


def edit(member: Membership, approval_id: int, decision: Decision, params: dict[str, Any]) -> Approval:
    """Change the params of a card's call; return the new card, which needs a decision like any other.

    Raises:
        Forbidden, NotFound, AlreadyDecided, Expired, StaleDigest, Claimed
        Invalid: the params are wrong or not allowed; the card stays as it is.
    """
    require_approver(member)
    _check_limits(decision)
    card = find_own_card(member, approval_id)
    if _is_repeated(member, card, decision, (ApprovalStatus.SUPERSEDED,)):
        return find_next_card(card) or card
    _refuse_undecidable(card, decision.digest, NOT_EDITED)
    refuse_claimed(card, decision.despite_claim_of)
    context = replace(load_context(card.run_id), edited=list_edited(card.tool_call.params, params))
    try:
        tool, verdict, effect = _judge_edit(context, card.tool_call, params)
    except Invalid:
        # If the card was decided meanwhile, say so instead.
        _refuse_undecidable(find_own_card(member, approval_id), decision.digest, NOT_EDITED)
        raise
    with lock_own_card(member, approval_id) as (tx, card):
        if _is_repeated(member, card, decision, (ApprovalStatus.SUPERSEDED,)):
            return find_next_card(card) or card
        _refuse_undecidable(card, decision.digest, NOT_EDITED)
        refuse_claimed(card, decision.despite_claim_of)
        if tx.run.cancel_requested_at is not None:
            raise Conflict("the run was cancelled", approval_status=card.status)
        current = context.with_current_rules()
        _, current_verdict = current.judge(tool.name, params)
        has_same_rules = current.has_same_rules(context)
        if not (has_same_rules or has_same_verdict(current_verdict, verdict)):
            raise Conflict("permissions have changed; edit the card again", approval_status=card.status)
        call = card.tool_call
        if verdict.params == call.params:
            raise Invalid("params", "nothing was changed")
        call.model_params = call.params if call.model_params is None else call.model_params
        current.record_verdict(call, verdict if has_same_rules else current_verdict)
        call.provenance = verdict.provenance.as_json() if verdict.provenance else None
        seal(call, tool, verdict.params)
        tx.audit(f"user:{member.user.get_username()}", "card_edited", f"approval:{card.pk}", params=call.params)
        card.decided_by = member.user
        Approval.objects.filter(pk=card.pk).update(
            decided_by=member.user, decided_at=Now(), decision_id=decision.decision_id
        )
        return replace_card(tx, card, effect, f"{member.user.get_username()} edited the request.")


def _judge_edit(context: RunContext, call: ToolCall, params: dict[str, Any]) -> tuple[Tool, Verdict, CallEffect]:
    """Judge the call with these params, trace its values and compute its effect, outside transactions.

    Raises:
        Invalid: the params are wrong or not allowed, need no approval, or are those of an ask.
    """
    if find_asked_action(call.tool):
        raise Invalid("params", "the agent acts with the params that it asked about; deny the card and say why")
    tool, verdict = context.judge(call.tool, params)
    if tool is None or verdict.error is not None:
        raise _refuse_params(verdict.error or ToolError(ErrorCode.TOOL_NOT_FOUND, "The tool is no longer installed."))
    if verdict.permission != Permission.ASK:
        raise Invalid("params", "a call with these params needs no approval")
    provenance = verdict.provenance or context.values.trace(tool, verdict.params)
    try:
        effect = compute_effect(tool, verdict.params, context.build_tool_context(call))
    except ToolError as error:
        raise _refuse_params(error) from error
    return tool, replace(verdict, provenance=provenance), effect


def _refuse_params(error: ToolError) -> Invalid:
    return Invalid(f"params.{error.parameter}" if error.parameter else "params", error.message)


def undo(member: Membership, approval_id: int, decision_id: str = "") -> Approval:
    """Undo an approval before the call starts; return the new pending card, which keeps the votes of other people.

    A vote on a card that needs more people is withdrawn; the card stays.

    Raises:
        Forbidden, NotFound
        Conflict: this member did not approve it, or the call has started.
    """
    require_approver(member)
    before = find_own_card(member, approval_id)
    if before.status == ApprovalStatus.PENDING and (withdrawn := _withdraw(member, approval_id)):
        return withdrawn
    effect = compute_current_effect(before)
    if isinstance(effect, ToolError):
        tool = load_toolbox(before.organization_id).get_tool(before.tool_call.tool)
        effect = describe_impossible(tool, before, effect.message)
    with lock_own_card(member, approval_id) as (tx, card):
        if replacement := _find_undone(member, card, decision_id):
            return replacement
        if card.status != ApprovalStatus.APPROVED or card.tool_call.status != CallStatus.APPROVED:
            raise Conflict("the call is no longer waiting to start", approval_status=card.status)
        if decision_id and decision_id != card.decision_id:
            raise Conflict("a later decision replaced this one", approval_status=card.status)
        if card.decided_by_id != member.user_id and not has_voted(member, card):
            raise Conflict("only a person who approved it can undo it")
        tx.audit(f"user:{member.user.get_username()}", "decision_undone", f"approval:{card.pk}")
        replacement = replace_card(tx, card, effect, f"{member.user.get_username()} undid the approval.")
        keep_votes(card, replacement, without=member)
        return replacement


def _withdraw(member: Membership, approval_id: int) -> Approval | None:
    """Withdraw this member's vote from a waiting card; return None if there is none."""
    with lock_own_card(member, approval_id) as (tx, card):
        if card.status != ApprovalStatus.PENDING or not withdraw_vote(member, card):
            return None
        standing = find_standings(tx.run.organization, [card]).get(card.pk)
        told = ApprovalVoted.of(card, member.user.get_username(), standing.needs if standing else "")
        _publish_vote(tx, card, replace(told, withdrawn=True))
        return card


def _publish_vote(tx: Transaction, card: Approval, event: ApprovalVoted) -> None:
    """Publish and audit a vote or its withdrawal."""
    tx.publish(event)
    action = "vote_withdrawn" if event.withdrawn else "vote_cast"
    tx.audit(f"user:{event.by}", action, f"approval:{card.pk}", tool=card.tool_call.tool, digest=card.digest)
    tx.inbox_changed = True


def list_undoable(member: Membership) -> list[Approval]:
    """List this member's approvals that can still be undone, oldest first."""
    mine = Approval.objects.filter(organization_id=member.organization_id, decided_by_id=member.user_id)
    waiting = mine.filter(status=ApprovalStatus.APPROVED, start_after__gt=Now(), tool_call__status=CallStatus.APPROVED)
    return list(waiting.only("pk", "sentence", "start_after").order_by("decided_at", "pk")[:MAX_UNDOABLE])


def _find_undone(member: Membership, card: Approval, decision_id: str) -> Approval | None:
    """Find the pending card that replaced this one when this member undid the approval."""
    was_theirs = card.start_after is not None and card.decided_by_id == member.user_id
    if card.status != ApprovalStatus.SUPERSEDED or not was_theirs or decision_id not in ("", card.decision_id):
        return None
    replacement = find_next_card(card)
    is_pending = replacement is not None and replacement.status == ApprovalStatus.PENDING
    return replacement if is_pending else None


def expire(approval_id: int) -> bool:
    """Expire a card that nobody decided in time; the employee reads that this is not a refusal."""
    card = Approval.objects.select_related("tool_call").get(pk=approval_id)
    with run_transaction(card.run_id, wait=False) as tx:
        due = Approval.objects.filter(pk=card.pk, status=ApprovalStatus.PENDING, expires_at__lte=Now())
        if not due.update(status=ApprovalStatus.EXPIRED):
            return False
        missing = "answered" if card.kind == ApprovalKind.QUESTION else "decided"
        error = ToolError(
            ErrorCode.APPROVAL_EXPIRED, f"Nobody {missing} in time. This is not a refusal.", attempted=False
        )
        call = ToolCall.objects.get(pk=card.tool_call_id)
        end_unexecuted(tx, call, CallStatus.EXPIRED, error)
        card.status = ApprovalStatus.EXPIRED
        publish_decision(tx, card, error.message)
        tx.tell(NoticeKind.CARD_EXPIRED, card)
        tx.audit("gadget", "card_expired", f"approval:{card.pk}")
        next_step.wake_if_possible(tx)
        return True


def make_confirmation_phrase(card: Approval) -> str:
    """Make the phrase to type for approval: the target's name if it can be typed, the count, or the tool's name.

    It is empty below destructive level, unless the card reaches far.
    """
    if card.level != Level.DESTRUCTIVE and not reaches_far(card):
        return ""
    targets = card.preview["targets"]
    name = " ".join(str(targets[0]["label"]).split()) if len(targets) == 1 else ""
    if name and name.isprintable():
        return name
    if targets:
        return str(len(targets))
    tool = load_toolbox(card.organization_id).get_tool(card.tool_call.tool)
    return tool.title if tool else card.tool_call.tool


def _reload(approval_id: int) -> Approval:
    return Approval.objects.select_related("tool_call", "run", "decided_by").get(pk=approval_id)


def _record_decision(
    member: Membership, card: Approval, decision: Decision, status: ApprovalStatus, **columns: Any
) -> None:
    """Record the decision with one conditional update; refuse with the reason if the card is not open."""
    undecided = Approval.objects.filter(
        pk=card.pk,
        organization_id=member.organization_id,
        kind=ApprovalKind.APPROVAL,
        status=ApprovalStatus.PENDING,
        expires_at__gt=Now(),
        digest=decision.digest,
        run__cancel_requested_at=None,
    )
    columns |= {"decided_by": member.user, "decided_at": Now(), "decision_id": decision.decision_id}
    if not undecided.update(status=status, reason=decision.reason, bulk_id=decision.bulk_id, **columns):
        _refuse_undecidable(card, decision.digest)
        raise Conflict("the run was cancelled", approval_status=card.status)
    card.decided_by, card.status = member.user, status


def _refuse_undecidable(card: Approval, digest: str, consequence: str = "") -> None:
    if card.kind != ApprovalKind.APPROVAL:
        raise Conflict(f"a card of kind {card.kind!r} cannot be approved or denied", approval_status=card.status)
    refuse_closed(card, consequence)
    if card.digest != digest:
        raise StaleDigest("the card has changed since it was shown: its digest is different", digest=card.digest)


def _refuse_unsealed(card: Approval) -> None:
    if not is_sealed(card):
        detail = "the card or its call was changed in the database; deny it, or edit it to ask again"
        raise Conflict(detail, approval_status=card.status)


def _is_repeated(member: Membership, card: Approval, decision: Decision, statuses: tuple[ApprovalStatus, ...]) -> bool:
    return bool(
        decision.decision_id
        and card.decision_id == decision.decision_id
        and card.decided_by_id == member.user_id
        and card.status in statuses
    )


def _check_limits(decision: Decision) -> None:
    if len(decision.reason) > MAX_REASON or "\0" in decision.reason:
        raise Invalid("reason", f"reason may have at most {MAX_REASON:,} characters, and no NUL")
    if not 0 <= decision.grace_s <= MAX_GRACE_S:
        raise Invalid("grace_s", f"grace_s is {decision.grace_s}, but must be 0 to {MAX_GRACE_S}")
    if len(decision.decision_id) > 200 or "\0" in decision.decision_id:
        raise Invalid("decision_id", "decision_id may have at most 200 characters, and no NUL")


def _check_confirmation(card: Approval, decision: Decision) -> None:
    phrase = make_confirmation_phrase(card)
    if phrase and " ".join(decision.confirm.split()) != phrase:
        why = "a destructive call" if card.level == Level.DESTRUCTIVE else "a call that affects this many objects"
        raise Invalid("confirm", f"type {phrase!r} to confirm {why}")


def _move_call(call: ToolCall, status: CallStatus) -> None:
    if not ToolCall.objects.filter(pk=call.pk, status=CallStatus.AWAITING_APPROVAL).update(status=status):
        raise Conflict("the call is not waiting for approval", call_status=call.status)


def _publish_and_audit(tx: Transaction, member: Membership, card: Approval, reason: str) -> None:
    """Publish and audit a decision, which the card's `status` states."""
    publish_decision(tx, card, reason)
    tx.audit(
        f"user:{member.user.get_username()}",
        f"card_{card.status}",
        f"approval:{card.pk}",
        tool=card.tool_call.tool,
        digest=card.digest,
        reason=reason,
    )
