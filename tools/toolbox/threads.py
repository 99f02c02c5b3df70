"""Daemon threads for tools: reused while idle, and never joined when the process ends."""

import contextvars
import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from functools import partial

IDLE_S = 10.0
"""Seconds after which an idle thread ends."""

Work = Callable[[], object]


class DaemonThreads:
    """A pool without a size limit, which reuses idle threads before it starts new ones.

    A ThreadPoolExecutor is not suitable, because its exit hook would wait for a tool that hangs.
    """

    def __init__(self) -> None:
        self._idle: deque[_Worker] = deque()

    def run(self, work: Work) -> None:
        """Start the work in another thread immediately, in a copy of this thread's context.

        An exception goes to `threading.excepthook` and ends the thread.
        """
        context = contextvars.copy_context()
        inside = partial(context.run, work)
        try:
            worker = self._idle.pop()
        except IndexError:
            _Worker(self, inside).start()
        else:
            worker.inbox.put(inside)

    def rejoin(self, worker: "_Worker") -> None:
        """Return an idle worker to the pool."""
        self._idle.append(worker)

    def leave(self, worker: "_Worker") -> bool:
        """Remove a worker that wants to end; return False if it was taken and will get work."""
        try:
            self._idle.remove(worker)
        except ValueError:
            return False
        return True

    def forget(self) -> None:
        """Forget all threads in a forked child, because they do not exist there."""
        self._idle = deque()


class _Worker(threading.Thread):
    def __init__(self, threads: DaemonThreads, first: Work) -> None:
        super().__init__(name="tool", daemon=True)
        self.inbox: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self.inbox.put(first)
        self._threads = threads

    def run(self) -> None:
        while True:
            try:
                work = self.inbox.get(timeout=IDLE_S)
            except queue.Empty:
                if self._threads.leave(self):
                    return
                work = self.inbox.get()
            work()
            del work
            self._threads.rejoin(self)


THREADS = DaemonThreads()
os.register_at_fork(after_in_child=THREADS.forget)

_abandoned: set[object] = set()


def mark_abandoned(work: object) -> None:
    """Record that the caller no longer waits for the thread that does this work."""
    _abandoned.add(work)


def mark_returned(work: object) -> None:
    """Record that the thread that does this work has returned, or was never abandoned."""
    _abandoned.discard(work)


def count_abandoned_threads() -> int:
    """Count the abandoned threads of this process that are still alive."""
    return len(_abandoned)
