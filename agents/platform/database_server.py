"""Connect to the database server, and report its refusal in the server's own words; Django's
connection pool would report only a timeout."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

import psycopg
from django.db import connection

logger = logging.getLogger(__name__)

RETRY_S = 1.0
CONNECTS = frozenset({"host", "port", "user", "password", "dbname", "connect_timeout"})
"""The parameters for connecting without Django and without the pool."""
_SERVER_REPLY = ":  "
"""The text between the severity and the message of a server's error, in every language. The errors
of libpq itself lack this text."""
_PASSING = (
    "the database system is",  # starting up, shutting down, in recovery mode, not accepting connections
    "too many clients",
    "too many connections",
    "connection slots are reserved",
)


@dataclass(frozen=True)
class NoConnection:
    """A failed attempt to connect.

    Attributes:
        words: the text of the server or the operating system.
        is_final: True if the server refuses this login or database, so that waiting does not help.
    """

    words: str
    is_final: bool


def try_connecting() -> NoConnection | None:
    """Try to connect once without the pool. Return None if this works, or if the database is
    SQLite, which has no server."""
    if connection.vendor != "postgresql":
        return None
    known = connection.get_connection_params()
    options = {name: known[name] for name in known if name in CONNECTS or name.startswith("ssl")}
    try:
        psycopg.connect(**options).close()
    except psycopg.Error as error:
        words = str(error).strip()
        has_replied = _SERVER_REPLY in words
        return NoConnection(
            words, has_replied and not any(passing in words for passing in _PASSING)
        )
    return None


class WaitingLine:
    """Logs what a process waits for, with one line whenever the reason changes."""

    def __init__(self) -> None:
        self._last = ""

    def say(self, kind: str, text: str) -> None:
        """Log the text, unless the last line was about the same kind of reason."""
        if kind != self._last:
            logger.warning("%s", text)
        self._last = kind

    def say_no_server(self, refusal: NoConnection) -> None:
        """Log that this process waits for the server, and why."""
        self.say("server", f"Waiting for the database server. {' '.join(refusal.words.split())}")


def wait_for_server(is_stopping: Callable[[], bool] = lambda: False) -> NoConnection | None:
    """Wait until the server responds, with one line in the log. Return its refusal if waiting does
    not help; otherwise None."""
    line = WaitingLine()
    while (refusal := try_connecting()) and not refusal.is_final and not is_stopping():
        line.say_no_server(refusal)
        time.sleep(RETRY_S)
    return refusal if refusal and refusal.is_final else None
