"""The sockets: who may look gets the run's events by number, or how many cards wait and whether everything is stopped.

Each socket is a plain ASGI application without a channel of its own, so that it outlives Redis: bells are the
feed's affair.
Close codes: 4401 no login (or it ended), 4404 not there or another organisation's, 4413 a message that is too long,
4500 a fault of ours. (The server sends none below 3000 for us, except 1000.)
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from autobahn.exception import Disconnected
from django.db import DatabaseError, InterfaceError

from agents.accounts.membership import hash_of, member_in_session, member_with_token
from agents.platform import notify
from agents.platform.database_condition import condition_of
from agents.platform.queries.runs import RUN_OWNER, RunOwner
from agents.platform.row_ids import LARGEST_ID
from agents.web.sockets.feeds import REST_AFTER_FAILURE_S, Seat, Viewer, in_thread, leave, sit_down
from agents.web.sockets.inbox_feed import InboxFeed, InboxSeat
from agents.web.sockets.run_feed import RunFeed, RunSeat, Sendable, read_page

logger = logging.getLogger(__name__)

NO_LOGIN = 4401
NOT_THERE = 4404
TOO_LONG = 4413
FAILED = 4500
LONGEST_INPUT = 4096
LARGEST_SEQ = 2**31 - 1

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Closed(Exception):
    """The socket is to be closed with this code; 0 if the browser closed it."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


async def run_socket(scope: Scope, receive: Receive, send: Send) -> None:
    """/ws/runs/<id>/?after=SEQ, and &status=1 for who also wants `run_status`."""
    await _served(scope, receive, send, _run_served)


async def inbox_socket(scope: Scope, receive: Receive, send: Send) -> None:
    """/ws/inbox/"""
    await _served(scope, receive, send, _inbox_served)


async def _served(
    scope: Scope, receive: Receive, send: Send, serve: Callable[[Scope, Receive, Send], Awaitable[None]]
) -> None:
    """Accepts first, because a browser learns a close code only from a socket that was open."""
    send = _unless_gone(send)
    with suppress(Closed):
        await receive()
        await send({"type": "websocket.accept"})
        try:
            await serve(scope, receive, send)
        except Closed as closed:
            if closed.code:
                await send({"type": "websocket.close", "code": closed.code})
        except (DatabaseError, InterfaceError) as error:
            logger.warning("a socket could not begin: %s", condition_of(error) or error)
            await send({"type": "websocket.close", "code": FAILED})


def _unless_gone(send: Send) -> Send:
    """Sends; a browser that has gone just now, before its farewell was heard, ends the socket like any other end."""

    async def sending(message: dict[str, Any]) -> None:
        try:
            await send(message)
        except Disconnected as gone:
            raise Closed(0) from gone

    return sending


async def _run_served(scope: Scope, receive: Receive, send: Send) -> None:
    viewer = await _viewer_of(scope)
    run_id = scope["url_route"]["kwargs"]["run_id"]
    if viewer is None:
        raise Closed(NO_LOGIN)
    if not await _is_theirs(run_id, viewer):
        raise Closed(NOT_THERE)
    query = parse_qs(scope["query_string"].decode("latin-1"))
    seat = RunSeat(viewer, _seq_in(query.get("after", ["0"])[0]), follows=query.get("status") == ["1"])
    group = notify.run_group(run_id)
    feed = sit_down(group, seat, lambda name: RunFeed(name, run_id))
    assert isinstance(feed, RunFeed)
    try:
        await _both(_send_events(feed, seat, send), _hear(receive, seat))
    finally:
        leave(feed, seat)


async def _inbox_served(scope: Scope, receive: Receive, send: Send) -> None:
    viewer = await _viewer_of(scope)
    if viewer is None:
        raise Closed(NO_LOGIN)
    seat = InboxSeat(viewer)
    group = notify.inbox_group(viewer.organization_id)
    feed = sit_down(group, seat, lambda name: InboxFeed(name, viewer.organization_id))
    assert isinstance(feed, InboxFeed)
    try:
        await _both(_send_counts(feed, seat, send), _hear(receive, seat))
    finally:
        leave(feed, seat)


