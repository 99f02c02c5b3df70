"""A run with its messages, passes, tool calls and events."""

from agents.runs.models.event import Event, EventType
from agents.runs.models.outside_value import OutsideValue
from agents.runs.models.run import ENDED, PARKED, ExitReason, Message, Origin, Outcome, Pass, Run, RunStatus
from agents.runs.models.tool_call import NOT_STARTED, TERMINAL_CALLS, CallStatus, ToolCall

__all__ = [
    "ENDED",
    "NOT_STARTED",
    "PARKED",
    "TERMINAL_CALLS",
    "CallStatus",
    "Event",
    "EventType",
    "ExitReason",
    "Message",
    "Origin",
    "Outcome",
    "OutsideValue",
    "Pass",
    "Run",
    "RunStatus",
    "ToolCall",
]
