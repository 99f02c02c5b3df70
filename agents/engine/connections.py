"""Whose database connection is whose: nobody keeps one while waiting for a model, a tool or another thread."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


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
