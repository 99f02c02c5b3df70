"""What is done when a worker was lost: another one goes on, reads run again, nobody knows about writes."""

from agents.engine.connected import toolbox_of
from agents.engine.outcomes import end_unexecuted, lose_outcome, publish_result
from agents.engine.parking import MACHINE, requeue
from agents.engine.timing import ATTEMPTS
from agents.events import Recording
from agents.models import Approval, CallStatus, EventType, ToolCall
from tools.contract import ErrorCode, Level, ToolError, ToolResult


def take_over(record: Recording) -> None:
    """The worker of this run is lost: put it into the queue for another one, and say what that one will find."""
    left = ToolCall.objects.filter(run_id=record.run.pk, status=CallStatus.EXECUTING).order_by("pk")
    again, unknown = [], []
    for call in left:
        if _may_have_happened(call):
            unknown.append(_title_of(call))
        elif call.attempts < ATTEMPTS:
            again.append(_title_of(call))
    told = ["The worker was lost; another one goes on."]
    if again:
        told.append(f"Started again: {', '.join(again)}.")
    if unknown:
        told.append(f"Perhaps done, perhaps not, and never repeated by itself: {', '.join(unknown)}.")
    requeue(record)
    record.publish(EventType.RUN_RESUMED, by=MACHINE, reason=" ".join(told))


def _title_of(call: ToolCall) -> str:
    tool = toolbox_of(call.organization_id).get_tool(call.tool)
    return tool.title if tool else call.tool


def lose_worker(record: Recording, call: ToolCall, may_repeat: bool) -> None:
    """Settle a call that was executing when its worker was lost: reads run again, writes are unknown."""
    if _may_have_happened(call):
        lose_outcome(record, call, "The worker was lost while this was executing.")
        return
    same = ToolCall.objects.filter(pk=call.pk, status=CallStatus.EXECUTING)
    if may_repeat and call.attempts < ATTEMPTS and not _is_inner(call):
        same.update(status=CallStatus.READY, exec_epoch=None, deadline_at=None)
        return
    error = ToolError(ErrorCode.WORKER_LOST, "The worker was lost while this was executing.")
    if end_unexecuted(record, call, CallStatus.FAILED, error):
        publish_result(record, call, ToolResult.failed(error), 0)


def _may_have_happened(call: ToolCall) -> bool:
    """Whether the effect of a call that was executing when its worker was lost may be there: it cannot be repeated."""
    return Level(call.level).has_side_effects or Approval.objects.filter(tool_call=call).exists()


def _is_inner(call: ToolCall) -> bool:
    """Whether another tool made the call, which then makes it anew; a step of a recipe is the engine's."""
    return call.parent_call is not None and call.parent_call.status != CallStatus.SUSPENDED


def end_orphans(record: Recording) -> None:
    """End inner calls that still execute though the call that asked for them was given up: nobody waits for them."""
    error = ToolError(ErrorCode.TIMEOUT, "The call that asked for this was given up.")
    executing = ToolCall.objects.filter(run_id=record.run.pk, status=CallStatus.EXECUTING, parent_call__isnull=False)
    orphans = executing.exclude(parent_call__status__in=(CallStatus.EXECUTING, CallStatus.SUSPENDED)).order_by("pk")
    while call := orphans.first():
        if not end_unexecuted(record, call, CallStatus.FAILED, error):
            return
        publish_result(record, call, ToolResult.failed(error), 0)
