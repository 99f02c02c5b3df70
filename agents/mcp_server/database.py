"""Database access from the asynchronous server, in threads of its own.

Keys are checked in threads beside those of calls: a preview may take ten seconds, and must keep nobody at the door.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections

Args = ParamSpec("Args")
Result = TypeVar("Result")

CALLS = ThreadPoolExecutor(max_workers=8, thread_name_prefix="gadget-mcp")
DOOR = ThreadPoolExecutor(max_workers=2, thread_name_prefix="gadget-mcp-door")


def database_to_async(function: Callable[Args, Result], threads: ThreadPoolExecutor = CALLS) -> Callable[Args, Any]:
    """Make a function that uses the database awaitable, and close its connection when it returns."""

    @functools.wraps(function)
    def run_and_close(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        finally:
            connections.close_all()

    return sync_to_async(run_and_close, thread_sensitive=False, executor=threads)
