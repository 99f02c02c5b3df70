"""Distinguish temporary database outages from faults in our code, which may raise the same
errors."""

import sqlite3

from django.db import DatabaseError, InterfaceError, InternalError, OperationalError

OUTAGE_ERRORS = (OperationalError, InterfaceError, InternalError)
"""The error classes that outages raise. Errors of these classes can also have other causes."""

UNREACHABLE = "The database does not respond."
_BUSY = "The database is busy: something else holds a lock."
_FULL = "The database disk is full."
_READ_ONLY = "The database is read-only at the moment."
_RESTARTING = "The database is starting or stopping."
_OVERLOADED = "The database has no free connections or memory."
_DISK = "The database cannot read or write its disk."

_STATES = {
    "08": UNREACHABLE,
    "25006": _READ_ONLY,
    "25P03": UNREACHABLE,
    "25P04": UNREACHABLE,
    "53": _OVERLOADED,
    "53100": _FULL,
    "55P03": _BUSY,
    "57014": _BUSY,
    "57P": _RESTARTING,
    "58030": _DISK,
}
"""The outages by PostgreSQL's SQLSTATE or the start of one; the longest match is used."""

_CODES = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_PROTOCOL: _BUSY,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_IOERR: _DISK,
    sqlite3.SQLITE_CANTOPEN: _DISK,
    sqlite3.SQLITE_FULL: _FULL,
}
_PRIMARY_CODE = 0xFF
"""The bits of SQLite's extended error codes that contain the kind of error."""


def describe_outage(error: BaseException) -> str:
    """Return a sentence about the database outage that this error reports; empty for any other
    error.

    Callers wait and retry, because the next statement may work.
    """
    cause = error.__cause__
    if cause is None or not isinstance(error, (DatabaseError, InterfaceError)):
        return ""
    if isinstance(cause, sqlite3.Error):
        return _CODES.get(getattr(cause, "sqlite_errorcode", -1) & _PRIMARY_CODE, "")
    state: str | None = getattr(cause, "sqlstate", None)
    if state is None:  # raised by the client itself: no connection, or no response on it
        return UNREACHABLE if isinstance(error, (OperationalError, InterfaceError)) else ""
    return next((_STATES[state[:length]] for length in (5, 3, 2) if state[:length] in _STATES), "")
