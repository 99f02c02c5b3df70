"""A run with its messages, passes, tool calls and events."""

from .event import Event, EventType
from .run import ENDED, PARKED, ExitReason, Message, Origin, Pass, Run, RunStatus
from .tool_call import NOT_STARTED, TERMINAL_CALLS, CallStatus, ToolCall

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
    "Pass",
    "Run",
    "RunStatus",
    "ToolCall",
]
