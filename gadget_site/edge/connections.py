"""Daphne's connections with limits: a body that is too large is refused while it arrives.

Daphne itself stores a complete body in a temporary file before it calls the application.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import structlog
from channels.db import database_sync_to_async
from daphne.http_protocol import HTTPFactory, WebRequest
from django.db import Error as DatabaseError

from gadget_site.edge.bodies import LARGEST, WITHOUT_LOGIN, RequestSender, get_body_limit
from gadget_site.edge.bounded_responses import WITHOUT_BODY

log = structlog.get_logger(__name__)

LINGER_S = 5
"""The number of seconds for which a refused client may keep sending: if its connection were closed
immediately, it might never see the response."""

TOO_LARGE = (413, "Content Too Large", "too_large", "The request is too large.")
DATABASE_AWAY = (
    503,
    "Service Unavailable",
    "database_away",
    "The database does not respond. Try again.",
)


class BoundedFactory(HTTPFactory):  # type: ignore[misc]
    """A factory of connections with bounded requests."""

    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802  (Twisted's name)
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = BoundedRequest
        return protocol


class BoundedRequest(WebRequest):  # type: ignore[misc]
    """One request, from its head to the end of its response."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Otherwise, Twisted would parse forms in the event loop, and the result would not be used.
        super().__init__(*args, **{**kwargs, "parsePOSTFormSubmission": False})
        self._limit = WITHOUT_LOGIN
        self._received = 0
        self._is_refused = False
        self._admission: asyncio.Future[None] | None = None

    # Methods that Twisted calls, in this order

    def gotLength(self, length: int | None) -> None:  # noqa: N802
        """Judge the request by its head; `length` is None if the body is chunked."""
        self.requestHeaders.removeHeader(b"daphne-root-path")
        sender = RequestSender(
            self._get_header(b"cookie", "; "), self._get_header(b"authorization", ",")
        )
        is_small = length is not None and length <= WITHOUT_LOGIN
        if length is not None and (length > LARGEST or not (is_small or sender.has_credentials)):
            self._refuse(TOO_LARGE)
            return
        super().gotLength(length)
        if not is_small and sender.has_credentials:
            self.transport.pauseProducing()
            path = self.channel._path.partition(b"?")[0].decode("ascii", "replace")
            self._admission = asyncio.ensure_future(self._admit(sender, path, length))

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        """Store a chunk of the body, unless it exceeds the limit."""
        self._received += len(data)
        if self._received > self._limit:
            self._refuse(TOO_LARGE)
        if not self._is_refused:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:  # noqa: N802
        """Pass a complete request on, unless it was refused."""
        if not self._is_refused:
            super().requestReceived(command, path, version)

    def finish(self) -> None:
        """End the response. After a truncated response, close the connection; otherwise, the client
        would mistake the next response for the missing part."""
        announced = self.responseHeaders.getRawHeaders(b"content-length", [b""])[0]
        is_complete = (
            self.method == b"HEAD"
            or self.code in WITHOUT_BODY
            or announced in (b"", b"%d" % self.sentLength)
        )
        if not is_complete and self.channel is not None:
            self.channel.persistent = False
        super().finish()

    # Our own additions

    async def _admit(self, sender: RequestSender, path: str, length: int | None) -> None:
        """Raise the limit for logged-in people; reading pauses until the database has identified
        the sender."""
        transport = self.transport
        try:
            limit = await database_sync_to_async(get_body_limit, thread_sensitive=False)(
                sender, path
            )
        except DatabaseError:
            log.warning("the database could not identify the sender of a large request", path=path)
            limit = 0
        self._limit = max(limit, WITHOUT_LOGIN)
        # Do not refuse a chunked request here: it may be small, and already have its response.
        if length is not None and length > limit:
            self._refuse(TOO_LARGE if limit else DATABASE_AWAY)
        transport.resumeProducing()

    def _get_header(self, name: bytes, separator: str) -> str:
        values = self.requestHeaders.getRawHeaders(name) or []
        return separator.join(value.decode("latin-1") for value in values)

    def _refuse(self, reason: tuple[int, str, str, str]) -> None:
        """Respond immediately, discard the rest of the request, and close the connection."""
        if self._is_refused or self.channel is None:
            return
        self._is_refused = True
        self.requestHeaders.removeHeader(b"expect")  # or Twisted would still ask for the body
        channel = self.channel
        log.info(
            "request refused", status=reason[0], path=channel._path[:200].decode("ascii", "replace")
        )
        channel.dataReceived = channel.lineReceived = channel.rawDataReceived = _discard
        channel.transport.write(_build_response(reason, is_api=channel._path.startswith(b"/api/")))
        channel.setTimeout(LINGER_S)
        channel.transport.loseWriteConnection()
        channel.transport.resumeProducing()


def _discard(_data: bytes) -> None:
    """Ignore data of a refused request."""


def _build_response(reason: tuple[int, str, str, str], is_api: bool) -> bytes:
    status, title, code, detail = reason
    problem = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
    }
    kind = "application/problem+json" if is_api else "text/plain; charset=utf-8"
    body = (json.dumps(problem) if is_api else f"{detail}\n").encode()
    head = (
        f"HTTP/1.1 {status} {title}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        "Content-Security-Policy: default-src 'none'\r\n\r\n"
    )
    return head.encode() + body
