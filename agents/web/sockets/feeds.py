"""Feeds: one reader per run (or inbox) and process, shared by all sockets that look at it.

A bell says only "look": on every bell, and every 3 s without one, the feed reads the database once, checks who may
still look, and lets each socket send what is new to it. Redis away means no bells, nothing worse.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.db import DatabaseError, InterfaceError, connection, connections
from django.utils import timezone
from redis.exceptions import RedisError

from agents.accounts.membership import hash_of

logger = logging.getLogger(__name__)

Args = ParamSpec("Args")
Answer = TypeVar("Answer")

POLL_S = 3.0
REST_AFTER_FAILURE_S = 1.0
READERS = ThreadPoolExecutor(max_workers=4, thread_name_prefix="gadget-sockets")
HINTS_FAIL_WITH = (OSError, RedisError, asyncio.TimeoutError)


@dataclass(frozen=True)
class Viewer:
    """Who looks, and what proves it each time: the session, under the same password, or the token."""

    membership_id: int
    organization_id: int
    session_key: str = ""
    password_hash: str = ""
    token_hash: str = ""


class Seat(ABC):
    """One socket at a feed."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer
        self.woken = asyncio.Event()
        self.is_expelled = False
        self.has_failed = False

    def expel(self) -> None:
        """The right to look has ended."""
        self.is_expelled = True
        self.woken.set()

    def fail(self) -> None:
        """The feed broke; the browser may come again."""
        self.has_failed = True
        self.woken.set()

    @abstractmethod
    def hear(self, message: dict[str, Any]) -> None:
        """A message that is no bell, e.g. text while the model writes it."""


def in_thread(function: Callable[Args, Answer]) -> Callable[Args, Any]:
    """A database function for use with `await`; its connection goes back to the pool when it ends."""

    @functools.wraps(function)
    def closing(*args: Args.args, **kwargs: Args.kwargs) -> Answer:
        try:
            return function(*args, **kwargs)
        finally:
            connections.close_all()

    return sync_to_async(closing, thread_sensitive=False, executor=READERS)


class Feed(ABC):
    """Reads when the bell rings; lives as long as somebody sits at it."""

    def __init__(self, group: str) -> None:
        self.seats: set[Seat] = set()
        self.has_failed = False
        self.group = group
        self._rung = asyncio.Event()
        self._channel = f"{group}.{uuid.uuid4().hex}"
        self._is_deaf = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._read_on()), asyncio.create_task(self._listen())]
        for task in self._tasks:
            task.add_done_callback(self._notice_end)

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        _last_words(self._unsubscribe())

    def _notice_end(self, task: asyncio.Task[None]) -> None:
        """A fault of ours must not leave sockets that are open and silent."""
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        logger.error("the feed of %s broke", self.group, exc_info=error)
        self.has_failed = True
        for seat in self.seats:
            seat.fail()

    @abstractmethod
    async def read(self) -> None:
        """Look at the database once, expel who may not look any more, and wake the seats if there is news."""

    def expel_others(self, asked: set[Viewer], allowed: set[Viewer]) -> None:
        """Sends away who was asked about and may not look any more; who came meanwhile is asked about next time."""
        for seat in self.seats:
            if seat.viewer in asked - allowed:
                seat.expel()

    async def _read_on(self) -> None:
        while True:
            try:
                await self.read()
            except (DatabaseError, InterfaceError) as error:
                logger.warning("a feed could not read: %s", error)
                await asyncio.sleep(REST_AFTER_FAILURE_S)
                continue
            try:
                await asyncio.wait_for(self._rung.wait(), POLL_S)
            except TimeoutError:
                continue
            finally:
                self._rung.clear()

    async def _listen(self) -> None:
        """Hears the group's bells; begins again whenever Redis could not be reached."""
        layer = get_channel_layer()
        if layer is None:
            return
        while True:
            await self._hear_until_failure(layer)
            await asyncio.sleep(REST_AFTER_FAILURE_S)

    async def _hear_until_failure(self, layer: Any) -> None:
        """A channel exists for the layer while somebody receives from it, so that comes before joining the group."""
        hearing = asyncio.ensure_future(layer.receive(self._channel))
        try:
            await asyncio.sleep(0)
            await layer.group_add(self.group, self._channel)
            self._is_deaf = False
            self._rung.set()
            while True:
                message = await hearing
                hearing = asyncio.ensure_future(layer.receive(self._channel))
                if message["type"] == "bell":
                    self._rung.set()
                else:
                    for seat in self.seats:
                        seat.hear(message)
        except HINTS_FAIL_WITH as error:
            if not self._is_deaf:
                logger.warning("no bells for %s: %s; reading every %s s", self.group, type(error).__name__, POLL_S)
            self._is_deaf = True
        finally:
            await _ended(hearing)

    async def _unsubscribe(self) -> None:
        layer = get_channel_layer()
        try:
            if layer is not None:
                await layer.group_discard(self.group, self._channel)
        except HINTS_FAIL_WITH as error:
            logger.info("still subscribed to %s: %s", self.group, type(error).__name__)


