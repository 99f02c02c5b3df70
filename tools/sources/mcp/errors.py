"""Errors of servers: their texts for the model, and whether the call may have taken effect."""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
    UNSUPPORTED_PROTOCOL_VERSION,
)

from tools.contract import ErrorCode, ToolError
from tools.sources.mcp.display_text import clean_line
from tools.sources.mcp.raw_responses import ServerError

MAX_REASON_LENGTH = 1_000
_CHECK_HINT = "Check whether it was done before trying again."

CLIENT_ERRORS = (
    ToolError,
    MCPError,
    ServerError,
    ExceptionGroup,
    httpx2.HTTPError,
    httpx2.StreamError,
    OSError,
    ValueError,
    RuntimeError,
)
"""Errors that the protocol's client raises: its own, the connection's, and invalid responses."""

REFUSALS = frozenset({METHOD_NOT_FOUND, INVALID_PARAMS})
"""Codes of error objects that mean the tool never ran; other codes leave a write's outcome unknown.
"""

LOST_STATUSES = frozenset({301, 302, 303, 408})
"""Statuses besides 5xx that leave the outcome unknown: a redirect may follow a completed call, and
408 a partial call."""

_BY_STATUS = {
    401: (ErrorCode.UNAUTHORIZED, "does not accept the credentials"),
    403: (ErrorCode.FORBIDDEN, "denies access with these credentials"),
    404: (ErrorCode.NOT_FOUND, "found nothing at this address"),
    405: (ErrorCode.OPERATION_FAILED, "does not support streamable HTTP at this address"),
    429: (ErrorCode.RATE_LIMIT_EXCEEDED, "has reached its limit of calls"),
}


@dataclass(frozen=True)
class Evidence:
    """Facts about a failed exchange.

    Attributes:
        status: the status of the HTTP response in question; 0 if there was none.
        words: the text of that response, if it is an error that people can read.
        fault: why the process cannot be used, as part of a sentence.
    """

    status: int = 0
    words: str = ""
    fault: str = ""


class ConnectionLostError(Exception):
    """A call without a usable response, so its outcome is unknown.

    `fault` gives the reason, as part of a sentence; `words` is the server's own text.
    """

    def __init__(self, fault: str, words: str = "") -> None:
        super().__init__(fault)
        self.fault = fault
        self.words = words


def find_cause(error: BaseException) -> BaseException:
    """Return one error of a group, preferably a ToolError, because it has a text for people."""
    leaves = list(_flatten(error))
    return next((leaf for leaf in leaves if isinstance(leaf, ToolError)), leaves[0])


def translate_connect_error(title: str, error: BaseException, evidence: Evidence) -> ToolError:
    """Translate an error that happened before the call was sent; the call was not attempted.

    Args:
        evidence: facts about the last response.
    """
    cause = find_cause(error)
    if isinstance(cause, ToolError):
        code, fact, hint = cause.code, cause.fact, cause.recovery_hint
        return ToolError(code, fact, recovery_hint=hint, attempted=False, words=cause.words)
    if evidence.fault:
        return source_error(f"{title} {evidence.fault} before the connection was ready.")
    if evidence.status >= 300:
        return _build_status_error(title, evidence, attempted=False)
    if isinstance(cause, TimeoutError) or _is_code(cause, REQUEST_TIMEOUT):
        return ToolError(ErrorCode.TIMEOUT, f"{title} did not respond in time.", attempted=False)
    if isinstance(cause, httpx2.HTTPError):
        return ToolError(ErrorCode.NETWORK_ERROR, f"{title} cannot be reached.", attempted=False)
    return _build_greeting_error(title, cause, evidence)


def _build_greeting_error(title: str, cause: BaseException, evidence: Evidence) -> ToolError:
    if _is_code(cause, UNSUPPORTED_PROTOCOL_VERSION):
        return source_error(
            f"{title} and Gadget have no protocol version in common.", _get_words(cause)
        )
    if isinstance(cause, MCPError):
        return source_error(
            f"{title} did not accept the connection.", evidence.words or _get_words(cause)
        )
    return source_error(f"{title} does not follow the protocol: its greeting is not valid.")


