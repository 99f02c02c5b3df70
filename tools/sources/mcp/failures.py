"""What can go wrong with a server, in words for the model; and whether the effect can have happened."""

from collections.abc import Iterator

import httpx2
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, REQUEST_TIMEOUT

from tools.contract import ErrorCode, ToolError

from .words import one_line

LONGEST_REASON = 1_000

EXPECTED = (
    ToolError,
    MCPError,
    ExceptionGroup,
    httpx2.HTTPError,
    httpx2.StreamError,
    OSError,
    ValueError,
    RuntimeError,
)
"""What the protocol's client raises: its own errors, the connection's, and those of answers that are not valid."""

LOST_CODES = frozenset({CONNECTION_CLOSED, REQUEST_TIMEOUT, PARSE_ERROR, INVALID_REQUEST})
"""The client itself says so when no usable answer came; everything else is the server's own answer."""

LOST_STATUSES = frozenset({301, 302, 303, 408})
"""Besides those from 500 on: the first three may mean "done, look there", and 408 may come in the middle of it."""

_BY_STATUS = {
    401: (ErrorCode.UNAUTHORIZED, "does not accept our credentials"),
    403: (ErrorCode.FORBIDDEN, "refuses us with our credentials"),
    404: (ErrorCode.NOT_FOUND, "has nothing at this address"),
    405: (ErrorCode.OPERATION_FAILED, "does not speak streamable HTTP at this address"),
    429: (ErrorCode.RATE_LIMIT_EXCEEDED, "wants fewer calls"),
}


class LostError(Exception):
    """No answer came that says what became of the call; `fault` says why, as the rest of a sentence."""

    def __init__(self, fault: str) -> None:
        super().__init__(fault)
        self.fault = fault


def cause_of(error: BaseException) -> BaseException:
    """The one failure behind a group of them; a ToolError is preferred, because it has words."""
    leaves = list(_leaves(error))
    return next((leaf for leaf in leaves if isinstance(leaf, ToolError)), leaves[0])


def not_connected(title: str, error: BaseException, status: int, fault: str) -> ToolError:
    """Nothing was asked of any tool yet, so nothing can have happened.

    Args:
        status: of the last HTTP answer, 0 if there was none.
        fault: why the process cannot be spoken to, as part of a sentence.
    """
    cause = cause_of(error)
    if isinstance(cause, ToolError):
        code, message, hint = cause.code, cause.message, cause.recovery_hint
        return ToolError(code, message, recovery_hint=hint, attempted=False)
    if fault:
        return failed(f"{title} {fault} before it could be spoken to.")
    if status >= 300:
        return _by_status(title, status, attempted=False)
    if isinstance(cause, TimeoutError) or _is_code(cause, REQUEST_TIMEOUT):
        return ToolError(ErrorCode.TIMEOUT, f"{title} did not answer in time.", attempted=False)
    if isinstance(cause, httpx2.HTTPError):
        return ToolError(ErrorCode.NETWORK_ERROR, f"{title} cannot be reached.", attempted=False)
    reason = _reason(cause) if isinstance(cause, MCPError) else "it says things that are not valid"
    return failed(f"{title} and Gadget found no common protocol: {reason}.")


def failed(message: str) -> ToolError:
    """OPERATION_FAILED, and nothing was attempted."""
    return ToolError(
        ErrorCode.OPERATION_FAILED,
        message,
        recovery_hint="Try again later, or tell an admin to look at this source.",
        attempted=False,
    )


def call_failed(title: str, error: BaseException, status: int, fault: str) -> ToolError:
    """The call was sent, so only the server's own answer says for certain that nothing came of it.

    Raises:
        LostError: no answer came that says so, and none will.
    """
    cause = cause_of(error)
    if isinstance(cause, ToolError):  # of the door; what is wrong with an answer says nothing about the effect
        code = ErrorCode.NETWORK_ERROR if cause.attempted else cause.code
        return ToolError(code, cause.message, recovery_hint=cause.recovery_hint, attempted=cause.attempted)
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
        return ToolError(ErrorCode.NETWORK_ERROR, f"{title} cannot be reached.", attempted=False)
    if status >= 500 or status in LOST_STATUSES:
        raise LostError(f"failed with status {status}") from error
    if status >= 300:
        return _by_status(title, status, attempted=True)
    if isinstance(cause, MCPError) and cause.code == INTERNAL_ERROR:
        raise LostError(f"failed inside, in the middle of the call: {_reason(cause)}") from error
    if isinstance(cause, MCPError) and cause.code not in LOST_CODES:
        return ToolError(ErrorCode.OPERATION_FAILED, f"{title} refused the call: {_reason(cause)}.")
    if isinstance(cause, MCPError | httpx2.HTTPError | httpx2.StreamError | OSError):
        raise LostError(f"{fault or 'broke off'} before it answered") from error
    return ToolError(ErrorCode.TOOL_EXECUTION_FAILED, f"{title} answered, but not as the protocol says.")


def lost(title: str, fault: str, has_side_effects: bool) -> ToolError:
    """NETWORK_ERROR: nobody can know what came of the call."""
    hint = "Look whether it was done before asking for it again." if has_side_effects else "Try again later."
    return ToolError(ErrorCode.NETWORK_ERROR, f"{title} {fault}.", recovery_hint=hint)


def _by_status(title: str, status: int, attempted: bool) -> ToolError:
    code, words = _BY_STATUS.get(status, (ErrorCode.OPERATION_FAILED, f"answered with status {status}"))
    if 300 <= status < 400:
        words = "redirects to another address, which is not followed"
    hint = "An admin has to look at this source."
    return ToolError(code, f"{title} {words}.", recovery_hint=hint, attempted=attempted)


def _reason(error: MCPError) -> str:
    return one_line(error.message, LONGEST_REASON).removesuffix(".")


def _is_code(error: BaseException, code: int) -> bool:
    return isinstance(error, MCPError) and error.code == code


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error
