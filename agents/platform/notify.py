"""Send hints that something in the database is new: a job wakes a worker, and a bell makes open
pages refresh.

Hints may be lost: the sweeper and the sockets' own polling make up for that. So nothing has to wait
for Redis. One background thread in each process sends all hints, and drops them while Redis is
unavailable.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from celery import current_app
from channels.layers import get_channel_layer
from kombu.exceptions import OperationalError as QueueUnreachable
from redis.exceptions import RedisError

from agents.platform.error_boundary import log_and_continue
from agents.platform.redis_client import connect_redis
from agents.platform.streamed_text import StreamedText, keep_text

logger = logging.getLogger(__name__)

ADVANCE_JOB = "agents.worker.jobs.advance_run"
TITLE_JOB = "agents.worker.jobs.title_run"
REFRESH_JOB = "agents.worker.jobs.refresh_source"
DELIVERY_JOB = "agents.worker.jobs.deliver_notices"
READING_JOB = "agents.worker.jobs.read_events"
RENEWAL_JOB = "agents.worker.jobs.renew_withheld"
_MAX_DELTAS = 2000
_MAX_STREAMS = 2000
"""The maximum number of text streams whose lengths a process keeps in memory."""
_PAUSE_AFTER_FAILURE_S = 0.5
_TIMEOUT_S = 2.0
_UNREACHABLE = (TimeoutError, OSError, RedisError, QueueUnreachable)


def get_run_group(run_id: int) -> str:
    """Return the channel group of the sockets that watch this run."""
    return f"run.{run_id}"


def get_inbox_group(organization_id: int) -> str:
    """Return the channel group of the sockets that watch this organization's inbox."""
    return f"inbox.{organization_id}"


@dataclass(frozen=True)
class TextStream:
    """The text of one pass while the model writes it. A stream with a later epoch replaces an
    earlier stream."""

    run_id: int
    epoch: int
    pass_number: int


@dataclass
class _Batch:
    """The hints that wait to be sent. If a job or a bell is repeated, it is sent only once."""

    jobs: dict[tuple[str, int], None] = field(default_factory=dict)
    bells: dict[str, None] = field(default_factory=dict)
    deltas: deque[tuple[TextStream, str]] = field(default_factory=lambda: deque(maxlen=_MAX_DELTAS))

    def __bool__(self) -> bool:
        return bool(self.jobs or self.bells or self.deltas)


class _Publisher(threading.Thread):
    """Sends batches of hints from its own event loop, so that its connections persist."""

    def __init__(self) -> None:
        super().__init__(name="gadget-notify", daemon=True)
        self._next = _Batch()
        self._changed = threading.Condition()
        self._is_sending = False
        self._is_reachable = True
        self._redis = connect_redis()
        self._lengths: dict[TextStream, int] = {}

    def put_job(self, job: str, pk: int) -> None:
        with self._changed:
            self._next.jobs[job, pk] = None
            self._changed.notify_all()

    def put_bell(self, group: str) -> None:
        with self._changed:
            self._next.bells[group] = None
            self._changed.notify_all()

    def put_delta(self, stream: TextStream, text: str) -> None:
        with self._changed:
            self._next.deltas.append((stream, text))
            self._changed.notify_all()

    def wait_until_sent(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._next and not self._is_sending, _TIMEOUT_S)

    def run(self) -> None:
        loop = asyncio.new_event_loop()
        while True:
            with self._changed:
                self._is_sending = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: bool(self._next))
                batch, self._next = self._next, _Batch()
                self._is_sending = True
            with log_and_continue("sending jobs and bells"):
                self._send_or_drop(loop, batch)

    def _send_or_drop(self, loop: asyncio.AbstractEventLoop, batch: _Batch) -> None:
        try:
            self._send(loop, batch)
            self._is_reachable = True
        except _UNREACHABLE as error:
            if self._is_reachable:
                logger.warning(
                    "jobs and bells are dropped while Redis is unavailable: %s",
                    type(error).__name__,
                )
            self._is_reachable = False
            time.sleep(_PAUSE_AFTER_FAILURE_S)

    def _send(self, loop: asyncio.AbstractEventLoop, batch: _Batch) -> None:
        for job, pk in batch.jobs:
            _send_job(job, pk)
        texts = self._number_texts(batch.deltas)
        for stream, start, text in texts:
            keep_text(
                self._redis,
                stream.run_id,
                StreamedText(stream.epoch, stream.pass_number, text),
                start == 0,
            )
        if batch.bells or texts:
            loop.run_until_complete(_send_bells(batch.bells, texts))

    def _number_texts(
        self, deltas: deque[tuple[TextStream, str]]
    ) -> list[tuple[TextStream, int, str]]:
        """Join the pieces of each stream; return each text with the number of characters of its
        stream that were sent before it."""
        found = []
        for stream, text in _join_texts(deltas).items():
            start = self._lengths.pop(stream, 0)
            self._lengths[stream] = start + len(text)
            found.append((stream, start, text))
        while len(self._lengths) > _MAX_STREAMS:
            self._lengths.pop(next(iter(self._lengths)))
        return found


