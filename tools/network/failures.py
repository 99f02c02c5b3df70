"""What can go wrong on the way out, in words that hold no path, no query and no header: these may be secrets."""

from tools.contract import ErrorCode, ToolError


def refused(message: str, hint: str = "Use the address of a public host.") -> ToolError:
    """SECURITY_VIOLATION; nothing was sent."""
    return ToolError(ErrorCode.SECURITY_VIOLATION, message, recovery_hint=hint, attempted=False)


def not_an_address(message: str) -> ToolError:
    """INVALID_PARAMETER; nothing was sent."""
    return ToolError(
        ErrorCode.INVALID_PARAMETER,
        message,
        expected="an address such as https://example.com/page",
        recovery_hint="Correct the address and try again.",
        attempted=False,
    )


def unreachable(message: str, *, attempted: bool = False) -> ToolError:
    """NETWORK_ERROR."""
    return ToolError(
        ErrorCode.NETWORK_ERROR, message, recovery_hint="Check the address, or try again later.", attempted=attempted
    )


def too_slow(host: str, seconds: float, *, attempted: bool = False) -> ToolError:
    """TIMEOUT."""
    return ToolError(
        ErrorCode.TIMEOUT,
        f"{host} gave no complete answer within {seconds:g} s.",
        recovery_hint="Try again later.",
        attempted=attempted,
    )


def too_large(host: str, what: str, most_bytes: int) -> ToolError:
    """LIMIT_EXCEEDED; the request was sent."""
    return ToolError(
        ErrorCode.LIMIT_EXCEEDED,
        f"The {what} of {host} is larger than {most_bytes:,} bytes.",
        recovery_hint="Ask for less.",
    )
