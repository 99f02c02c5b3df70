"""Database access from asynchronous sockets, in a few threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from agents.platform.database_threads import run_in_threads

Args = ParamSpec("Args")
Result = TypeVar("Result")

THREADS = ThreadPoolExecutor(max_workers=4, thread_name_prefix="gadget-sockets")


def database_to_async(function: Callable[Args, Result]) -> Callable[Args, Any]:
    """Return an awaitable form of a function that uses the database."""
    return run_in_threads(THREADS, function)
