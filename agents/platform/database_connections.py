"""Release database connections, so that threads do not keep them while they wait."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


def release_connection() -> None:
    """Release this thread's connection before it waits for a model, a tool or another thread.

    A SQLite file stays open, because its connections are not limited.
    """
    if connection.vendor != "sqlite" and not connection.in_atomic_block:
        connection.close()


@contextmanager
def closing_connection() -> Iterator[None]:
    """Close this thread's database connection after the block, even if the block failed."""
    try:
        yield
    finally:
        connection.close()
