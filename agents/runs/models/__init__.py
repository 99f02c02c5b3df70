"""The models of runs, with their messages, passes, tool calls, approvals and events."""

from agents.runs.models.approval import (
    APPROVED_STATES,
    IS_PENDING,
    Approval,
    ApprovalKind,
    ApprovalStatus,
    Vote,
    WithheldBulk,
    name_decider,
)
from agents.runs.models.event import Event, EventType
from agents.runs.models.outside_value import OutsideValue
from agents.runs.models.policy_snapshot import PolicySnapshot
from agents.runs.models.run import (
    ENDED,
    IS_UNFINISHED,
    PARKED,
    UNFINISHED,
    ExitReason,
    Message,
    Origin,
    Outcome,
    Pass,
    Run,
    RunStatus,
)
from agents.runs.models.tool_call import NOT_STARTED, TERMINAL_CALLS, CallStatus, ToolCall

__all__ = [
    "APPROVED_STATES",
    "ENDED",
    "IS_PENDING",
    "IS_UNFINISHED",
    "NOT_STARTED",
    "PARKED",
    "TERMINAL_CALLS",
    "UNFINISHED",
    "Approval",
    "ApprovalKind",
    "ApprovalStatus",
    "CallStatus",
    "Event",
    "EventType",
    "ExitReason",
    "Message",
    "Origin",
    "Outcome",
    "OutsideValue",
    "Pass",
    "PolicySnapshot",
    "Run",
    "RunStatus",
    "ToolCall",
    "Vote",
    "WithheldBulk",
    "name_decider",
]
