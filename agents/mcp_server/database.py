"""Database access from the asynchronous server, in separate threads.

Keys are checked in their own threads, so that the preview of a call, which may take ten seconds,
does not delay other requests.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from agents.platform.database_threads import run_in_threads

Args = ParamSpec("Args")
Result = TypeVar("Result")

CALLS = ThreadPoolExecutor(max_workers=8, thread_name_prefix="gadget-mcp")
DOOR = ThreadPoolExecutor(max_workers=2, thread_name_prefix="gadget-mcp-door")


def database_to_async(
    function: Callable[Args, Result], threads: ThreadPoolExecutor = CALLS
) -> Callable[Args, Any]:
    """Wrap a function that uses the database, so that it can be awaited and runs in these
    threads."""
    return run_in_threads(threads, function)
