"""Daemon threads for tools: reused while idle, never waited for when the process ends."""

import os
import queue
import threading
from collections import deque
from collections.abc import Callable

IDLE_S = 10.0
"""An idle thread ends after so many seconds."""

Work = Callable[[], object]


class DaemonThreads:
    """As many threads as there is work at a time; an idle one is taken before a new one is started.

    A ThreadPoolExecutor would have its exit hook wait for a tool that hangs.
    """

    def __init__(self) -> None:
        self._idle: deque[_Worker] = deque()

    def run(self, work: Work) -> None:
        """Do the work in another thread, at once; what it raises goes to `threading.excepthook`, ending the thread."""
        try:
            worker = self._idle.pop()
        except IndexError:
            _Worker(self, work).start()
        else:
            worker.inbox.put(work)

    def rejoin(self, worker: "_Worker") -> None:
        """The worker has nothing to do."""
        self._idle.append(worker)

    def leave(self, worker: "_Worker") -> bool:
        """The worker wants to end; False if it was taken just now, so that work is on its way to it."""
        try:
            self._idle.remove(worker)
        except ValueError:
            return False
        return True

    def forget(self) -> None:
        """For a forked child, in which none of the threads live."""
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


def give_up(work: object) -> None:
    """Nobody waits any more for the thread that does this work."""
    _abandoned.add(work)


def came_back(work: object) -> None:
    """The thread that does this work is not lost, or was not given up."""
    _abandoned.discard(work)


def abandoned_threads() -> int:
    """Threads of this process that were given up and still live."""
    return len(_abandoned)
