"""Error codes and errors of tool calls, and their text for the model."""

from enum import StrEnum


class ErrorCode(StrEnum):
    """Error codes shared by tools, the executor and the gate."""

    MISSING_PARAMETER = "MISSING_PARAMETER"
    INVALID_PARAMETER = "INVALID_PARAMETER"
    NOT_FOUND = "NOT_FOUND"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    """The external service refused the request."""
    OPERATION_FAILED = "OPERATION_FAILED"
    OPERATION_NOT_ALLOWED = "OPERATION_NOT_ALLOWED"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    RATE_LIMITED = "RATE_LIMITED"
    """Gadget's own rate limit was reached."""
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    INVALID_CRON_SPEC = "INVALID_CRON_SPEC"
    INVALID_OPERATION = "INVALID_OPERATION"
    NOTHING_TO_DO = "NOTHING_TO_DO"
    """The effect that the call wants already exists."""
    TIMEOUT = "TIMEOUT"
    INVALID_TOOL_ARGUMENTS = "INVALID_TOOL_ARGUMENTS"
    """The arguments are not JSON, or not an object."""
    SUBAGENT_FAILED = "SUBAGENT_FAILED"
    TOOL_EXECUTION_FAILED = "TOOL_EXECUTION_FAILED"
    """The tool raised an unexpected exception; its text stays in the log."""
    UNAUTHORIZED = "UNAUTHORIZED"
    """The external service rejected the credentials."""
    FORBIDDEN = "FORBIDDEN"
    RATE_LIMIT_EXCEEDED = "RATE_LIMIT_EXCEEDED"
    """The external service's rate limit was reached."""
    NETWORK_ERROR = "NETWORK_ERROR"
    SECURITY_VIOLATION = "SECURITY_VIOLATION"
    TOOL_NOT_FOUND = "TOOL_NOT_FOUND"
    NOT_PERMITTED = "NOT_PERMITTED"
    MISSING_PARAM = "MISSING_PARAM"
    """The gate's code for a missing required parameter; the model sees MISSING_PARAMETER."""
    TOOL_DISABLED = "TOOL_DISABLED"
    APPROVAL_DENIED = "APPROVAL_DENIED"
    APPROVAL_EXPIRED = "APPROVAL_EXPIRED"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    WORKER_LOST = "WORKER_LOST"


INDEFINITE_CODES = frozenset(
    {
        ErrorCode.TIMEOUT,
        ErrorCode.NETWORK_ERROR,
        ErrorCode.TOOL_EXECUTION_FAILED,
        ErrorCode.OUTCOME_UNKNOWN,
    }
)
"""Codes after which the effect may or may not have happened, unless `attempted` is False."""

REPEATABLE_CODES = frozenset(
    {
        ErrorCode.TIMEOUT,
        ErrorCode.NETWORK_ERROR,
        ErrorCode.RATE_LIMITED,
        ErrorCode.RATE_LIMIT_EXCEEDED,
        ErrorCode.WORKER_LOST,
    }
)
"""Codes after which the model may request the same call again."""


_PARTS = ("fact", "words", "parameter", "expected", "example", "recovery_hint")


class ToolError(Exception):
    """A failure whose text is shown to the model; the text of any other exception stays hidden.

    Args:
        code: one of `ErrorCode`.
        message: one sentence that quotes the value and says what is wrong.
        parameter, expected, example, recovery_hint: lines of the formatted text; empty ones are
            left out.
        attempted: False promises that the effect never began, so that a failed write did not change
            anything.
        words: the other system's own words, unverified; `message` then ends with them.

    Attributes:
        fact: the message without `words`.
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
        words: str = "",
    ) -> None:
        self.fact = fact = _write(message)
        self.words = said = _write(words)
        self.message = f"{fact.removesuffix('.')}: {said.removesuffix('.')}." if said else fact
        super().__init__(self.message)
        self.code = ErrorCode(code)
        self.parameter = _write(parameter)
        self.expected = _write(expected)
        self.example = _write(example)
        self.recovery_hint = _write(recovery_hint)
        self.attempted = attempted

    @property
    def is_definite(self) -> bool:
        """True if the effect certainly did not happen, or did not complete."""
        return not self.attempted or self.code not in INDEFINITE_CODES


def settle_error(error: ToolError) -> ToolError:
    """Return the error if its fields have the declared types, else a copy with fields of these
    types."""
    code, attempted = getattr(error, "code", None), getattr(error, "attempted", None)
    parts = [getattr(error, name, None) for name in _PARTS]
    shown = [*parts, getattr(error, "message", None)]
    if (
        isinstance(code, ErrorCode)
        and isinstance(attempted, bool)
        and all(type(part) is str for part in shown)
    ):
        return error
    known = code if isinstance(code, ErrorCode) else ErrorCode.TOOL_EXECUTION_FAILED
    fact, *details = map(_describe, parts)
    return ToolError(
        known, fact, **dict(zip(_PARTS[1:], details, strict=True)), attempted=attempted is not False
    )


def _write(part: object) -> str:
    """Return a part of an error as text; None becomes an empty string."""
    if part is None:
        return ""
    return str.__str__(part) if isinstance(part, str) else str(part)


def _describe(part: object) -> str:
    """Return a part as text, without running the value's own code."""
    if part is None:
        return ""
    return str.__str__(part) if isinstance(part, str) else f"a value of type {type(part).__name__}"


def format_error(error: ToolError) -> str:
    """Format the error for the model: `TOOL ERROR: NOT_FOUND`, the message, one line per detail."""
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
