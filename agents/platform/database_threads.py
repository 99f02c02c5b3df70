"""Database access from asynchronous code, in threads that release their connections."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import connection

from agents.platform.database_connections import closing_connection, release_connection
from tools.toolbox.threads import THREADS

Args = ParamSpec("Args")
Result = TypeVar("Result")


def run_in_threads(
    threads: ThreadPoolExecutor, function: Callable[Args, Result]
) -> Callable[Args, Any]:
    """Wrap a function that uses the database, so that it can be awaited and runs in one of these
    threads.

    Afterwards, the thread's connection is released. A SQLite file stays open, unless the function
    failed.
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


def beside_event_loop(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Wrap a function that uses the database so that async tools can call it. It runs in another
    thread while the tool's event loop waits.

    This is needed because Django refuses queries in a thread with a running event loop.
    """

    @functools.wraps(function)
    def call(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return function(*args, **kwargs)
        returned = Future[Result]()

        def work() -> None:
            try:
                with closing_connection():
                    result = function(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
                returned.set_exception(error)
            else:
                returned.set_result(result)

        THREADS.run(work)
        return returned.result()

    return call
