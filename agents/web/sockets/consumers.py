"""The consumers of WebSockets: a run's events by number, and the state of an inbox.

A consumer subscribes to a feed, which reads for all consumers of one run or inbox. It has no
channel of its own in the channel layer, so it stays open while Redis is unavailable. Only feeds
receive bells, and they also read without bells.
"""

from __future__ import annotations

import asyncio
import json
import logging
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from autobahn.exception import Disconnected
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.db import DatabaseError, InterfaceError

from agents.approvals.attention import Look
from agents.platform import notify
from agents.platform.database_outages import describe_outage
from agents.platform.row_ids import LARGEST_ID
from agents.runs.models import Run
from agents.web.sockets.database import database_to_async
from agents.web.sockets.feeds import (
    REDIS_FAILURES,
    RETRY_S,
    CloseCode,
    Feed,
    Subscriber,
    finish_in_background,
    subscribe,
    unsubscribe,
)
from agents.web.sockets.inbox_feed import InboxFeed, InboxSubscriber
from agents.web.sockets.run_feed import RunFeed, RunSubscriber, SocketMessage, read_messages
from agents.web.sockets.viewers import Viewer, authenticate_viewer

logger = logging.getLogger(__name__)

MAX_MESSAGE_LENGTH = 4096
LARGEST_SEQ = 2**31 - 1


class FeedConsumer(AsyncJsonWebsocketConsumer, ABC):  # type: ignore[misc]  # Channels is not typed
    """The base of both consumers: it checks the viewer, and sends news until the subscription
    ends."""

    channel_layer_alias = "none"
    """The settings have no layer of this name, so Channels gives the consumer no channel in
    Redis."""
    subscriber: Subscriber | None = None
    _sending: asyncio.Task[None] | None = None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Serve the socket, and then stop sending; a browser may disconnect at any time."""
        try:
            with suppress(Disconnected):
                await super().__call__(scope, receive, send)
        finally:
            if self._sending is not None:
                self._sending.cancel()

    async def connect(self) -> None:
        """Accept the socket before any check, because a browser receives a close code only from an
        open socket."""
        await self.accept()
        try:
            viewer = await authenticate_viewer(self.scope)
            if viewer is None:
                await self.close(int(CloseCode.NOT_LOGGED_IN))
            elif not await self.may_watch(viewer):
                await self.close(int(CloseCode.NOT_FOUND))
            else:
                self.subscriber = self.create_subscriber(viewer)
                self._sending = asyncio.create_task(self._send_changes(self.subscriber))
                self._sending.add_done_callback(self._notice_end)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("could not open a socket: %s", describe_outage(error) or error)
            await self.close(int(CloseCode.FAILED))

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None, **_: Any
    ) -> None:
        """Forward JSON and ignore anything else; a message that is too long ends the
        subscription."""
        if self.subscriber is None:
            return
        if max(len(text_data or ""), len(bytes_data or b"")) > MAX_MESSAGE_LENGTH:
            self.subscriber.end(CloseCode.TOO_LONG)
            return
        try:
            content = json.loads(text_data or "")
        except (ValueError, RecursionError):
            return
        await self.receive_json(content)

    async def disconnect(self, _code: int) -> None:
        """Stop sending, and thereby end the subscription."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])

    @abstractmethod
    async def may_watch(self, viewer: Viewer) -> bool:
        """Return True if the viewer's organization owns the run or inbox of this address."""

    @abstractmethod
    def create_subscriber(self, viewer: Viewer) -> Subscriber:
        """Create a subscriber for this viewer."""

    @abstractmethod
    def subscribe(self, subscriber: Any) -> Feed:
        """Subscribe to the feed of this address."""

    @abstractmethod
    async def send_news(self, feed: Any, subscriber: Any) -> bool:
        """Send news to the subscriber; return True if there may be more."""

    async def _send_changes(self, subscriber: Subscriber) -> None:
        feed = self.subscribe(subscriber)
        try:
            while subscriber.close_code is None:
                subscriber.news.clear()
                if not await self.send_news(feed, subscriber):
                    await subscriber.news.wait()
            await self.close(int(subscriber.close_code))
        except Disconnected:
            return  # the browser has disconnected, and Channels is about to call `disconnect`
        finally:
            unsubscribe(feed, subscriber)

    def _notice_end(self, sending: asyncio.Task[None]) -> None:
        """Close the socket if sending failed, instead of leaving it open and silent."""
        error = None if sending.cancelled() else sending.exception()
        if error is not None:
            logger.error("could not serve a socket", exc_info=error)
            finish_in_background(self.close(int(CloseCode.FAILED)))


