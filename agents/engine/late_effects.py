"""Late effects: a call that was declared not done reports that it happened after all."""

from agents.engine.outcomes import show_unknown_card
from agents.events import Recording
from agents.models import Approval, ApprovalKind, CallStatus, EventType, ToolCall
from tools.contract import ToolResult

_LONGEST_SUMMARY = 1_000


def note_late_effect(record: Recording, call: ToolCall, epoch: int, result: ToolResult) -> bool:
    """Keep the report of a failed call's executor, and show a card that a person has to acknowledge.

    The call, its run and its tool message stay unchanged. False if the report does not count: it is no success,
    the call has not failed, or it was executed in another epoch.
    """
    again = _find_repeats(call)
    told = {"reported_at": record.now.isoformat(), "result": result.as_json(), "done_again_by": again}
    failed = ToolCall.objects.filter(pk=call.pk, status=CallStatus.FAILED, exec_epoch=epoch, late_effect__isnull=True)
    if not result.success or not failed.update(late_effect=told):
        return False
    summary = result.summary[:_LONGEST_SUMMARY]
    why = f"It was declared not done, but its worker now reports that it happened: {summary}"
    if again:
        why += f"\nIt was asked for again meanwhile, so it probably happened twice. See call {', '.join(again)}."
    card = show_unknown_card(record, call, "This happened after all", why)
    record.publish(
        EventType.LATE_EFFECT,
        call_id=str(call.pk),
        approval_id=str(card.pk),
        summary=summary,
        reason=why,
        done_again_by=again,
    )
    record.audit("gadget", "late_effect", f"tool_call:{call.pk}", tool=call.tool, summary=summary, done_again_by=again)
    return True


def _find_repeats(call: ToolCall) -> list[str]:
    """List the ids of later, started calls of the run that asked for the same."""
    same = ToolCall.objects.filter(run_id=call.run_id, signature=call.signature, pk__gt=call.pk, attempts__gt=0)
    may_have_happened = (CallStatus.EXECUTING, CallStatus.OUTCOME_UNKNOWN, CallStatus.SUCCEEDED)
    ids = same.filter(status__in=may_have_happened).order_by("pk").values_list("pk", flat=True)
    return [str(pk) for pk in ids]


def happened_meanwhile(card: Approval) -> bool:
    """Return True if an equal call of the run turned out to have happened after this card was shown."""
    reports = Approval.objects.filter(run_id=card.run_id, kind=ApprovalKind.UNKNOWN, requested_at__gt=card.requested_at)
    equal = reports.filter(tool_call__signature=card.tool_call.signature, tool_call__late_effect__isnull=False)
    return equal.exclude(tool_call=card.tool_call_id).exists()
