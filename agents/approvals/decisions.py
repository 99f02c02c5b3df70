"""What people do to a card: approve, deny, edit, undo."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from agents.accounts.models import Membership, Role
from agents.approvals.askers import refuse_asker
from agents.approvals.asking_again import compute_current_effect
from agents.approvals.closed_cards import next_card, refuse_closed
from agents.approvals.models import Approval, ApprovalKind, ApprovalStatus
from agents.employees.toolboxes import toolbox_of
from agents.platform.refusals import Conflict, Forbidden, Invalid, NotFound, Refusal, Stale
from agents.runs.engine import next_step
from agents.runs.engine.cards import Effect, effect_of, is_sealed, publish_decision, reopen, seal
from agents.runs.engine.context import RunContext, has_same_verdict, load_context
from agents.runs.engine.results import end_unexecuted
from agents.runs.engine.timing import timing
from agents.runs.engine.transaction import Transaction, run_transaction
from agents.runs.models import CallStatus, ToolCall
from tools.contract import ErrorCode, Level, Preview, Tool, ToolError
from tools.toolbox.permissions import Permission, Verdict

MOST_REASON = 2000
MOST_GRACE_S = 60
NOT_EDITED = "the edit was not applied"


@dataclass(frozen=True)
class Decision:
    """What a person decided, about the card with this digest.

    Attributes:
        decision_id: the same one again by the same person gets the same answer.
        grace_s: seconds in which it can be undone before the call starts.
        confirm: what was typed, at destructive level.
    """

    digest: str
    decision_id: str = ""
    reason: str = ""
    grace_s: int = 0
    confirm: str = ""


@dataclass(frozen=True)
class Outcome:
    """What became of one decision among many."""

    approval_id: int
    status: int
    code: str = ""
    detail: str = ""


def approve(member: Membership, approval_id: int, decision: Decision) -> Approval:
    """Let the call start, exactly as the card shows it.

    Raises:
        Forbidden, NotFound, Decided, Expired, Stale, Invalid
    """
    _check_limits(decision)
    with _deciding(member, approval_id) as (tx, card):
        if _is_repeated(member, card, decision, (ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED)):
            return card
        _refuse_undecidable(card, decision.digest)
        _refuse_unsealed(card)
        refuse_asker(member, tx.run, card)
        _check_confirmation(card, decision)
        start = tx.now + timedelta(seconds=decision.grace_s)
        until = start + timing().start_within
        _decide(
            member,
            card,
            decision,
            ApprovalStatus.APPROVED,
            start_after=start,
            valid_until=until,
        )
        _move_call(card.tool_call, CallStatus.APPROVED)
        _tell(tx, member, card, decision.reason)
        next_step.wake_if_possible(tx, member.user.get_username())
    return _fresh(approval_id)


def deny(member: Membership, approval_id: int, decision: Decision) -> Approval:
    """Refuse the call; the employee is told the reason.

    Raises:
        Forbidden, NotFound, Decided, Expired, Stale, Invalid
    """
    _check_limits(decision)
    with _deciding(member, approval_id) as (tx, card):
        if _is_repeated(member, card, decision, (ApprovalStatus.DENIED,)):
            return card
        _refuse_undecidable(card, decision.digest)
        refuse_asker(member, tx.run, card)
        _decide(member, card, decision, ApprovalStatus.DENIED)
        because = f" Reason: {decision.reason}" if decision.reason else ""
        hint = "Respect this; do not ask for the same again."
        denied = ToolError(
            ErrorCode.APPROVAL_DENIED, f"A person denied this call.{because}", recovery_hint=hint, attempted=False
        )
        end_unexecuted(tx, card.tool_call, CallStatus.DENIED, denied)
        _tell(tx, member, card, decision.reason)
        next_step.wake_if_possible(tx, member.user.get_username())
    return _fresh(approval_id)


def edit(member: Membership, approval_id: int, decision: Decision, params: dict[str, Any]) -> Approval:
    """Change what the call would do; approves nothing: returns the new card, to be decided like any other.

    Raises:
        Forbidden, NotFound, Decided, Expired, Stale, Invalid: the params are wrong, or not allowed; the card stays.
    """
    demand_approver(member)
    _check_limits(decision)
    card = _find(member, approval_id)
    if _is_repeated(member, card, decision, (ApprovalStatus.SUPERSEDED,)):
        return next_card(card) or card
    _refuse_undecidable(card, decision.digest, NOT_EDITED)
    context = load_context(card.run_id)
    try:
        tool, verdict, effect = _judge_edit(context, card.tool_call, params)
    except Invalid:
        _refuse_undecidable(_find(member, approval_id), decision.digest, NOT_EDITED)  # its effect may be in the way
        raise
    with _deciding(member, approval_id) as (tx, card):
        if _is_repeated(member, card, decision, (ApprovalStatus.SUPERSEDED,)):
            return next_card(card) or card
        _refuse_undecidable(card, decision.digest, NOT_EDITED)
        if tx.run.cancel_requested_at is not None:
            raise Conflict("the run was cancelled meanwhile", approval_status=card.status)
        current = context.with_current_rules()
        _, current_verdict = current.judge(tool.name, params)
        if not (current.has_same_rules(context) or has_same_verdict(current_verdict, verdict)):
            raise Conflict("what is permitted changed meanwhile; edit the card again", approval_status=card.status)
        call = card.tool_call
        if verdict.params == call.params:
            raise Invalid("params", "nothing was changed")
        call.model_params = call.params if call.model_params is None else call.model_params
        call.level = str(verdict.level)
        seal(call, tool, verdict.params)
        tx.audit(f"user:{member.user.get_username()}", "card_edited", f"approval:{card.pk}", params=call.params)
        card.decided_by = member.user
        Approval.objects.filter(pk=card.pk).update(
            decided_by=member.user, decided_at=Now(), decision_id=decision.decision_id
        )
        return reopen(tx, card, effect, f"{member.user.get_username()} changed the params.")


def _judge_edit(context: RunContext, call: ToolCall, params: dict[str, Any]) -> tuple[Tool, Verdict, Effect]:
    """Compute the effect of the call with these params, outside transactions.

    Raises:
        Invalid: the params are wrong or not allowed, or nobody would have to be asked.
    """
    tool, verdict = context.judge(call.tool, params)
    if tool is None or verdict.error is not None:
        raise _unfit(verdict.error or ToolError(ErrorCode.TOOL_NOT_FOUND, "The tool is not installed any more."))
    if verdict.permission != Permission.ASK:
        raise Invalid("params", "a call with these params needs no approval")
    try:
        return tool, verdict, effect_of(tool, verdict.params, context.tool_context(call))
    except ToolError as error:
        raise _unfit(error) from error


def _unfit(error: ToolError) -> Invalid:
    return Invalid(f"params.{error.parameter}" if error.parameter else "params", error.message)


def undo(member: Membership, approval_id: int, decision_id: str = "") -> Approval:
    """Take an approval back before the call starts; returns the new pending card.

    Raises:
        Forbidden, NotFound, Conflict: somebody else decided it, or the call has started.
    """
    demand_approver(member)
    effect = compute_current_effect(before := _find(member, approval_id))
    if isinstance(effect, ToolError):
        effect = Effect(before.sentence, Preview.impossible(effect.message))
    with _deciding(member, approval_id) as (tx, card):
        if following := _undone_before(member, card, decision_id):
            return following
        if card.status != ApprovalStatus.APPROVED or card.tool_call.status != CallStatus.APPROVED:
            raise Conflict("this cannot be undone: the call is not waiting for its start", approval_status=card.status)
        if decision_id and decision_id != card.decision_id:
            raise Conflict("that decision is not the one in force", approval_status=card.status)
        if card.decided_by_id != member.user_id:
            raise Conflict("only the person who decided can undo it")
        tx.audit(f"user:{member.user.get_username()}", "decision_undone", f"approval:{card.pk}")
        return reopen(tx, card, effect, f"{member.user.get_username()} took the approval back.")


def _undone_before(member: Membership, card: Approval, decision_id: str) -> Approval | None:
    """The card that waits again since this member took the approval of this one back."""
    was_theirs = card.start_after is not None and card.decided_by_id == member.user_id
    if card.status != ApprovalStatus.SUPERSEDED or not was_theirs or decision_id not in ("", card.decision_id):
        return None
    following = next_card(card)
    return following if following is not None and following.status == ApprovalStatus.PENDING else None


def decide_many(member: Membership, items: Sequence[tuple[int, str, Decision]]) -> list[Outcome]:
    """Decide card by card; one outcome for each. Destructive calls are not approved here."""
    return [_decide_one(member, approval_id, action, decision) for approval_id, action, decision in items]


def _decide_one(member: Membership, approval_id: int, action: str, decision: Decision) -> Outcome:
    try:
        if action == "deny":
            deny(member, approval_id, decision)
        elif action == "approve":
            card = _find(member, approval_id)
            if card.level == Level.DESTRUCTIVE:
                raise Invalid("action", "a destructive call is approved on its own card")
            if member.organization.restored_at is not None and card.warning:
                raise Invalid("action", "a card with a warning is approved individually")
            approve(member, approval_id, decision)
        else:
            raise Invalid("action", f"action is {action!r}, but has to be 'approve' or 'deny'")
    except Refusal as refusal:
        return Outcome(approval_id, refusal.status, refusal.code, refusal.detail)
    return Outcome(approval_id, 200)


def expire(approval_id: int) -> bool:
    """End a card that nobody decided in time; the employee is told that it was not a refusal."""
    card = Approval.objects.select_related("tool_call").get(pk=approval_id)
    with run_transaction(card.run_id, wait=False) as tx:
        due = Approval.objects.filter(pk=card.pk, status=ApprovalStatus.PENDING, expires_at__lte=Now())
        if not due.update(status=ApprovalStatus.EXPIRED):
            return False
        said = "answered" if card.kind == ApprovalKind.QUESTION else "decided"
        error = ToolError(ErrorCode.APPROVAL_EXPIRED, f"Nobody {said} in time. That is not a refusal.", attempted=False)
        call = ToolCall.objects.get(pk=card.tool_call_id)
        end_unexecuted(tx, call, CallStatus.EXPIRED, error)
        card.status = ApprovalStatus.EXPIRED
        publish_decision(tx, card, error.message)
        tx.audit("gadget", "card_expired", f"approval:{card.pk}")
        next_step.wake_if_possible(tx)
        return True


def confirm_phrase(card: Approval) -> str:
    """What has to be typed to approve: the target's name (if it can be typed), the count, or the tool's name.

    Empty below destructive level.
    """
    if card.level != Level.DESTRUCTIVE:
        return ""
    targets = card.preview["targets"]
    name = " ".join(str(targets[0]["label"]).split()) if len(targets) == 1 else ""
    if name and name.isprintable():
        return name
    if targets:
        return str(len(targets))
    tool = toolbox_of(card.organization_id).get_tool(card.tool_call.tool)
    return tool.title if tool else card.tool_call.tool


@contextmanager
def _deciding(member: Membership, approval_id: int) -> Iterator[tuple[Transaction, Approval]]:
    """Lock the run, then read the card: nobody else decides meanwhile."""
    demand_approver(member)
    with run_transaction(_find(member, approval_id).run_id) as tx:
        yield tx, _find(member, approval_id)


def _find(member: Membership, approval_id: int) -> Approval:
    own = Approval.objects.filter(organization_id=member.organization_id, pk=approval_id)
    card = own.select_related("tool_call", "decided_by").first()
    if card is None:
        raise NotFound(f"there is no approval {approval_id}")
    return card


def _fresh(approval_id: int) -> Approval:
    return Approval.objects.select_related("tool_call", "run", "decided_by").get(pk=approval_id)


def _decide(member: Membership, card: Approval, decision: Decision, status: ApprovalStatus, **columns: Any) -> None:
    """One conditional update decides; if it finds nothing, say why."""
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
    if not undecided.update(status=status, reason=decision.reason, **columns):
        _refuse_undecidable(card, decision.digest)
        raise Conflict("the run was cancelled meanwhile", approval_status=card.status)
    card.decided_by, card.status = member.user, status


def _refuse_undecidable(card: Approval, digest: str, lost: str = "") -> None:
    if card.kind != ApprovalKind.APPROVAL:
        raise Conflict(f"a card of kind {card.kind!r} is not approved or denied", approval_status=card.status)
    refuse_closed(card, lost)
    if card.digest != digest:
        raise Stale("the digest is not that of the card as it is now", digest=card.digest)


def _refuse_unsealed(card: Approval) -> None:
    if not is_sealed(card):
        told = "the card or its call was changed in the database; deny it, or edit it to ask again"
        raise Conflict(told, approval_status=card.status)


def _is_repeated(member: Membership, card: Approval, decision: Decision, statuses: tuple[ApprovalStatus, ...]) -> bool:
    return bool(
        decision.decision_id
        and card.decision_id == decision.decision_id
        and card.decided_by_id == member.user_id
        and card.status in statuses
    )


def _check_limits(decision: Decision) -> None:
    if len(decision.reason) > MOST_REASON or "\0" in decision.reason:
        raise Invalid("reason", f"reason may have at most {MOST_REASON:,} characters, and no NUL")
    if not 0 <= decision.grace_s <= MOST_GRACE_S:
        raise Invalid("grace_s", f"grace_s is {decision.grace_s}, but has to be 0 to {MOST_GRACE_S}")
    if len(decision.decision_id) > 200 or "\0" in decision.decision_id:
        raise Invalid("decision_id", "decision_id may have at most 200 characters, and no NUL")


def _check_confirmation(card: Approval, decision: Decision) -> None:
    phrase = confirm_phrase(card)
    if phrase and " ".join(decision.confirm.split()) != phrase:
        raise Invalid("confirm", f"type {phrase!r} to confirm a destructive call")


def demand_approver(member: Membership) -> None:
    """Raises Forbidden if the member may not decide."""
    if not member.may(Role.APPROVER):
        raise Forbidden(f"{member.as_noun} may not decide")


def _move_call(call: ToolCall, status: CallStatus) -> None:
    if not ToolCall.objects.filter(pk=call.pk, status=CallStatus.AWAITING_APPROVAL).update(status=status):
        raise Conflict("the call does not await approval", call_status=call.status)


def _tell(tx: Transaction, member: Membership, card: Approval, reason: str) -> None:
    """The panel's line and the audit's entry for a decision, which the card's `status` says."""
    publish_decision(tx, card, reason)
    tx.audit(
        f"user:{member.user.get_username()}",
        f"card_{card.status}",
        f"approval:{card.pk}",
        tool=card.tool_call.tool,
        digest=card.digest,
        reason=reason,
    )
