"""The correlation id of the current work: from the request through the run to every request that
leaves Gadget."""

import re
import uuid
from contextvars import ContextVar

CORRELATION_HEADER = "X-Request-ID"
META_KEY = f"gadget/{CORRELATION_HEADER}"
"""The id's key in the `_meta` of a call of an MCP server, because a local program gets no
headers."""
OWN_PREFIX = "run-"
"""The beginning of the ids of runs that no request has started; no request may bring one."""

_ACCEPTED = re.compile(rf"(?!{OWN_PREFIX})[A-Za-z0-9._-]{{1,64}}")
_current: ContextVar[str] = ContextVar("correlation_id", default="")


def get_correlation_id() -> str:
    """Return the id of this thread's or task's work; empty if it works for no request and no
    run."""
    return _current.get()


def set_correlation_id(value: str) -> None:
    """Set the id for this thread or task, and for those that it starts."""
    _current.set(value)


def build_correlation_headers() -> list[tuple[bytes, bytes]]:
    """Return the header with the current id for a request to another system; none without an id."""
    current = _current.get()
    return [(CORRELATION_HEADER.encode(), current.encode())] if current else []


def build_correlation_meta() -> dict[str, str]:
    """Return the current id for the `_meta` of a call; empty without an id."""
    current = _current.get()
    return {META_KEY: current} if current else {}


def choose_correlation_id(sent: str) -> str:
    """Return the id that a client sent, or a new one if that is missing, too long or not a plain
    word."""
    return sent if _ACCEPTED.fullmatch(sent) else uuid.uuid4().hex
