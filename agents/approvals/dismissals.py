"""Dismissals: a person closes a card whose call is no longer needed, and the call does not run."""

from __future__ import annotations

from agents.accounts.models import Membership
from agents.approvals.attention import refuse_claimed
from agents.approvals.current_calls import CurrentCall, judge_current
from agents.approvals.decisions import (
    Decision,
    check_limits,
    is_repeated,
    publish_and_audit,
    record_decision,
    refuse_undecidable,
)
from agents.approvals.own_cards import find_own_card, lock_own_card, require_approver
from agents.approvals.warnings.done_already import is_shown_as_done
from agents.platform.refusals import Conflict, StaleDigest
from agents.runs.engine import next_step
from agents.runs.engine.card_sentences import CallEffect
from agents.runs.engine.cards import replace_card
from agents.runs.engine.results import end_unexecuted
from agents.runs.models import Approval, ApprovalStatus, CallStatus
from tools.contract import ErrorCode, ToolError
from tools.contract.sentences import quote_names


def dismiss(member: Membership, approval_id: int, decision: Decision) -> Approval:
    """Close a card whose effect already exists; the employee is informed that the work was already
    done.

    The target is checked again first. A card that says "already done" is replaced if this is no
    longer true.

    Raises:
        Forbidden, NotFound, AlreadyDecided, Expired, StaleDigest, Claimed
        Conflict: the call would still change something, or its effect is unknown.
    """
    require_approver(member)
    check_limits(decision)
    card = find_own_card(member, approval_id)
    if is_repeated(member, card, decision, (ApprovalStatus.ANSWERED,)):
        return card
    refuse_undecidable(card, decision.digest)
    current = judge_current(card)
    effect = current.computed
    if not isinstance(effect, CallEffect) or not effect.preview.is_done:
        return _refuse(member, decision, current)
    with lock_own_card(member, approval_id) as (tx, card):
        if is_repeated(member, card, decision, (ApprovalStatus.ANSWERED,)):
            return card
        refuse_undecidable(card, decision.digest)
        refuse_claimed(card, decision.despite_claim_of)
        record_decision(member, card, decision, ApprovalStatus.ANSWERED)
        fact = quote_names(effect.sentence).removesuffix(".")
        words = f"A person dismissed this call, because there was nothing to do. {fact}."
        hint = "Nothing needs to be done; continue with the task."
        done = ToolError(ErrorCode.NOTHING_TO_DO, words, recovery_hint=hint, attempted=False)
        end_unexecuted(tx, card.tool_call, CallStatus.REJECTED, done)
        publish_and_audit(tx, member, card, decision.reason)
        next_step.wake_if_possible(tx, member.user.get_username())
    return find_own_card(member, approval_id)


def _refuse(member: Membership, decision: Decision, current: CurrentCall) -> Approval:
    """Refuse to dismiss a card whose call is still needed; replace the card first if it is
    outdated."""
    card, effect = current.card, current.computed
    if is_shown_as_done(card) and isinstance(effect, CallEffect):
        with lock_own_card(member, card.pk) as (tx, locked):
            refuse_undecidable(locked, decision.digest)
            current.seal_changes(locked.tool_call)
            newest = replace_card(
                tx, locked, effect, "This was done already, but the target has changed since."
            )
        raise StaleDigest("the target has changed since the card was shown", digest=newest.digest)
    raise Conflict(
        "the call would still change something: approve or deny it", approval_status=card.status
    )
