"""A PostgreSQL connection that gives up when no answer comes, where the server's own limits cannot help."""

from __future__ import annotations

from typing import Any, TypeVar

from psycopg import Connection
from psycopg.abc import PQGen
from psycopg.errors import _WaitTimeout

STATEMENT_S = 30
"""The server ends a longer statement (`statement_timeout`)."""
ANSWER_S = STATEMENT_S + 5
CHECK_S = 3.0
WAKE_EVERY_S = 0.1

T = TypeVar("T")


class AnsweringConnection(Connection[Any]):
    """Waits for an answer no longer than the server may take; after that, the server or the link has fallen silent.

    Attributes:
        answer_s: None waits as long as it takes, for commands that also lift the server's limit.
    """

    answer_s: float | None = ANSWER_S

    def wait(self, gen: PQGen[T], interval: float = WAKE_EVERY_S, timeout: float | None = None) -> T:
        """Close the connection when the time is over: a late answer would be taken for the next query's."""
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.answer_s)
        except _WaitTimeout:
            self.pgconn.finish()
            raise

    def execute(self, *args: Any, **options: Any) -> Any:
        """Check a connection before the pool, the only caller, lends it: a sound one answers at once."""
        usual, self.answer_s = self.answer_s, CHECK_S
        try:
            return super().execute(*args, **options)
        finally:
            self.answer_s = usual