class RunConsumer(FeedConsumer):
    """The consumer for `/ws/runs/<id>/?after=SEQ`, with `&status=1` for browsers that also want
    `run_status`."""

    subscriber: RunSubscriber | None = None

    @property
    def run_id(self) -> int:
        return int(self.scope["url_route"]["kwargs"]["run_id"])

    async def may_watch(self, viewer: Viewer) -> bool:
        return bool(await _is_in_organization(self.run_id, viewer.organization_id))

    def create_subscriber(self, viewer: Viewer) -> RunSubscriber:
        query = parse_qs(self.scope["query_string"].decode("latin-1"))
        cursor = _parse_seq(query.get("after", ["0"])[0])
        return RunSubscriber(viewer, cursor, wants_state=query.get("status") == ["1"])

    def subscribe(self, subscriber: RunSubscriber) -> RunFeed:
        return subscribe(
            notify.get_run_group(self.run_id), subscriber, lambda group: RunFeed(group, self.run_id)
        )

    async def receive_json(self, content: Any, **_: Any) -> None:
        """Resume at `{"after": SEQ}`; ignore anything else."""
        after = content.get("after") if isinstance(content, dict) else None
        if type(after) is int and 0 <= after <= LARGEST_SEQ and self.subscriber is not None:
            self.subscriber.request_events_after(after)

    async def send_news(self, feed: RunFeed, subscriber: RunSubscriber) -> bool:
        subscriber.apply_request()
        messages = feed.find_messages(subscriber.cursor)
        if messages is None:
            messages = await self._read_own_messages(subscriber)
        for message in messages:
            await self.send(text_data=message.text)
            subscriber.cursor = message.seq
        if (piece := feed.take_unsent_text(subscriber)) is not None:
            await self.send(text_data=piece)
        if not messages and (state := feed.find_unsent_state(subscriber)):
            subscriber.sent_state = state
            await self.send(text_data=state.to_json())
        return bool(messages)

    async def _read_own_messages(self, subscriber: RunSubscriber) -> list[SocketMessage]:
        """Read the database for a subscriber that is too far behind for the messages that the feed
        keeps."""
        try:
            allowed, messages = await read_messages(
                self.run_id, subscriber.cursor, {subscriber.viewer}
            )
        except (DatabaseError, InterfaceError) as error:
            logger.warning("could not read for a socket: %s", error)
            await asyncio.sleep(RETRY_S)
            subscriber.news.set()
            return []
        if not allowed:
            subscriber.end(CloseCode.NOT_LOGGED_IN)
        return list(messages)


class InboxConsumer(FeedConsumer):
    """The consumer for `/ws/inbox/`, with `?rows=1` for pages that show the list of waiting
    cards."""

    subscriber: InboxSubscriber | None = None

    async def may_watch(self, _viewer: Viewer) -> bool:
        return True

    def create_subscriber(self, viewer: Viewer) -> InboxSubscriber:
        query = parse_qs(self.scope["query_string"].decode("latin-1"))
        return InboxSubscriber(viewer, wants_rows=query.get("rows") == ["1"])

    def subscribe(self, subscriber: InboxSubscriber) -> InboxFeed:
        organization_id = subscriber.viewer.organization_id
        return subscribe(
            notify.get_inbox_group(organization_id),
            subscriber,
            lambda group: InboxFeed(group, organization_id),
        )

    async def send_news(self, feed: InboxFeed, subscriber: InboxSubscriber) -> bool:
        for message in feed.take_messages(subscriber):
            await self.send(text_data=message)
        while subscriber.presence:
            await self.send(text_data=subscriber.presence.popleft())
        return False

    async def receive_json(self, content: Any, **_: Any) -> None:
        """Show others that this viewer is looking at a card after `{"looking_at": ID}`; ignore any
        other message."""
        subscriber = self.subscriber
        look = Look.read(subscriber.viewer.username, content) if subscriber is not None else None
        if subscriber is not None and look is not None and subscriber.may_show_itself():
            with suppress(*REDIS_FAILURES):
                await notify.hint_inbox(subscriber.viewer.organization_id, look.hint)


def _parse_seq(text: str) -> int:
    digits = text if text.isascii() and text.isdigit() else "0"
    return min(int(digits[:12]), LARGEST_SEQ)


@database_to_async
def _is_in_organization(run_id: int, organization_id: int) -> bool:
    return (
        run_id <= LARGEST_ID
        and Run.objects.filter(pk=run_id, organization_id=organization_id).exists()
    )
