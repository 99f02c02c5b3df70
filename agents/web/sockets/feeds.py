"""Feeds: one reader per run (or inbox) and process, shared by all sockets that watch it.

A bell only signals that there is news. On every bell, and every 3 s without one, the feed reads the
database once, checks which viewers still have access, and wakes its subscribers, which send the
news. Without Redis there are no bells, and news arrives at most 3 s late.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import IntEnum
from typing import Any, TypeVar, cast
from weakref import WeakSet

from channels.layers import get_channel_layer
from django.db import DatabaseError, InterfaceError
from redis.exceptions import RedisError

from agents.web.sockets.viewers import Viewer

logger = logging.getLogger(__name__)

POLL_S = 3.0
RETRY_S = 1.0
REDIS_FAILURES = (OSError, RedisError, asyncio.TimeoutError)


class CloseCode(IntEnum):
    """The codes with which the server closes a socket."""

    NOT_LOGGED_IN = 4401
    """The login is missing or invalid, or it has ended."""
    NOT_FOUND = 4404
    """The viewer's organization has no such run."""
    TOO_LONG = 4413
    """The browser sent too long a message."""
    FAILED = 4500
    """Gadget failed; the browser may connect again."""


class Subscriber:
    """One socket's subscription to a feed.

    Attributes:
        news: set when there may be something to send.
        close_code: set when the subscription has ended and the socket must be closed.
    """

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer
        self.news = asyncio.Event()
        self.close_code: CloseCode | None = None

    def end(self, code: CloseCode) -> None:
        """End the subscription, and close the socket with this code."""
        self.close_code = code
        self.news.set()


FeedKey = tuple[int, str, str]
"""The event loop, the group and the purpose of a feed."""


class Feed(ABC):
    """A reader that reads whenever its bell rings, as long as it has subscribers."""

    key: FeedKey

    def __init__(self, group: str) -> None:
        self.subscribers: set[Subscriber] = set()
        self.has_failed = False
        self.group = group
        self._bell = asyncio.Event()
        self._channel = f"{group}.{uuid.uuid4().hex}"
        self._lacks_bells = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start reading and receiving bells."""
        self._tasks = [
            asyncio.create_task(self._keep_reading()),
            asyncio.create_task(self._keep_receiving()),
        ]
        for task in self._tasks:
            task.add_done_callback(self._notice_end)

    def stop(self) -> None:
        """Stop reading and receiving bells, and leave the channel group in the background."""
        for task in self._tasks:
            task.cancel()
        finish_in_background(self._leave_group())

    def _notice_end(self, task: asyncio.Task[None]) -> None:
        """End all subscriptions if a task failed, so that no socket stays open and silent."""
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        logger.error("the feed of %s failed", self.group, exc_info=error)
        self.has_failed = True
        for subscriber in self.subscribers:
            subscriber.end(CloseCode.FAILED)

    @abstractmethod
    async def read(self) -> None:
        """Read the database once, end subscriptions that lost access, and wake the other
        subscribers if there is news."""

    def receive(self, message: dict[str, Any]) -> None:  # noqa: B027 - most feeds get only bells
        """Accept a group message other than a bell, such as text that the model is writing."""

    def revoke_lost_access(self, checked: set[Viewer], allowed: set[Viewer]) -> None:
        """End the subscriptions of viewers who failed the check; newer subscriptions are checked at
        the next reading."""
        for subscriber in self.subscribers:
            if subscriber.viewer in checked - allowed:
                subscriber.end(CloseCode.NOT_LOGGED_IN)

    def ring(self) -> None:
        """Read soon, as after a bell."""
        self._bell.set()

    def wake_subscribers(self) -> None:
        """Wake every subscriber, so that it checks for news."""
        for subscriber in self.subscribers:
            subscriber.news.set()

    async def _keep_reading(self) -> None:
        while True:
            try:
                await self.read()
            except (DatabaseError, InterfaceError) as error:
                logger.warning("could not read the feed of %s: %s", self.group, error)
                await asyncio.sleep(RETRY_S)
                continue
            try:
                await asyncio.wait_for(self._bell.wait(), POLL_S)
            except TimeoutError:
                continue
            finally:
                self._bell.clear()

    async def _keep_receiving(self) -> None:
        """Receive the group's messages, and start again after each failure of Redis."""
        layer = get_channel_layer()
        if layer is None:
            return
        while True:
            await self._receive_until_failure(layer)
            await asyncio.sleep(RETRY_S)

    async def _receive_until_failure(self, layer: Any) -> None:
        receiving = asyncio.ensure_future(layer.receive(self._channel))
        try:
            # Receive before joining the group, because the layer knows a channel only while
            # somebody receives from it.
            await asyncio.sleep(0)
            await layer.group_add(self.group, self._channel)
            self._lacks_bells = False
            self._bell.set()
            await _stay_subscribed(layer)
            while True:
                message = await receiving
                receiving = asyncio.ensure_future(layer.receive(self._channel))
                if message["type"] == "bell":
                    self._bell.set()
                else:
                    self.receive(message)
        except REDIS_FAILURES as error:
            if not self._lacks_bells:
                logger.warning(
                    "no hints from Redis for %s (%s): polling every %s s",
                    self.group,
                    type(error).__name__,
                    POLL_S,
                )
            self._lacks_bells = True
        finally:
            receiving.cancel()
            with suppress(asyncio.CancelledError, *REDIS_FAILURES):
                await receiving

    async def _leave_group(self) -> None:
        layer = get_channel_layer()
        try:
            if layer is not None:
                await layer.group_discard(self.group, self._channel)
        except REDIS_FAILURES as error:
            logger.info("could not leave the group %s: %s", self.group, type(error).__name__)


_subscribed: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


async def _stay_subscribed(layer: Any) -> None:
    """Give each event loop one permanent channel: a layer that has no channel checks for messages
    only every 0.1 s."""
    loop = asyncio.get_running_loop()
    if loop in _subscribed:
        return
    _subscribed.add(loop)
    try:
        await layer.new_channel()
    except REDIS_FAILURES:
        _subscribed.discard(loop)
        raise


SomeFeed = TypeVar("SomeFeed", bound=Feed)

_feeds: dict[FeedKey, Feed] = {}
_background: set[asyncio.Task[None]] = set()


def finish_in_background(work: Coroutine[Any, Any, None]) -> None:
    """Run the work without waiting for it."""
    task = asyncio.create_task(work)
    _background.add(task)
    task.add_done_callback(_background.discard)


def subscribe(
    group: str,
    subscriber: Subscriber,
    create_feed: Callable[[str], SomeFeed],
    purpose: str = "pages",
) -> SomeFeed:
    """Add the subscriber to this process's feed of this group and purpose; the first subscriber
    starts the feed."""
    key = (id(asyncio.get_running_loop()), group, purpose)
    feed = _feeds.get(key)
    if feed is None or feed.has_failed:
        feed = _feeds[key] = create_feed(group)
        feed.key = key
        feed.start()
    feed.subscribers.add(subscriber)
    return cast("SomeFeed", feed)


def unsubscribe(feed: Feed, subscriber: Subscriber) -> None:
    """Remove the subscriber; removing the last subscriber stops the feed."""
    feed.subscribers.discard(subscriber)
    if not feed.subscribers:
        feed.stop()
        if _feeds.get(feed.key) is feed:
            del _feeds[feed.key]