async def _ended(task: asyncio.Future[Any]) -> None:
    """Ends it, and waits until it has put its things away."""
    task.cancel()
    with suppress(asyncio.CancelledError, *HINTS_FAIL_WITH):
        await task


_feeds: dict[tuple[int, str], Feed] = {}
_ending: set[asyncio.Task[None]] = set()


def _last_words(words: Coroutine[Any, Any, None]) -> None:
    """Lets something finish behind a feed that has ended."""
    task = asyncio.create_task(words)
    _ending.add(task)
    task.add_done_callback(_ending.discard)


def sit_down(group: str, seat: Seat, make: Callable[[str], Feed]) -> Feed:
    """The process' feed of this group, started with its first seat."""
    key = (id(asyncio.get_running_loop()), group)
    feed = _feeds.get(key)
    if feed is None or feed.has_failed:
        feed = _feeds[key] = make(group)
        feed.start()
    feed.seats.add(seat)
    return feed


def leave(feed: Feed, seat: Seat) -> None:
    """Ends the feed with its last seat."""
    key = (id(asyncio.get_running_loop()), feed.group)
    feed.seats.discard(seat)
    if not feed.seats:
        feed.stop()
        if _feeds.get(key) is feed:
            del _feeds[key]


# Asked on every bell: plain SQL, because making it through the ORM costs more than the database does.
GOOD_MEMBERS = (
    "SELECT member.id, member.organization_id, person.password FROM accounts_membership member"
    " JOIN auth_user person ON person.id = member.user_id WHERE person.is_active = %s AND member.id IN ({})"
)
GOOD_SESSIONS = "SELECT session_key FROM django_session WHERE expire_date > %s AND session_key IN ({})"
GOOD_TOKENS = "SELECT hash FROM accounts_apitoken WHERE revoked_at IS NULL AND hash IN ({})"


def still_allowed(viewers: set[Viewer]) -> set[Viewer]:
    """Those whose membership, user and session or token are still good; two or three queries for all of them."""
    members = _rows(GOOD_MEMBERS, [True], {viewer.membership_id for viewer in viewers})
    proofs = _rows(GOOD_SESSIONS, [timezone.now()], {viewer.session_key for viewer in viewers if viewer.session_key})
    proofs |= _rows(GOOD_TOKENS, [], {viewer.token_hash for viewer in viewers if viewer.token_hash})
    passwords = {(member_id, organization_id): hash_of(password) for member_id, organization_id, password in members}
    return {
        viewer
        for viewer in viewers
        if (password := passwords.get((viewer.membership_id, viewer.organization_id))) is not None
        and ((viewer.token_hash,) in proofs or ((viewer.session_key,) in proofs and viewer.password_hash == password))
    }


def _rows(sql: str, first: list[Any], wanted: set[Any]) -> set[tuple[Any, ...]]:
    if not wanted:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(sql.format(", ".join(["%s"] * len(wanted))), [*first, *wanted])
        return set(cursor.fetchall())
