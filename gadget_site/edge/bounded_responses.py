"""Keep responses within their announced length: later bytes on the connection belong to the next
response.

Daphne drops only the first chunk of a body that must not be sent. Every later chunk would reach a
client, or a proxy that shares connections between people, as the beginning of the next response.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

Message = dict[str, Any]
Send = Callable[[Message], Awaitable[None]]

WITHOUT_BODY = frozenset({204, 304})


class BoundedResponses:
    """Middleware that sends no body after HEAD, 204 and 304, and never more than the announced
    length."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Send) -> Any:
        return await self._application(scope, receive, _Response(scope["method"], send))


class _Response:
    """One response on its way to the client."""

    def __init__(self, method: str, send: Send) -> None:
        self._method = method
        self._send = send
        self._left: int | None = None
        self._is_complete = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._start(message)
        elif message["type"] == "http.response.body":
            await self._continue(message)
        else:
            await self._send(message)

    async def _start(self, message: Message) -> None:
        await self._send(message)
        if self._method == "HEAD" or message["status"] in WITHOUT_BODY:
            self._is_complete = True
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            self._left = _get_announced_length(message.get("headers", ()))

    async def _continue(self, message: Message) -> None:
        if self._is_complete:
            return
        body: bytes = message.get("body", b"")
        if self._left is not None:
            body = body[: self._left]
            self._left -= len(body)
        self._is_complete = not message.get("more_body", False)
        await self._send({**message, "body": body})


def _get_announced_length(headers: Any) -> int | None:
    """Return the value of the Content-Length header; None if it is missing or not a number."""
    values = [value for name, value in headers if name.lower() == b"content-length"]
    return int(values[0]) if values and values[0].isdigit() else None
