"""The endpoint of the MCP server at `/mcp`. It checks the key, rate and size of each request, and
passes the request to the SDK.

The server keeps no state between requests: a client's session is a signed token, and its data is in
the database.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from agents.gateway.keys import describe_refused_key, refuse_flood
from agents.gateway.sessions import end_session
from agents.mcp_server.callers import SCOPE_KEY, Caller, SessionToken, authenticate_caller
from agents.mcp_server.database import DOOR, database_to_async
from agents.mcp_server.messages import (
    BadMessage,
    accept_both,
    build_error,
    check_version,
    opens_session,
    read_message,
    takes_only_json,
)
from agents.platform.rate_limits import count_or_wait
from agents.platform.refusals import TooManyRequests

PATH = "/mcp"
SESSION_HEADER = b"mcp-session-id"
LARGEST_BODY = 1_000_000
"""The maximum size of a request's body, in bytes."""
MAX_WRONG_KEYS_PER_MINUTE = 30
"""The maximum number of requests without a working key that one address may send in a minute. After
that, only requests with a working key are accepted from that address."""

Scope = dict[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@dataclass(frozen=True)
class _Refusal(Exception):
    """A request that is refused before the SDK sees it."""

    status: int
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


class McpDoor:
    """The ASGI application of `/mcp`."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            caller = await _admit(scope)
            if scope["method"] == "DELETE":
                await _end(caller)
                await _respond(send, 204, b"")
                return
            if scope["method"] != "POST":
                raise _Refusal(
                    405, "Only POST and DELETE are served here.", ((b"allow", b"POST, DELETE"),)
                )
            body = await _read_body(receive)
            message = read_message(body)
            check_version(scope, message)
        except _Refusal as refusal:
            await _respond(
                send, refusal.status, build_error(-32600, refusal.message), refusal.headers
            )
            return
        except BadMessage as problem:
            await _respond(
                send, 400, build_error(problem.code, problem.text, problem.message_id, problem.data)
            )
            return
        if opens_session(scope, message):
            send = _add_session(send, str(SessionToken.create(caller.key)))
        await self._serve({**scope, SCOPE_KEY: caller}, _receive_again(body, receive), send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the SDK serve the request with a session manager of its own, so that nothing outlives
        the request."""
        manager = StreamableHTTPSessionManager(
            self._server, stateless=True, json_response=takes_only_json(scope)
        )
        async with manager.run():
            await manager.handle_request(accept_both(scope), receive, send)


async def _admit(scope: Scope) -> Caller:
    headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
    scheme, _, secret = headers.get(b"authorization", "").partition(" ")
    site = settings.GADGET_ORIGIN or f"{scope.get('scheme', 'http')}://{headers.get(b'host', '')}"
    key = secret.strip() if scheme.lower() == "bearer" else ""
    found: Caller | None = await _authenticate_caller(key, headers.get(SESSION_HEADER), site)
    if found is None:
        address = (scope.get("client") or ["?"])[0]
        if wait_s := count_or_wait(f"wrong-agent-keys:{address}", MAX_WRONG_KEYS_PER_MINUTE):
            raise _Refusal(429, "Too many wrong keys.", ((b"retry-after", b"%d" % wait_s),))
        why = await _describe_refused_key(key)
        raise _Refusal(401, why, ((b"www-authenticate", _build_challenge(why if key else "")),))
    try:
        refuse_flood(found.key)
    except TooManyRequests as refusal:
        raise _Refusal(
            429, refusal.detail, ((b"retry-after", b"%d" % refusal.extra["retry_after"]),)
        ) from None
    if not found.has_session:
        raise _Refusal(404, "Session not found")
    return found


_authenticate_caller = database_to_async(authenticate_caller, DOOR)
_describe_refused_key = database_to_async(describe_refused_key, DOOR)


def _build_challenge(why: str) -> bytes:
    """Build the header `WWW-Authenticate` as RFC 6750 specifies: it names an error only if a key
    was sent."""
    error = f', error="invalid_token", error_description="{why}"' if why else ""
    return f'Bearer realm="Gadget"{error}'.encode()


@database_to_async
def _end(caller: Caller) -> None:
    if (session := caller.open_session()) is not None:
        end_session(session)


async def _read_body(receive: Receive) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Refusal(400, "The request was cut off.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LARGEST_BODY:
            raise _Refusal(413, f"A request may have at most {LARGEST_BODY:,} bytes.")
        if not message.get("more_body", False):
            return b"".join(parts)


def _receive_again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first returns the body, which was already read, and then the
    connection's further events."""
    left = [body]

    async def receive_again() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return receive_again


def _add_session(send: Send, session: str) -> Send:
    """Return a `send` that adds the session to the headers of a successful response."""

    async def send_with_session(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            message = {
                **message,
                "headers": [*message["headers"], (SESSION_HEADER, session.encode())],
            }
        await send(message)

    return send_with_session


async def _respond(
    send: Send, status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    head = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
