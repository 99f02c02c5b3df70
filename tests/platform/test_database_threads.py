"""Threads that serve asynchronous code: between two uses, they do not hold a connection that other
threads need."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections

from agents.platform.database_threads import run_in_threads

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool
        pool.submit(connections.close_all).result()


def use(thread: ThreadPoolExecutor, error: type[Exception] | None = None) -> object:
    """Use the database in the thread, and return the driver's own connection; raise `error`
    afterwards, if given."""

    def connect() -> object:
        connection.ensure_connection()
        if error is not None:
            raise error
        return connection.connection

    found: object = asyncio.run(run_in_threads(thread, connect)())
    return found


def held(thread: ThreadPoolExecutor) -> object:
    """Return the connection that the thread holds between two uses."""
    return thread.submit(lambda: connection.connection).result()


def test_after_a_use_sqlite_stays_open_and_the_postgresql_connection_is_returned(
    thread: ThreadPoolExecutor,
) -> None:
    used = use(thread)
    assert held(thread) is (used if connection.vendor == "sqlite" else None)


def test_a_failed_use_returns_the_connection(thread: ThreadPoolExecutor) -> None:
    use(thread)
    with pytest.raises(LookupError):
        use(thread, LookupError)
    assert held(thread) is None
