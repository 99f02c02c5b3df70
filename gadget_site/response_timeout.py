"""A PostgreSQL connection that gives up on a server that no longer responds; the server's own
limits cannot do that."""

from __future__ import annotations

from typing import Any, TypeVar

from psycopg import Connection
from psycopg.abc import PQGen
from psycopg.errors import _WaitTimeout

STATEMENT_TIMEOUT_S = 30
"""Seconds after which the server ends a statement (`statement_timeout`)."""
RESPONSE_TIMEOUT_S = STATEMENT_TIMEOUT_S + 5
CHECK_TIMEOUT_S = 3.0
WAKE_EVERY_S = 0.1

T = TypeVar("T")


class TimeoutConnection(Connection[Any]):
    """A connection that waits a little longer than a statement may take; after that, it assumes
    that the server or the link is gone.

    Attributes:
        response_timeout_s: None waits without a limit, for commands that also lift the server's
            limit.
    """

    response_timeout_s: float | None = RESPONSE_TIMEOUT_S

    def wait(
        self, gen: PQGen[T], interval: float = WAKE_EVERY_S, timeout: float | None = None
    ) -> T:
        """Wait for a response, and close the connection on a timeout: otherwise a late response
        would be mistaken for the next query's."""
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.response_timeout_s)
        except _WaitTimeout:
            self.pgconn.finish()
            raise

    def execute(self, *args: Any, **options: Any) -> Any:
        """Run the check that the pool makes before it lends the connection, with a short timeout:
        a healthy connection responds fast."""
        usual, self.response_timeout_s = self.response_timeout_s, CHECK_TIMEOUT_S
        try:
            return super().execute(*args, **options)
        finally:
            self.response_timeout_s = usual
