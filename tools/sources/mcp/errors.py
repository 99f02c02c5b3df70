"""Errors of servers: their texts for the model, and whether the call may have taken effect."""

from collections.abc import Iterator

import httpx2
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, REQUEST_TIMEOUT

from tools.contract import ErrorCode, ToolError
from tools.sources.mcp.display_text import clean_line

MAX_REASON_LENGTH = 1_000

CLIENT_ERRORS = (
    ToolError,
    MCPError,
    ExceptionGroup,
    httpx2.HTTPError,
    httpx2.StreamError,
    OSError,
    ValueError,
    RuntimeError,
)
"""Errors that the protocol's client raises: its own, the connection's, and those of invalid answers."""

LOST_CODES = frozenset({CONNECTION_CLOSED, REQUEST_TIMEOUT, PARSE_ERROR, INVALID_REQUEST})
"""Codes that the client itself sets when no usable answer came; all others are the server's own."""

LOST_STATUSES = frozenset({301, 302, 303, 408})
"""Statuses besides 5xx that leave the outcome unknown: a redirect may follow a completed call, 408 a partial one."""

_BY_STATUS = {
    401: (ErrorCode.UNAUTHORIZED, "does not accept the credentials"),
    403: (ErrorCode.FORBIDDEN, "denies access with these credentials"),
    404: (ErrorCode.NOT_FOUND, "found nothing at this address"),
    405: (ErrorCode.OPERATION_FAILED, "does not support streamable HTTP at this address"),
    429: (ErrorCode.RATE_LIMIT_EXCEEDED, "has reached its limit of calls"),
}


class ConnectionLostError(Exception):
    """A call without a usable answer, so its outcome is unknown; `fault` says why, as part of a sentence."""

    def __init__(self, fault: str) -> None:
        super().__init__(fault)
        self.fault = fault


def find_cause(error: BaseException) -> BaseException:
    """Return one error of a group, preferably a ToolError, because its text is for people."""
    leaves = list(_flatten(error))
    return next((leaf for leaf in leaves if isinstance(leaf, ToolError)), leaves[0])


def translate_connect_error(title: str, error: BaseException, status: int, fault: str) -> ToolError:
    """Translate an error before the call was sent, so that nothing was attempted.

    Args:
        status: the status of the last HTTP response; 0 if there was none.
        fault: why the process cannot be used, as part of a sentence.
    """
    cause = find_cause(error)
    if isinstance(cause, ToolError):
        code, message, hint = cause.code, cause.message, cause.recovery_hint
        return ToolError(code, message, recovery_hint=hint, attempted=False)
    if fault:
        return source_error(f"{title} {fault} before the connection was ready.")
    if status >= 300:
        return _build_status_error(title, status, attempted=False)
    if isinstance(cause, TimeoutError) or _is_code(cause, REQUEST_TIMEOUT):
        return ToolError(ErrorCode.TIMEOUT, f"{title} did not answer in time.", attempted=False)
    if isinstance(cause, httpx2.HTTPError):
        return ToolError(ErrorCode.NETWORK_ERROR, f"{title} cannot be reached.", attempted=False)
    reason = _clean_reason(cause) if isinstance(cause, MCPError) else "its messages are not valid"
    return source_error(f"{title} and Gadget have no protocol version in common: {reason}.")


def source_error(message: str) -> ToolError:
    """Return an OPERATION_FAILED; nothing was attempted."""
    return ToolError(
        ErrorCode.OPERATION_FAILED,
        message,
        recovery_hint="Try again later, or ask an admin to check this source.",
        attempted=False,
    )


def translate_call_error(title: str, error: BaseException, status: int, fault: str) -> ToolError:
    """Translate an error after the call was sent; only the server's own answer proves that nothing was done.

    Raises:
        ConnectionLostError: no such answer came, and none will.
    """
    cause = find_cause(error)
    if isinstance(cause, ToolError):  # from the transport; a faulty answer says nothing about the effect
        code = ErrorCode.NETWORK_ERROR if cause.attempted else cause.code
        return ToolError(code, cause.message, recovery_hint=cause.recovery_hint, attempted=cause.attempted)
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
        return ToolError(ErrorCode.NETWORK_ERROR, f"{title} cannot be reached.", attempted=False)
    if status >= 500 or status in LOST_STATUSES:
        raise ConnectionLostError(f"failed with status {status}") from error
    if status >= 300:
        return _build_status_error(title, status, attempted=True)
    if isinstance(cause, MCPError) and cause.code == INTERNAL_ERROR:
        raise ConnectionLostError(f"had an internal error during the call: {_clean_reason(cause)}") from error
    if isinstance(cause, MCPError) and cause.code not in LOST_CODES:
        return ToolError(ErrorCode.OPERATION_FAILED, f"{title} refused the call: {_clean_reason(cause)}.")
    if isinstance(cause, MCPError | httpx2.HTTPError | httpx2.StreamError | OSError):
        raise ConnectionLostError(f"{fault or 'disconnected'} before it answered") from error
    return ToolError(ErrorCode.TOOL_EXECUTION_FAILED, f"{title} sent an invalid answer.")


def connection_lost_error(title: str, fault: str, has_side_effects: bool) -> ToolError:
    """Return a NETWORK_ERROR; the outcome of the call is unknown."""
    hint = "Check whether it was done before trying again." if has_side_effects else "Try again later."
    return ToolError(ErrorCode.NETWORK_ERROR, f"{title} {fault}.", recovery_hint=hint)


def _build_status_error(title: str, status: int, attempted: bool) -> ToolError:
    code, words = _BY_STATUS.get(status, (ErrorCode.OPERATION_FAILED, f"answered with status {status}"))
    if 300 <= status < 400:
        words = "redirects to another address, and redirects are not followed"
    hint = "An admin must check this source."
    return ToolError(code, f"{title} {words}.", recovery_hint=hint, attempted=attempted)


def _clean_reason(error: MCPError) -> str:
    return clean_line(error.message, MAX_REASON_LENGTH).removesuffix(".")


def _is_code(error: BaseException, code: int) -> bool:
    return isinstance(error, MCPError) and error.code == code


def _flatten(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _flatten(part)
    else:
        yield error
