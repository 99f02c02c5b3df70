"""Wait for the end of calls without holding a thread: one reader per run serves all requests
waiting for its calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agents.gateway.queries import list_progress, read_statuses
from agents.platform.notify import get_run_group
from agents.runs.models import ToolCall
from agents.web.sockets.database import database_to_async
from agents.web.sockets.feeds import Feed, Subscriber, subscribe, unsubscribe
from agents.web.sockets.viewers import Viewer

_NOBODY = Viewer(0, 0, "")
"""The viewer in whose name a call is awaited: agents are not viewers, and their keys were checked
with their requests."""


@dataclass(frozen=True)
class CallProgress:
    """A call's report on its progress; `fraction` is 0 to 1, or None."""

    seq: int
    fraction: float | None
    text: str


class CallWaiter(Subscriber):
    """One request that waits for a call.

    Attributes:
        status: the last known status of the call.
        after: the number of the run's event after which progress is new.
        reports: the progress that has not been reported yet.
    """

    def __init__(self, call: ToolCall, after: int) -> None:
        super().__init__(_NOBODY)
        self.call_id = call.pk
        self.status = call.status
        self.after = after
        self.reports: list[CallProgress] = []


class CallFeed(Feed):
    """Reads the statuses of the awaited calls of one run, and the progress of the calls that report
    it."""

    def __init__(self, group: str) -> None:
        super().__init__(group)
        self._run_id = int(group.rpartition(".")[2])
        self._after: int | None = None

    async def read(self) -> None:
        """Read the changes, and wake the requests whose call has another status or new progress."""
        waiters = [each for each in self.subscribers if isinstance(each, CallWaiter)]
        if self._after is None:
            self._after = min((each.after for each in waiters), default=0)
        statuses, reports = await self._load({each.call_id for each in waiters})
        for waiter in waiters:
            status = statuses.get(waiter.call_id, waiter.status)
            news = [
                report for report in reports.get(waiter.call_id, ()) if report.seq > waiter.after
            ]
            if status != waiter.status or news:
                waiter.status = status
                waiter.reports += news
                waiter.news.set()

    @database_to_async
    def _load(self, call_ids: set[int]) -> tuple[dict[int, str], dict[int, list[CallProgress]]]:
        statuses = read_statuses(call_ids)
        reports: dict[int, list[CallProgress]] = {}
        for seq, payload in list_progress(self._run_id, self._after or 0):
            self._after = seq
            report = CallProgress(seq, payload.get("fraction"), payload.get("text") or "")
            reports.setdefault(int(payload["call_id"]), []).append(report)
        return statuses, reports


async def wait_for_call(
    call: ToolCall,
    is_over: Callable[[str], bool],
    wait_s: float,
    tell: Callable[[CallProgress], Awaitable[None]] | None = None,
) -> None:
    """Wait until the call's status ends the wait, but at most `wait_s` seconds.

    Args:
        call: the call, with its run loaded.
        is_over: returns True for a status that ends the wait.
        tell: receives each report of the call's progress.
    """
    waiter = CallWaiter(call, call.run.next_event_seq - 1)
    feed = subscribe(get_run_group(call.run_id), waiter, CallFeed, purpose="calls")
    feed.ring()
    try:
        async with asyncio.timeout(wait_s):
            while not is_over(waiter.status):
                await waiter.news.wait()
                waiter.news.clear()
                reports, waiter.reports = waiter.reports, []
                for report in reports if tell else ():
                    await tell(report)  # type: ignore[misc]
    except TimeoutError:
        pass
    finally:
        unsubscribe(feed, waiter)
