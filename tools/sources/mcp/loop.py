"""One event loop in a thread of its own, on which all servers are spoken to; who asks waits in another thread."""

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Value = TypeVar("Value")


class LoopThread:
    """Starts with the first work; a daemon thread, so that it never keeps the process alive."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, work: Coroutine[Any, Any, Value]) -> "Future[Value]":
        """Begin the work; to cancel what is returned cancels the work, whose failure nobody is told of then."""
        return asyncio.run_coroutine_threadsafe(_heard(work), self._running_loop())

    async def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        """The work's result, awaited on another loop, whose cancellation is passed on and not waited for."""
        return await asyncio.wrap_future(self.submit(work))

    def forget(self) -> None:
        """For a forked child, in which the thread does not live."""
        self._lock = threading.Lock()
        self._loop = None

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="mcp", daemon=True).start()
            return self._loop


async def _heard(work: Coroutine[Any, Any, Value]) -> Value:
    """The work's result. Whoever waits for it hears of a failure; asyncio does not log one that nobody waits for."""
    if task := asyncio.current_task():
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await work


LOOP = LoopThread()
os.register_at_fork(after_in_child=LOOP.forget)
