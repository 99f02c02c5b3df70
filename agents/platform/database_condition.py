"""The database's own condition, as opposed to a fault of ours, and how threads give their connections back."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, InterfaceError, InternalError, OperationalError, connection

UNAVAILABLE = (OperationalError, InterfaceError, InternalError)
"""The error classes that conditions of the database raise; not every such error is a condition."""

LOST = "The database does not answer."
_BUSY = "The database is busy: something else holds a lock."
_FULL = "The database disk is full."
_READ_ONLY = "The database is read-only at the moment."
_RESTARTING = "The database is starting or stopping."
_OVERLOADED = "The database has no free connections or memory."
_DISK = "The database cannot read or write its disk."

_STATES = {
    "08": LOST,
    "25006": _READ_ONLY,
    "25P03": LOST,
    "25P04": LOST,
    "53": _OVERLOADED,
    "53100": _FULL,
    "55P03": _BUSY,
    "57014": _BUSY,
    "57P": _RESTARTING,
    "58030": _DISK,
}
"""PostgreSQL's states, or their beginnings; the longest match counts."""

_CODES = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_PROTOCOL: _BUSY,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_IOERR: _DISK,
    sqlite3.SQLITE_CANTOPEN: _DISK,
    sqlite3.SQLITE_FULL: _FULL,
}
_PRIMARY = 0xFF
"""The part of SQLite's extended codes that names the kind of error."""


def condition_of(error: BaseException) -> str:
    """Return a sentence about the condition of the database that this error reports; empty for any other error.

    Code that meets one waits and tries again: the next statement may work, and nothing is at fault.
    """
    cause = error.__cause__
    if cause is None or not isinstance(error, (DatabaseError, InterfaceError)):
        return ""
    if isinstance(cause, sqlite3.Error):
        return _CODES.get(getattr(cause, "sqlite_errorcode", -1) & _PRIMARY, "")
    state: str | None = getattr(cause, "sqlstate", None)
    if state is None:  # the client's own: no connection, or no answer on it
        return LOST if isinstance(error, (OperationalError, InterfaceError)) else ""
    return next((_STATES[state[:length]] for length in (5, 3, 2) if state[:length] in _STATES), "")


def release_connection() -> None:
    """Give this thread's connection back before it waits for a model, a tool or another thread.

    A SQLite file stays open, because nobody waits for it.
    """
    if connection.vendor != "sqlite" and not connection.in_atomic_block:
        connection.close()


@contextmanager
def closing_connection() -> Iterator[None]:
    """Close this thread's database connection after the block, whatever was done with it."""
    try:
        yield
    finally:
        connection.close()
