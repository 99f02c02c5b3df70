"""The event loop for all servers, in a thread of its own; callers wait in their own threads."""

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Value = TypeVar("Value")


class LoopThread:
    """A daemon thread with an event loop, started with the first coroutine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, work: Coroutine[Any, Any, Value]) -> "Future[Value]":
        """Start the coroutine. Canceling the returned future cancels the coroutine and drops its
        failure."""
        return asyncio.run_coroutine_threadsafe(_run_quietly(work), self._get_loop())

    async def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        """Run the coroutine and await it on the caller's loop. A cancellation is passed on to the
        coroutine, but the coroutine's end is not awaited."""
        return await asyncio.wrap_future(self.submit(work))

    def forget(self) -> None:
        """Reset the state in a forked child, where the thread does not exist."""
        self._lock = threading.Lock()
        self._loop = None

    def _get_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="mcp", daemon=True).start()
            return self._loop


async def _run_quietly(work: Coroutine[Any, Any, Value]) -> Value:
    """Await the work, and keep asyncio from logging its failure when no caller waits for it."""
    if task := asyncio.current_task():
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await work


LOOP = LoopThread()
os.register_at_fork(after_in_child=LOOP.forget)
