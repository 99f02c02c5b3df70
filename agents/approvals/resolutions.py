"""Let people resolve calls whose outcome is unknown."""

from django.db.models.functions import Now

from agents.accounts.models import Membership
from agents.approvals.decisions import MAX_REASON
from agents.approvals.own_cards import require_approver
from agents.platform.refusals import Conflict, Invalid, NotFound
from agents.runs.engine import next_step
from agents.runs.engine.results import build_end_columns, keep_provenance
from agents.runs.engine.transaction import run_transaction
from agents.runs.engine.unknown_outcomes import close_unknown_card
from agents.runs.events import CallResolved
from agents.runs.models import Approval, ApprovalKind, ApprovalStatus, CallStatus, ToolCall
from tools.contract import ErrorCode, ToolError, ToolResult

ACKNOWLEDGED = "acknowledged"
OUTCOMES = ("succeeded", "not_done", ACKNOWLEDGED)


def resolve(member: Membership, call_id: int, outcome: str, reason: str) -> ToolCall:
    """Resolve a call whose outcome is unknown as "succeeded" or "not_done".

    "acknowledged" closes the card of a late effect and changes nothing else.

    Raises:
        Forbidden, NotFound, Invalid
        Conflict: the outcome is not unknown, or there is no late effect to acknowledge.
    """
    require_approver(member)
    if outcome not in OUTCOMES:
        raise Invalid(
            "outcome",
            f"outcome is {outcome!r}, but must be one of {', '.join(map(repr, OUTCOMES))}",
        )
    if not reason.strip() or len(reason) > MAX_REASON or "\0" in reason:
        raise Invalid("reason", f"a reason of 1 to {MAX_REASON:,} characters is needed")
    call = ToolCall.objects.filter(organization_id=member.organization_id, pk=call_id).first()
    if call is None:
        raise NotFound(f"there is no tool call {call_id}")
    if outcome == ACKNOWLEDGED:
        return _acknowledge(member, call, reason)
    by = member.user.get_username()
    with run_transaction(call.run_id) as tx:
        call = ToolCall.objects.get(pk=call_id)
        result = _make_result(outcome, by, reason)
        unknown = ToolCall.objects.filter(pk=call.pk, status=CallStatus.OUTCOME_UNKNOWN)
        if not unknown.update(**build_end_columns(tx, call, result)):
            raise Conflict("the outcome of this call is not unknown", call_status=call.status)
        close_unknown_card(call, f"{by}: {reason}", member.user)
        keep_provenance(call, result)
        tx.inbox_changed = True
        tx.publish(CallResolved(str(call.pk), outcome, by, reason))
        subject = f"tool_call:{call.pk}"
        tx.audit(member.actor, "outcome_resolved", subject, outcome=outcome, reason=reason)
        next_step.wake_if_possible(tx, by)
    return ToolCall.objects.get(pk=call_id)


def _acknowledge(member: Membership, call: ToolCall, reason: str) -> ToolCall:
    by = member.user.get_username()
    with run_transaction(call.run_id) as tx:
        cards = Approval.objects.filter(
            tool_call=call, kind=ApprovalKind.UNKNOWN, status=ApprovalStatus.PENDING
        )
        late_cards = cards.filter(tool_call__late_effect__isnull=False)
        decided = {"decided_by": member.user, "decided_at": Now(), "reason": reason}
        if not late_cards.update(status=ApprovalStatus.ANSWERED, **decided):
            raise Conflict("this call has no late effect to acknowledge", call_status=call.status)
        tx.inbox_changed = True
        tx.publish(CallResolved(str(call.pk), ACKNOWLEDGED, by, reason))
        tx.audit(
            member.actor,
            "late_effect_acknowledged",
            f"tool_call:{call.pk}",
            tool=call.tool,
            reason=reason,
        )
    return ToolCall.objects.get(pk=call.pk)


def _make_result(outcome: str, by: str, reason: str) -> ToolResult:
    if outcome == "succeeded":
        return ToolResult.ok(
            {"confirmed_by": by, "reason": reason},
            f"{by} reported that it happened: {reason}",
            confirmed_by=by,
        )
    error = ToolError(
        ErrorCode.OUTCOME_UNKNOWN,
        f"{by} reported that it did not happen: {reason}",
        recovery_hint="You may ask for it again; it then needs approval again.",
        attempted=False,
    )
    return ToolResult.failed(error)
