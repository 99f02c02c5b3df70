"""Add the organization and the correlation id to each log line that this thread or task writes."""

from collections.abc import Iterator
from contextlib import contextmanager

from structlog.contextvars import (
    bind_contextvars,
    clear_contextvars,
    get_contextvars,
    unbind_contextvars,
)

from tools.contract.correlation import get_correlation_id, set_correlation_id

_ORGANIZATION = "organization"
_CORRELATION = "correlation_id"


def log_for_organization(organization_id: int) -> None:
    """Add the organization to the log lines that follow, so that its secrets are redacted in these
    lines."""
    bind_contextvars(**{_ORGANIZATION: organization_id})


def log_for_nobody() -> None:
    """Forget the organization and the correlation id before other work begins in the same
    thread."""
    clear_contextvars()
    set_correlation_id("")


def correlate(correlation_id: str) -> None:
    """Add the id of the request or run to log lines, and to requests to tools and models. An empty
    text removes the id."""
    set_correlation_id(correlation_id)
    if correlation_id:
        bind_contextvars(**{_CORRELATION: correlation_id})
    else:
        unbind_contextvars(_CORRELATION)


@contextmanager
def restoring_correlation() -> Iterator[None]:
    """Restore the correlation id after the block, which may set a different one."""
    before = get_correlation_id()
    try:
        yield
    finally:
        correlate(before)


def get_logged_organization() -> int | None:
    """Return the id of the organization in the current log context; None if it is unknown."""
    found: int | None = get_contextvars().get(_ORGANIZATION)
    return found
