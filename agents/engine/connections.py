"""Whose database connection is whose: nobody keeps one while waiting for a model, a tool or another thread."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import InterfaceError, OperationalError, connection

_LOST = ("08", "57P", "25P03")


def let_go() -> None:
    """Give the connection back before a wait; a SQLite file stays open, because nobody waits for it."""
    if connection.vendor != "sqlite" and not connection.in_atomic_block:
        connection.close()


@contextmanager
def tool_thread() -> Iterator[None]:
    """Around work in a thread of its own: whatever it did with the database, its connection goes back."""
    try:
        yield
    finally:
        connection.close()


def is_lost(error: BaseException) -> bool:
    """True if the database went away, rather than refused: PostgreSQL's classes 08 and 57P, a session ended for idling,
    or no state at all.
    """
    cause = error.__cause__
    if connection.vendor == "sqlite" or cause is None or not isinstance(error, (OperationalError, InterfaceError)):
        return False
    state: str | None = getattr(cause, "sqlstate", None)
    return state is None or state.startswith(_LOST)
