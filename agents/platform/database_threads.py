"""Database access from asynchronous code, in threads that release their connections."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import connection

from agents.platform.database_connections import release_connection

Args = ParamSpec("Args")
Result = TypeVar("Result")


def run_in_threads(
    threads: ThreadPoolExecutor, function: Callable[Args, Result]
) -> Callable[Args, Any]:
    """Make a function that uses the database awaitable: it runs in one of these threads.

    Afterwards its connection is released; SQLite's file stays open unless the function failed.
    """

    @functools.wraps(function)
    def run_and_release(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        has_failed = True
        try:
            result = function(*args, **kwargs)
            has_failed = False
        finally:
            if has_failed:
                connection.close()  # the next use starts with a new connection
            else:
                release_connection()
        return result

    return sync_to_async(run_and_release, thread_sensitive=False, executor=threads)
