"""Name the organization in each line of the log that this thread or task writes from now on."""

from structlog.contextvars import bind_contextvars, clear_contextvars, get_contextvars

_ORGANIZATION = "organization"


def log_for_organization(organization_id: int) -> None:
    """Name the organization whose request or run the lines are about, so that they are redacted of its secrets."""
    bind_contextvars(**{_ORGANIZATION: organization_id})


def log_for_nobody() -> None:
    """Forget the organization, before work for another one begins in the same thread."""
    clear_contextvars()


def get_logged_organization() -> int | None:
    """Return the organization that the lines are about; None if it is unknown."""
    found: int | None = get_contextvars().get(_ORGANIZATION)
    return found
