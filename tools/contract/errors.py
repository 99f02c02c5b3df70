"""What can go wrong with a call, in the words that the model is told."""

from enum import StrEnum


class ErrorCode(StrEnum):
    """One set of codes for tools, the executor and the gate."""

    MISSING_PARAMETER = "MISSING_PARAMETER"
    INVALID_PARAMETER = "INVALID_PARAMETER"
    NOT_FOUND = "NOT_FOUND"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    """The outside refused us."""
    OPERATION_FAILED = "OPERATION_FAILED"
    OPERATION_NOT_ALLOWED = "OPERATION_NOT_ALLOWED"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    RATE_LIMITED = "RATE_LIMITED"
    """Our own limit."""
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    INVALID_CRON_SPEC = "INVALID_CRON_SPEC"
    INVALID_OPERATION = "INVALID_OPERATION"
    TIMEOUT = "TIMEOUT"
    INVALID_TOOL_ARGUMENTS = "INVALID_TOOL_ARGUMENTS"
    """The arguments are not JSON, or not an object."""
    SUBAGENT_FAILED = "SUBAGENT_FAILED"
    TOOL_EXECUTION_FAILED = "TOOL_EXECUTION_FAILED"
    """The tool raised something of its own; the text stays in the log."""
    UNAUTHORIZED = "UNAUTHORIZED"
    """Our key is wrong."""
    FORBIDDEN = "FORBIDDEN"
    RATE_LIMIT_EXCEEDED = "RATE_LIMIT_EXCEEDED"
    """The outside's limit."""
    NETWORK_ERROR = "NETWORK_ERROR"
    SECURITY_VIOLATION = "SECURITY_VIOLATION"
    TOOL_NOT_FOUND = "TOOL_NOT_FOUND"
    NOT_PERMITTED = "NOT_PERMITTED"
    MISSING_PARAM = "MISSING_PARAM"
    """The gate's code for an absent required parameter."""
    TOOL_DISABLED = "TOOL_DISABLED"
    APPROVAL_DENIED = "APPROVAL_DENIED"
    APPROVAL_EXPIRED = "APPROVAL_EXPIRED"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    WORKER_LOST = "WORKER_LOST"


INDEFINITE_CODES = frozenset(
    {ErrorCode.TIMEOUT, ErrorCode.NETWORK_ERROR, ErrorCode.TOOL_EXECUTION_FAILED, ErrorCode.OUTCOME_UNKNOWN}
)
"""After these nobody can know whether the effect happened, unless the error says `attempted=False`."""

REPEATABLE_CODES = frozenset(
    {
        ErrorCode.TIMEOUT,
        ErrorCode.NETWORK_ERROR,
        ErrorCode.RATE_LIMITED,
        ErrorCode.RATE_LIMIT_EXCEEDED,
        ErrorCode.WORKER_LOST,
    }
)
"""A call that failed so may be asked for again."""


class ToolError(Exception):
    """A failure that the model is told about, word for word; everything else stays hidden.

    Args:
        code: one of `ErrorCode`.
        message: one sentence that quotes the value and says what is wrong.
        parameter, expected, example, recovery_hint: lines of the formatted text; left out when empty.
        attempted: False promises that the effect was never begun, so that a write may be reported as plainly failed.
    """

    def __init__(  # noqa: PLR0913 - one argument for each line of the text
        self,
        code: ErrorCode,
        message: str,
        *,
        parameter: str = "",
        expected: str = "",
        example: str = "",
        recovery_hint: str = "",
        attempted: bool = True,
    ) -> None:
        super().__init__(message)
        self.code = ErrorCode(code)
        self.message = message
        self.parameter = parameter
        self.expected = expected
        self.example = example
        self.recovery_hint = recovery_hint
        self.attempted = attempted

    @property
    def is_definite(self) -> bool:
        """True if it is certain that the effect did not happen, or did not happen whole."""
        return not self.attempted or self.code not in INDEFINITE_CODES


def format_error(error: ToolError) -> str:
    """The text that the model gets, e.g. `TOOL ERROR: NOT_FOUND`, the message, and one line for each detail."""
    code = ErrorCode.MISSING_PARAMETER if error.code is ErrorCode.MISSING_PARAM else error.code
    lines = [f"TOOL ERROR: {code}", error.message]
    details = {
        "PARAMETER": error.parameter,
        "EXPECTED": error.expected,
        "EXAMPLE": error.example,
        "RECOVERY HINT": error.recovery_hint,
    }
    lines += [f"{label}: {text}" for label, text in details.items() if text]
    return "\n".join(lines)
