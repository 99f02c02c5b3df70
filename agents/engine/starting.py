"""How a call starts: its row, its line in the panel, and the time that it has."""

from datetime import timedelta

from agents.engine.connected import toolbox_of
from agents.events import Recording, brief_params
from agents.models import CallStatus, EventType, ToolCall
from tools.contract import Tool, ToolError
from tools.toolbox.executor import Progress
from tools.toolbox.isolation import isolated


def set_executing(record: Recording, call: ToolCall) -> None:
    """Write on the call, not yet in the database, that it executes from now on."""
    call.status = CallStatus.EXECUTING
    call.exec_epoch = record.run.lease_epoch
    call.attempts += 1
    call.started_at = record.now
    call.deadline_at = record.now + timedelta(seconds=timeout_of(call))


def publish_start(record: Recording, call: ToolCall) -> None:
    """The panel's line for a call that starts."""
    tool = tool_of(call)
    record.publish(
        EventType.TOOL_START,
        call_id=str(call.pk),
        tool=call.tool,
        display_name=tool.title if tool else call.tool,
        level=call.level,
        **brief_params(call.params),
        **({"parent_call_id": str(call.parent_call_id)} if call.parent_call_id else {}),
        summary=_running_summary(tool, call),
        pass_number=call.pass_number,
    )


def _running_summary(tool: Tool | None, call: ToolCall) -> str:
    if tool is None:
        return call.tool
    try:
        return isolated(tool, "running_summary", lambda: tool.running_summary(tool.load_params(call.params)))
    except ToolError:
        return tool.title


def publish_progress(record: Recording, call: ToolCall, report: Progress) -> None:
    """The panel's line for how far a call has come."""
    record.publish(
        EventType.TOOL_PROGRESS, call_id=str(call.pk), fraction=round(report.fraction, 3), text=report.text[:500]
    )


def tool_of(call: ToolCall) -> Tool | None:
    """The tool in the version that was judged; None if it is not installed any more."""
    return toolbox_of(call.organization_id).get_tool(f"{call.tool}@{call.version}")


def timeout_of(call: ToolCall) -> float:
    """Seconds that the call may take."""
    toolbox, tool = toolbox_of(call.organization_id), tool_of(call)
    return toolbox.timeout_of(tool) if tool else toolbox.limits.timeout_s
