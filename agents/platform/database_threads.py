"""Database access from asynchronous code, in threads that return each connection to its pool."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections

Args = ParamSpec("Args")
Result = TypeVar("Result")


def run_in_threads(threads: ThreadPoolExecutor, function: Callable[Args, Result]) -> Callable[Args, Any]:
    """Make a function that uses the database awaitable: it runs in one of these threads, then frees its connection."""

    @functools.wraps(function)
    def run_and_close(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        finally:
            connections.close_all()

    return sync_to_async(run_and_close, thread_sensitive=False, executor=threads)
