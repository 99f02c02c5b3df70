"""Errors of outgoing requests, without paths, queries or headers, because these may be secret."""

from tools.contract import ErrorCode, ToolError


def security_violation(message: str, hint: str = "Use the address of a public host.") -> ToolError:
    """Build a SECURITY_VIOLATION error for a request that was not sent."""
    return ToolError(ErrorCode.SECURITY_VIOLATION, message, recovery_hint=hint, attempted=False)


def invalid_address(message: str) -> ToolError:
    """Build an INVALID_PARAMETER error for a request that was not sent."""
    return ToolError(
        ErrorCode.INVALID_PARAMETER,
        message,
        expected="an address such as https://example.com/page",
        recovery_hint="Correct the address and try again.",
        attempted=False,
    )


def network_error(message: str, *, attempted: bool = False) -> ToolError:
    """Build a NETWORK_ERROR; `attempted` is False if the request was not sent."""
    return ToolError(
        ErrorCode.NETWORK_ERROR,
        message,
        recovery_hint="Check the address, or try again later.",
        attempted=attempted,
    )


def timeout_error(host: str, seconds: float, *, attempted: bool = False) -> ToolError:
    """Build a TIMEOUT error; `attempted` is False if the request was not sent."""
    return ToolError(
        ErrorCode.TIMEOUT,
        f"{host} did not send a complete response within {seconds:g} s.",
        recovery_hint="Try again later.",
        attempted=attempted,
    )


def response_too_large(host: str, what: str, most_bytes: int) -> ToolError:
    """Build a LIMIT_EXCEEDED error for a request that was sent."""
    return ToolError(
        ErrorCode.LIMIT_EXCEEDED,
        f"The {what} of {host} is larger than {most_bytes:,} bytes.",
        recovery_hint="Ask for less.",
    )