async def _both(sending: Awaitable[None], hearing: Awaitable[None]) -> None:
    """Sends and hears until either ends; the other is ended with it."""
    tasks = [asyncio.ensure_future(sending), asyncio.ensure_future(hearing)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()


async def _send_events(feed: RunFeed, seat: RunSeat, send: Send) -> None:
    while True:
        await _still_welcome(seat)
        seat.woken.clear()
        seat.last, seat.resume = seat.last if seat.resume is None else seat.resume, None
        page = feed.since(seat.last)
        if page is None:
            page = await _own_page(feed.run_id, seat)
        for sendable in page:
            await _say(send, sendable.text)
        if page:
            seat.last = page[-1].seq
        while seat.deltas:
            await _say(send, seat.deltas.popleft())
        if not page and (state := feed.untold(seat)):
            seat.told = state
            await _say(send, state.as_text())
        if not page:
            await seat.woken.wait()


async def _own_page(run_id: int, seat: RunSeat) -> list[Sendable]:
    """For a reader who is further behind than what the feed keeps."""
    try:
        allowed, page = await read_page(run_id, seat.last, {seat.viewer})
    except (DatabaseError, InterfaceError) as error:
        logger.warning("a socket could not read: %s", error)
        await asyncio.sleep(REST_AFTER_FAILURE_S)
        seat.woken.set()
        return []
    if not allowed:
        raise Closed(NO_LOGIN)
    sent: list[Sendable] = page
    return sent


async def _send_counts(feed: InboxFeed, seat: InboxSeat, send: Send) -> None:
    while True:
        await _still_welcome(seat)
        seat.woken.clear()
        if feed.state is not None and feed.state != seat.seen:
            seat.seen = feed.state
            await _say(send, json.dumps({"type": "inbox_changed", "payload": feed.state.as_payload()}))
        await seat.woken.wait()


async def _hear(receive: Receive, seat: Seat) -> None:
    """`{"after": SEQ}` resumes a run's events; anything else is ignored, and what is too long ends the socket."""
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            raise Closed(0)
        text = message.get("text") or ""
        if len(text) > LONGEST_INPUT or len(message.get("bytes") or b"") > LONGEST_INPUT:
            raise Closed(TOO_LONG)
        after = _after_in(text)
        if after is not None and isinstance(seat, RunSeat):
            seat.resume = after
            seat.woken.set()


async def _still_welcome(seat: Seat) -> None:
    if seat.has_failed:
        raise Closed(FAILED)
    if seat.is_expelled:
        raise Closed(NO_LOGIN)


async def _say(send: Send, text: str) -> None:
    await send({"type": "websocket.send", "text": text})


def _after_in(text: str) -> int | None:
    try:
        after = json.loads(text)["after"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    is_seq = isinstance(after, int) and not isinstance(after, bool) and 0 <= after <= LARGEST_SEQ
    return after if is_seq else None


def _seq_in(text: str) -> int:
    digits = text if text.isascii() and text.isdigit() else "0"
    return min(int(digits[:12]), LARGEST_SEQ)


@in_thread
def _viewer_of(scope: Scope) -> Viewer | None:
    """Who asks: an API token if one is sent (a wrong one is nobody), else the browser's session."""
    headers = {name.lower(): value for name, value in scope["headers"]}
    scheme, _, secret = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if scheme.lower() == "bearer":
        member = member_with_token(secret.strip())
        return Viewer(member.pk, member.organization_id, token_hash=hash_of(secret.strip())) if member else None
    session = scope["session"]
    member = member_in_session(scope["user"], session)
    if member is None:
        return None
    key = session.session_key or ""
    return Viewer(member.pk, member.organization_id, session_key=key, password_hash=hash_of(member.user.password))


@in_thread
def _is_theirs(run_id: int, viewer: Viewer) -> bool:
    return run_id <= LARGEST_ID and RUN_OWNER.row(run_id) == RunOwner(viewer.organization_id)
