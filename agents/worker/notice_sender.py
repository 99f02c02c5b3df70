"""The threads that read events and send notices and webhooks.

One thread reads events, one spreads notices, one withdraws them, one sends e-mail, and four each
send to browsers, chat services and webhooks. A server that hangs therefore delays only its own
deliveries, and no run or page waits for any of these threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from django.db import connection

from agents.deliveries.channels import CHANNELS
from agents.deliveries.channels.push import make_key_if_missing
from agents.deliveries.engine import send_next
from agents.deliveries.outboxes import OUTBOXES
from agents.notices.on_screen import withdraw_next
from agents.notices.spreading import spread_notices
from agents.platform.error_boundary import log_and_continue
from agents.readers.reading import read_logs
from agents.runs.engine.timing import timing

POLL_S = 2.0
SHORTEST_POLL_S = 0.5
HELPERS, HELPERS_POLL_S = 3, 30.0
"""The number of helper threads for each kind of delivery, in addition to the thread that checks
every two seconds, and the seconds between a helper's checks.

One of the helpers serves only healthy receivers. All threads of a kind are woken together.
"""


class RepeatingThread(threading.Thread):
    """Repeats a piece of work until none is left, then waits for a wake-up or for some seconds.

    Args:
        work: does the next piece of work; its result is falsy if there was none.
        and_then: called after each piece of work.
        poll_s: the seconds after which the thread checks for work without a wake-up.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], object],
        and_then: Callable[[], None],
        poll_s: float = POLL_S,
    ) -> None:
        super().__init__(name=f"gadget-{name}", daemon=True)
        self._work = work
        self._and_then = and_then
        self._poll_s = poll_s
        self._woken = threading.Event()
        self._stopping = False

    def run(self) -> None:
        while not self._stopping:
            with log_and_continue(self.name):
                while not self._stopping and self._work():
                    self._and_then()
            connection.close()
            self._woken.wait(max(self._poll_s * timing().scale, SHORTEST_POLL_S))
            self._woken.clear()

    def wake(self) -> None:
        """Check for work now."""
        self._woken.set()

    def finish(self) -> None:
        """Keep the thread from starting another piece of work; signal handlers may call this,
        because it does not take a lock."""
        self._stopping = True

    def stop(self) -> None:
        """End the thread after the current piece of work."""
        self.finish()
        self._woken.set()


class NoticeSender:
    """The threads of one worker that read events, and spread, send and withdraw notices."""

    def __init__(self) -> None:
        works: dict[str, Callable[[], bool]] = {
            **{f"send-{kind}": partial(send_next, kind) for kind in OUTBOXES},
            "withdraw-notices": withdraw_next,
        }
        helpers: dict[str, Callable[[], bool]] = {
            f"send-{kind}-{number}": partial(send_next, kind, only_healthy=number == 0)
            for kind in OUTBOXES
            if not CHANNELS[kind].server_setting  # with a single server, more senders are no faster
            for number in range(HELPERS)
        }
        self._senders = [RepeatingThread(name, work, lambda: None) for name, work in works.items()]
        for name, work in helpers.items():
            self._senders.append(RepeatingThread(name, work, lambda: None, HELPERS_POLL_S))
        self._spreader = RepeatingThread("spread-notices", spread_notices, self._wake_senders)
        self._reader = RepeatingThread("read-logs", read_logs, lambda: None)
        self._threads = (self._reader, self._spreader, *self._senders)

    def start(self) -> None:
        """Start all threads; the first start of an installation also creates its key for push."""
        with log_and_continue("making the key for push"):
            make_key_if_missing()
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """Wake the threads that spread and send notices."""
        self._spreader.wake()
        self._wake_senders()

    def wake_reader(self) -> None:
        """Wake the thread that reads events."""
        self._reader.wake()

    def finish(self) -> None:
        """Keep the threads from starting new work while the worker's last runs end."""
        for thread in self._threads:
            thread.finish()

    def stop(self, patience_s: float = 15.0) -> None:
        """End all threads, and wait for their work in progress; another worker repeats work that
        takes too long."""
        for thread in self._threads:
            thread.stop()
        deadline = time.monotonic() + patience_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _wake_senders(self) -> None:
        for thread in self._senders:
            thread.wake()