def source_error(message: str, words: str = "") -> ToolError:
    """Build an OPERATION_FAILED error for a call that was not attempted."""
    return ToolError(
        ErrorCode.OPERATION_FAILED,
        message,
        recovery_hint="Try again later, or ask an admin to check this source.",
        attempted=False,
        words=words,
    )


def translate_call_error(title: str, error: BaseException, evidence: Evidence) -> ToolError:
    """Translate an error of a call. Only a refusal, or an error before the call was sent, proves
    that the call did not take effect.

    Args:
        evidence: facts about the response to the call; responses to other messages are not evidence
            about it.

    Returns:
        The error for the model: OUTCOME_UNKNOWN if the server sent an error that is not a refusal.

    Raises:
        ConnectionLostError: a usable response did not arrive and never will.
    """
    cause, status = find_cause(error), evidence.status
    # Our transport found a fault. If the call was sent, its effect is unknown: NETWORK_ERROR.
    if isinstance(cause, ToolError):
        code = ErrorCode.NETWORK_ERROR if cause.attempted else cause.code
        return ToolError(
            code, cause.message, recovery_hint=cause.recovery_hint, attempted=cause.attempted
        )
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
        return ToolError(ErrorCode.NETWORK_ERROR, f"{title} cannot be reached.", attempted=False)
    if isinstance(cause, ServerError):
        return _build_responded_error(title, cause, status)
    if status >= 500 or status in LOST_STATUSES:
        raise ConnectionLostError(f"failed with status {status}", evidence.words) from error
    if status >= 300:
        return _build_status_error(title, evidence, attempted=True)
    if evidence.words:
        raise ConnectionLostError(
            "sent a response that does not follow the protocol", evidence.words
        ) from error
    if isinstance(cause, MCPError | httpx2.HTTPError | httpx2.StreamError | OSError):
        raise ConnectionLostError(
            f"{evidence.fault or 'disconnected'} before it responded"
        ) from error
    return ToolError(ErrorCode.TOOL_EXECUTION_FAILED, f"{title} sent an invalid response.")


def _build_responded_error(title: str, error: ServerError, status: int) -> ToolError:
    """Build the error for an error object from the server; some codes and statuses prove that the
    tool never ran."""
    words = clean_words(error.words)
    if status in _BY_STATUS:
        return _build_status_error(title, Evidence(status, words), attempted=True)
    if error.code in REFUSALS:
        return ToolError(ErrorCode.OPERATION_FAILED, f"{title} refused the call.", words=words)
    named = f"the error {error.code}" if error.code else "an error"
    fact = f"{title} responded with {named}, which does not say whether the call took effect."
    return ToolError(ErrorCode.OUTCOME_UNKNOWN, fact, recovery_hint=_CHECK_HINT, words=words)


def connection_lost_error(
    title: str, lost: ConnectionLostError, has_side_effects: bool
) -> ToolError:
    """Build a NETWORK_ERROR; the outcome of the call is unknown."""
    hint = _CHECK_HINT if has_side_effects else "Try again later."
    return ToolError(
        ErrorCode.NETWORK_ERROR, f"{title} {lost.fault}.", recovery_hint=hint, words=lost.words
    )


def build_read_error(title: str, error: ToolError) -> ToolError:
    """Build the error of a read that failed on the server, without advice to check its effect."""
    return ToolError(
        ErrorCode.OPERATION_FAILED, f"{title} responded with an error.", words=error.words
    )


def clean_words(text: str) -> str:
    """Clean a server's words for people: one line of limited length."""
    return clean_line(text, MAX_REASON_LENGTH)


def _build_status_error(title: str, evidence: Evidence, attempted: bool) -> ToolError:
    status = evidence.status
    code, words = _BY_STATUS.get(
        status, (ErrorCode.OPERATION_FAILED, f"responded with status {status}")
    )
    if 300 <= status < 400:
        words = "redirects to another address, and redirects are not followed"
    hint = "An admin must check this source."
    return ToolError(
        code, f"{title} {words}.", recovery_hint=hint, attempted=attempted, words=evidence.words
    )


def _get_words(error: BaseException) -> str:
    return clean_words(error.message) if isinstance(error, MCPError) else ""


def _is_code(error: BaseException, code: int) -> bool:
    return isinstance(error, MCPError) and error.code == code


def _flatten(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _flatten(part)
    else:
        yield error