def _send_job(job: str, pk: int) -> None:
    current_app.send_task(job, args=[pk], ignore_result=True, retry=False)


async def _send_bells(bells: Iterable[str], texts: Iterable[tuple[TextStream, int, str]]) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    async with asyncio.timeout(_TIMEOUT_S):
        for stream, start, text in texts:
            place = {"pass_number": stream.pass_number, "epoch": stream.epoch, "start": start}
            delta = {"type": "delta", **place, "text": text}
            await layer.group_send(get_run_group(stream.run_id), delta)
        message: dict[str, Any] = {"type": "bell"}
        for group in bells:
            await layer.group_send(group, message)


def _join_texts(deltas: deque[tuple[TextStream, str]]) -> dict[TextStream, str]:
    """Join the pieces of each stream into one text."""
    pieces: dict[TextStream, list[str]] = {}
    for stream, text in deltas:
        pieces.setdefault(stream, []).append(text)
    return {stream: "".join(texts) for stream, texts in pieces.items()}


@lru_cache(maxsize=1)
def _get_publisher() -> _Publisher:
    publisher = _Publisher()
    publisher.start()
    return publisher


def wait_until_sent() -> None:
    """Wait up to two seconds until everything is sent or dropped. Call it before a process ends."""
    _get_publisher().wait_until_sent()


def wake_run(run_id: int) -> None:
    """Ask a worker to advance this run. A second request does no harm, because only one worker
    drives a run. The sweeper repeats a lost request."""
    _get_publisher().put_job(ADVANCE_JOB, run_id)


def wake_runs_now(run_ids: Sequence[int]) -> list[int]:
    """Ask workers to advance these runs, and wait for the queue; return the ids that the queue
    accepted."""
    accepted = []
    try:
        for pk in run_ids:
            _send_job(ADVANCE_JOB, pk)
            accepted.append(pk)
    except _UNREACHABLE as error:
        logger.debug(
            "the queue accepted %d of %d runs: %s",
            len(accepted),
            len(run_ids),
            type(error).__name__,
        )
    return accepted


def request_title(run_id: int) -> None:
    """Ask a worker to give this run a title. If the request is lost, the title remains the
    beginning of the task."""
    _get_publisher().put_job(TITLE_JOB, run_id)


def request_source_refresh(source_id: int) -> None:
    """Ask a worker to read this source's description again; the sweeper repeats a lost request."""
    _get_publisher().put_job(REFRESH_JOB, source_id)


def request_delivery() -> None:
    """Ask a worker to send the due notices; workers also check every two seconds."""
    _get_publisher().put_job(DELIVERY_JOB, 0)


def request_reading() -> None:
    """Ask a worker to read new events; workers also check every two seconds."""
    _get_publisher().put_job(READING_JOB, 0)


def request_renewal() -> None:
    """Ask a worker to renew the cards of withheld bulks; workers also check every two seconds."""
    _get_publisher().put_job(RENEWAL_JOB, 0)


def ring_run(run_id: int) -> None:
    """Tell the sockets that watch this run that it has new events."""
    _get_publisher().put_bell(get_run_group(run_id))


def ring_inbox(organization_id: int) -> None:
    """Tell the sockets that watch this organization's inbox that its cards have changed."""
    _get_publisher().put_bell(get_inbox_group(organization_id))


async def hint_inbox(organization_id: int, hint: Mapping[str, str]) -> None:
    """Send a hint to the sockets that watch this organization's inbox. Like every hint, it may be
    lost."""
    layer = get_channel_layer()
    if layer is not None:
        async with asyncio.timeout(_TIMEOUT_S):
            await layer.group_send(get_inbox_group(organization_id), dict(hint))


def stream_text(stream: TextStream, text: str) -> None:
    """Send open pages a text that the model is writing. The text has no event number, and may be
    lost."""
    _get_publisher().put_delta(
        stream, text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
