"""The facts: everything that Gadget knows stands in these rows."""

from .approval import Approval, ApprovalKind, ApprovalStatus
from .audit import AuditEntry, AuditHead
from .credential import Credential
from .employee import Employee, Grant, ModelProvider, ProviderKind
from .event import Event, EventType
from .figures import EmployeeFigures, EmployeeUse, FiguresHead, ToolFigures, TotalFigures, TotalUse
from .installation import Installation, WriteProbe
from .invitation import Invitation, PasswordReset
from .organization import ApiToken, Membership, Organization, Role
from .run import ENDED, PARKED, ExitReason, Message, Origin, Pass, Run, RunStatus
from .tool_call import NOT_STARTED, TERMINAL_CALLS, CallStatus, ToolCall
from .tool_rule import ToolRule

__all__ = [
    "ENDED",
    "NOT_STARTED",
    "PARKED",
    "TERMINAL_CALLS",
    "ApiToken",
    "Approval",
    "ApprovalKind",
    "ApprovalStatus",
    "AuditEntry",
    "AuditHead",
    "CallStatus",
    "Credential",
    "Employee",
    "EmployeeFigures",
    "EmployeeUse",
    "Event",
    "EventType",
    "ExitReason",
    "FiguresHead",
    "Grant",
    "Installation",
    "Invitation",
    "Membership",
    "Message",
    "ModelProvider",
    "Organization",
    "Origin",
    "Pass",
    "PasswordReset",
    "ProviderKind",
    "Role",
    "Run",
    "RunStatus",
    "ToolCall",
    "ToolFigures",
    "ToolRule",
    "TotalFigures",
    "TotalUse",
    "WriteProbe",
]
