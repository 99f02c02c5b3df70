"""Settle the calls of lost workers (step 2 of a run), requeue their runs, and record late
reports.

A read runs again. The outcome of a write is unknown, so a person is asked, unless the worker still
reports it.
"""

from agents.employees.toolboxes import load_toolbox
from agents.runs.engine.results import end_unexecuted, keep_provenance, publish_result
from agents.runs.engine.timing import MAX_ATTEMPTS
from agents.runs.engine.transaction import MACHINE, Transaction
from agents.runs.engine.unknown_outcomes import (
    UnknownOutcome,
    mark_outcome_unknown,
    show_unknown_card,
)
from agents.runs.events import LateEffect, RunResumed
from agents.runs.models import Approval, ApprovalKind, CallStatus, Origin, ToolCall
from agents.runs.queries.engine import OPEN_OR_LAST_CALLS
from tools.contract import ErrorCode, Level, ToolError, ToolResult, name_tool

_LONGEST_SUMMARY = 1_000


def settle_lost_calls(tx: Transaction) -> None:
    """Settle the calls that earlier drivers of the run left executing."""
    run = tx.run
    if all(
        call.status != CallStatus.EXECUTING
        for call in OPEN_OR_LAST_CALLS.fetch_all(run.pk, run.pass_number)
    ):
        return
    executing = ToolCall.objects.filter(
        run_id=run.pk, status=CallStatus.EXECUTING, exec_epoch__lt=run.lease_epoch
    )
    for call in executing.order_by("pk"):
        settle_lost_call(tx, call, may_repeat=True)


def settle_lost_call(tx: Transaction, call: ToolCall, may_repeat: bool) -> None:
    """Settle a call whose worker was lost. A read is repeated, or fails if it may not be repeated;
    the outcome of a write becomes unknown."""
    if _may_have_happened(call):
        mark_outcome_unknown(tx, call, "The worker was lost while this call was running.")
        return
    same = ToolCall.objects.filter(pk=call.pk, status=CallStatus.EXECUTING)
    if may_repeat and call.attempts < MAX_ATTEMPTS and not _is_inner(call):
        same.update(status=CallStatus.READY, exec_epoch=None, deadline_at=None)
        return
    error = ToolError(ErrorCode.WORKER_LOST, "The worker was lost while this call was running.")
    if end_unexecuted(tx, call, CallStatus.FAILED, error):
        publish_result(tx, call, ToolResult.failed(error))


def end_abandoned_calls(tx: Transaction) -> None:
    """End inner calls that still execute although the calling call was given up."""
    error = ToolError(ErrorCode.TIMEOUT, "The call that asked for this was given up.")
    executing = ToolCall.objects.filter(
        run_id=tx.run.pk, status=CallStatus.EXECUTING, parent_call__isnull=False
    )
    orphans = executing.exclude(
        parent_call__status__in=(CallStatus.EXECUTING, CallStatus.SUSPENDED)
    ).order_by("pk")
    while call := orphans.first():
        if not end_unexecuted(tx, call, CallStatus.FAILED, error):
            return
        publish_result(tx, call, ToolResult.failed(error))


def requeue_after_loss(tx: Transaction) -> None:
    """Requeue a run whose worker was lost. The event lists the calls that the worker left
    executing."""
    left = ToolCall.objects.filter(run_id=tx.run.pk, status=CallStatus.EXECUTING).order_by("pk")
    again, unknown = [], []
    for call in left:
        if _may_have_happened(call):
            unknown.append(_find_tool_title(call))
        elif call.attempts < MAX_ATTEMPTS:
            again.append(_find_tool_title(call))
    reasons = ["The worker was lost; another one continues."]
    if again:
        reasons.append(f"Repeated: {', '.join(again)}.")
    if unknown:
        reasons.append(f"Outcome unknown, so not repeated automatically: {', '.join(unknown)}.")
    tx.requeue()
    tx.publish(RunResumed(MACHINE, " ".join(reasons)))


def _find_tool_title(call: ToolCall) -> str:
    tool = load_toolbox(call.organization_id).get_called_tool(call.tool, call.version)
    return f"{name_tool(tool, call.tool)}"


def _may_have_happened(call: ToolCall) -> bool:
    """Return True if the executing call may have had an effect, so that it must not be repeated."""
    return Level(call.level).has_side_effects or Approval.objects.filter(tool_call=call).exists()


def _is_inner(call: ToolCall) -> bool:
    """Return True if a tool made the call and will make it again; False for steps of recipes, which
    the engine makes."""
    return call.parent_call is not None and call.parent_call.status != CallStatus.SUSPENDED


def record_late_effect(tx: Transaction, call: ToolCall, epoch: int, result: ToolResult) -> bool:
    """Record that a call marked as not done did happen, and create a card for acknowledging
    it.

    The call's status and tool message stay unchanged. Return False if the report is ignored: it
    does not report a success, the call has not failed, a late effect is already recorded, or the
    call was executed in another epoch.
    """
    again = _find_repeats(call)
    late_effect = {
        "reported_at": tx.now.isoformat(),
        "result": result.as_json(),
        "done_again_by": again,
    }
    failed = ToolCall.objects.filter(
        pk=call.pk, status=CallStatus.FAILED, exec_epoch=epoch, late_effect__isnull=True
    )
    if not result.success or not failed.update(late_effect=late_effect):
        return False
    keep_provenance(call, result)
    summary, reporter = (
        result.summary[:_LONGEST_SUMMARY],
        "the agent" if tx.run.origin == Origin.ASK else "its worker",
    )
    why = f"Marked as not done, but {reporter} says it happened: {summary}"
    if again:
        why += f"\nThe same was requested again, so it probably happened twice. See call {', '.join(again)}."
    card = show_unknown_card(tx, call, UnknownOutcome("This happened after all", why))
    tx.publish(LateEffect(str(call.pk), str(card.pk), summary, why, again))
    tx.audit(
        "gadget",
        "late_effect",
        f"tool_call:{call.pk}",
        tool=call.tool,
        summary=summary,
        done_again_by=again,
    )
    return True


def _find_repeats(call: ToolCall) -> list[str]:
    """List the ids of later identical calls of the run that may have happened."""
    same = ToolCall.objects.filter(
        run_id=call.run_id, signature=call.signature, pk__gt=call.pk, attempts__gt=0
    )
    may_have_happened = (CallStatus.EXECUTING, CallStatus.OUTCOME_UNKNOWN, CallStatus.SUCCEEDED)
    ids = same.filter(status__in=may_have_happened).order_by("pk").values_list("pk", flat=True)
    return [str(pk) for pk in ids]


def has_happened_since(card: Approval) -> bool:
    """Return True if a late report after the card's creation said that an identical call of the run
    happened."""
    reports = Approval.objects.filter(
        run_id=card.run_id, kind=ApprovalKind.UNKNOWN, requested_at__gt=card.requested_at
    )
    equal = reports.filter(
        tool_call__signature=card.tool_call.signature, tool_call__late_effect__isnull=False
    )
    return equal.exclude(tool_call=card.tool_call_id).exists()
