"""The correlation id, which links a request, its run and all requests that leave Gadget."""

import re
import uuid
from contextvars import ContextVar

CORRELATION_HEADER = "X-Request-ID"
META_KEY = f"gadget/{CORRELATION_HEADER}"
"""The key of the id in the `_meta` of an MCP call, which carries the id because a local program
does not receive headers."""
OWN_PREFIX = "run-"
"""The prefix of the ids of runs that were not started by a request; an id from a client must not
have it."""

_ACCEPTED = re.compile(rf"(?!{OWN_PREFIX})[A-Za-z0-9._-]{{1,64}}")
_current: ContextVar[str] = ContextVar("correlation_id", default="")


def get_correlation_id() -> str:
    """Return the id of this thread or task; empty if it does not work for a request or a run."""
    return _current.get()


def set_correlation_id(value: str) -> None:
    """Set the id for this thread or task, and for the work that it starts in a copy of
    its context."""
    _current.set(value)


def build_correlation_headers() -> list[tuple[bytes, bytes]]:
    """Return the current id as a header for a request to another system; empty if there is none."""
    current = _current.get()
    return [(CORRELATION_HEADER.encode(), current.encode())] if current else []


def build_correlation_meta() -> dict[str, str]:
    """Return the current id for the `_meta` of a call; empty if there is none."""
    current = _current.get()
    return {META_KEY: current} if current else {}


def choose_correlation_id(sent: str) -> str:
    """Return the client's id, or a new one if it is missing, not accepted or over 64 characters."""
    return sent if _ACCEPTED.fullmatch(sent) else uuid.uuid4().hex
