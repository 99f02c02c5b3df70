"""The background publisher: tells workers and browsers that there is something to look at in the database.

Hints may be lost: the sweeper and the sockets' own polling find what a lost one left behind. So nothing here ever
blocks its caller; one thread per process sends what was asked for and drops it while Redis is away.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from celery import current_app
from channels.layers import get_channel_layer
from kombu.exceptions import OperationalError as QueueUnreachable
from redis.exceptions import RedisError

from agents.boundaries import surviving

logger = logging.getLogger(__name__)

ADVANCE_JOB = "agents.jobs.advance_run"
TITLE_JOB = "agents.jobs.title_run"
REFRESH_JOB = "agents.jobs.refresh_source"
_MOST_DELTAS = 2000
_REST_AFTER_FAILURE_S = 0.5
_PATIENCE_S = 2.0
_UNREACHABLE = (TimeoutError, OSError, RedisError, QueueUnreachable)


def run_group(run_id: int) -> str:
    """The channel group of everybody who looks at this run."""
    return f"run.{run_id}"


def inbox_group(organization_id: int) -> str:
    """The channel group of everybody who looks at this organisation's inbox."""
    return f"inbox.{organization_id}"


@dataclass(frozen=True)
class Writing:
    """Which pass of a run is being written, and by the driver of which epoch; a later one begins it anew."""

    run_id: int
    epoch: int
    pass_number: int


@dataclass
class _Waiting:
    """What is to be sent; equal hints collapse into one."""

    jobs: dict[tuple[str, int], None] = field(default_factory=dict)
    bells: dict[str, None] = field(default_factory=dict)
    deltas: deque[tuple[Writing, str]] = field(default_factory=lambda: deque(maxlen=_MOST_DELTAS))

    def __bool__(self) -> bool:
        return bool(self.jobs or self.bells or self.deltas)


class _Publisher(threading.Thread):
    """Sends hints from its own event loop, so that connections persist."""

    def __init__(self) -> None:
        super().__init__(name="gadget-hints", daemon=True)
        self._waiting = _Waiting()
        self._changed = threading.Condition()
        self._is_sending = False
        self._reachable = True

    def put_job(self, job: str, pk: int) -> None:
        with self._changed:
            self._waiting.jobs[job, pk] = None
            self._changed.notify_all()

    def put_bell(self, group: str) -> None:
        with self._changed:
            self._waiting.bells[group] = None
            self._changed.notify_all()

    def put_delta(self, writing: Writing, text: str) -> None:
        with self._changed:
            self._waiting.deltas.append((writing, text))
            self._changed.notify_all()

    def wait_until_sent(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._is_sending, _PATIENCE_S)

    def run(self) -> None:
        loop = asyncio.new_event_loop()
        while True:
            with self._changed:
                self._is_sending = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: bool(self._waiting))
                batch, self._waiting = self._waiting, _Waiting()
                self._is_sending = True
            with surviving("sending hints"):
                self._send_or_drop(loop, batch)

    def _send_or_drop(self, loop: asyncio.AbstractEventLoop, batch: _Waiting) -> None:
        try:
            self._send(loop, batch)
            self._reachable = True
        except _UNREACHABLE as error:
            if self._reachable:
                logger.warning("hints are dropped while Redis is away: %s", type(error).__name__)
            self._reachable = False
            time.sleep(_REST_AFTER_FAILURE_S)

    def _send(self, loop: asyncio.AbstractEventLoop, batch: _Waiting) -> None:
        for job, pk in batch.jobs:
            _send_job(job, pk)
        if batch.bells or batch.deltas:
            loop.run_until_complete(_ring(batch))


def _send_job(job: str, pk: int) -> None:
    current_app.send_task(job, args=[pk], ignore_result=True, retry=False)


async def _ring(batch: _Waiting) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    async with asyncio.timeout(_PATIENCE_S):
        for one, text in _joined(batch.deltas).items():
            delta = {"type": "delta", "pass_number": one.pass_number, "epoch": one.epoch, "text": text}
            await layer.group_send(run_group(one.run_id), delta)
        message: dict[str, Any] = {"type": "bell"}
        for group in batch.bells:
            await layer.group_send(group, message)


def _joined(deltas: deque[tuple[Writing, str]]) -> dict[Writing, str]:
    """Neighbouring pieces of one text, as one piece."""
    texts: dict[Writing, list[str]] = {}
    for one, text in deltas:
        texts.setdefault(one, []).append(text)
    return {one: "".join(parts) for one, parts in texts.items()}


@lru_cache(maxsize=1)
def _running() -> _Publisher:
    publisher = _Publisher()
    publisher.start()
    return publisher


def send_all() -> None:
    """Wait until all that was asked for is sent or dropped, for two seconds at most: before a process ends."""
    _running().wait_until_sent()


def wake(run_id: int) -> None:
    """Ask a worker to drive this run; sent twice or never, the run is driven once."""
    _running().put_job(ADVANCE_JOB, run_id)


def hand_over(run_ids: Sequence[int]) -> list[int]:
    """Ask workers to drive these runs, at once and in this thread; return those the queue accepted."""
    taken = []
    try:
        for pk in run_ids:
            _send_job(ADVANCE_JOB, pk)
            taken.append(pk)
    except _UNREACHABLE as error:
        logger.debug("the queue took %d of %d runs: %s", len(taken), len(run_ids), type(error).__name__)
    return taken


def name_run(run_id: int) -> None:
    """Ask a worker to give this run a name; if that is lost, it keeps the beginning of its task."""
    _running().put_job(TITLE_JOB, run_id)


def refresh_source(source_id: int) -> None:
    """Ask a worker to read this source's description anew; if that is lost, the sweeper asks again later."""
    _running().put_job(REFRESH_JOB, source_id)


def ring_run(run_id: int) -> None:
    """Tell the run's sockets that there are new events."""
    _running().put_bell(run_group(run_id))


def ring_inbox(organization_id: int) -> None:
    """Tell the organisation's inboxes that the cards changed."""
    _running().put_bell(inbox_group(organization_id))


def stream_text(writing: Writing, text: str) -> None:
    """Show text while the model writes it; it has no number and may be lost."""
    _running().put_delta(writing, text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
