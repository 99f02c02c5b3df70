"""Wait for the decision on an ask before Django sees the request, because a request inside Django
holds a thread.

Django responds immediately to `GET /api/asks/ID?wait_s=N`; only the request's arrival there is
delayed.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from typing import Any
from urllib.parse import parse_qs

from django.utils import timezone

from agents.gateway.keys import authenticate_key
from agents.gateway.redemptions import AskState, find_own_ask, load_state
from agents.platform.refusals import Refusal
from agents.runs.models import CallStatus
from agents.web.sockets.call_feed import wait_for_call
from agents.web.sockets.database import database_to_async

_PATH = re.compile(r"/api/asks/(\d{1,18})/?")
_MAX_WAIT_S = 30.0
_CLOCK_MARGIN_S = 0.1
MAX_WAITING = 100
"""The maximum number of requests of one key that may wait for decisions in one process; further
requests get a response immediately."""


class AskWaiting:
    """ASGI middleware that holds back an agent's request until its ask is decided, or the requested
    time has passed."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._waiting: Counter[int] = Counter()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if wait_s := _read_wait(scope):
            request = await _read_request(receive)
            if request is None:
                return
            # After the body, the only message that can still arrive is the disconnection.
            gone = asyncio.ensure_future(receive())
            waiting = asyncio.ensure_future(self._wait(scope, wait_s))
            await asyncio.wait({gone, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                waiting.cancel()
                return
            waiting.result()
            receive = _receive_again(request, gone)
        await self._application(scope, receive, send)

    async def _wait(self, scope: dict[str, Any], wait_s: float) -> None:
        """Wait for the decision, and then until it can no longer be undone, for at most `wait_s`
        seconds in all."""
        ends_at = time.monotonic() + wait_s
        if (state := await _find_undecided(scope)) is not None and self._waiting[
            state.ask.key_id
        ] < MAX_WAITING:
            await self._wait_for_decision(state, wait_s)
        if (left := ends_at - time.monotonic()) > 0 and (
            undo_s := await _find_time_to_undo(scope)
        ) > 0:
            await asyncio.sleep(min(left, undo_s))

    async def _wait_for_decision(self, state: AskState, wait_s: float) -> None:
        self._waiting[state.ask.key_id] += 1
        try:
            await wait_for_call(
                state.call, lambda status: status != CallStatus.AWAITING_APPROVAL, wait_s
            )
        finally:
            self._waiting[state.ask.key_id] -= 1


async def _read_request(receive: Any) -> Any:
    """Receive the whole request, and discard its body; return None if the client disconnects."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        if not message.get("more_body", False):
            return {**message, "body": b""}


def _receive_again(request: Any, then: asyncio.Future[Any]) -> Any:
    """Return a `receive` function that returns the request first, and then the connection's later
    events."""
    left = [request]

    async def receive() -> Any:
        return left.pop() if left else await then

    return receive


def _read_wait(scope: dict[str, Any]) -> float:
    """Return the number of seconds that the request wants to wait; 0 if it does not ask for this.
    An invalid number also gives 0, because Django reports the error."""
    if scope["method"] != "GET" or not _PATH.fullmatch(scope["path"]):
        return 0
    given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("wait_s", [""])[0]
    try:
        wait_s = float(given)
    except ValueError:
        return 0
    return wait_s if 0 < wait_s <= _MAX_WAIT_S else 0


@database_to_async
def _find_undecided(scope: dict[str, Any]) -> AskState | None:
    """Return the agent's own ask if nobody has decided it yet; None otherwise."""
    state = _load_own(scope)
    return (
        state if state is not None and state.call.status == CallStatus.AWAITING_APPROVAL else None
    )


@database_to_async
def _find_time_to_undo(scope: dict[str, Any]) -> float:
    """Return the number of seconds left to undo the approval of the agent's own ask; 0 if it cannot
    be undone."""
    state = _load_own(scope)
    if state is None or state.call.status != CallStatus.APPROVED or state.card.start_after is None:
        return 0.0
    return (state.card.start_after - timezone.now()).total_seconds() + _CLOCK_MARGIN_S


def _load_own(scope: dict[str, Any]) -> AskState | None:
    """Load the ask if it belongs to the caller; return None otherwise."""
    headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
    scheme, _, secret = headers.get(b"authorization", "").partition(" ")
    key = authenticate_key(secret.strip()) if scheme.lower() == "bearer" else None
    found = _PATH.fullmatch(scope["path"])
    if key is None or found is None:
        return None
    try:
        return load_state(find_own_ask(key, found[1]))
    except Refusal:
        return None
