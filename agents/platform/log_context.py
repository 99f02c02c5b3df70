"""Name the organization and the request in each line of the log that this thread or task writes
from now on."""

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
    """Name the organization whose request or run the lines are about, so that its secrets are
    redacted."""
    bind_contextvars(**{_ORGANIZATION: organization_id})


def log_for_nobody() -> None:
    """Forget the organization, before work for another one begins in the same thread."""
    clear_contextvars()
    set_correlation_id("")


def correlate(correlation_id: str) -> None:
    """Name the request or run in the lines of the log, and in requests to tools and models."""
    set_correlation_id(correlation_id)
    if correlation_id:
        bind_contextvars(**{_CORRELATION: correlation_id})
    else:
        unbind_contextvars(_CORRELATION)


@contextmanager
def restoring_correlation() -> Iterator[None]:
    """Restore the correlation id at the end of the block, which may set another one."""
    before = get_correlation_id()
    try:
        yield
    finally:
        correlate(before)


def get_logged_organization() -> int | None:
    """Return the organization that the lines are about; None if it is unknown."""
    found: int | None = get_contextvars().get(_ORGANIZATION)
    return found
