"""An HTTP API on loopback that records every request unchanged and sends the responses that a test
sets."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from tools.contract import NetworkAccess, ToolResult
from tools.sources.openapi import (
    ApiConnection,
    AuthenticationSettings,
    OpenAPITool,
    TokenCache,
    read_description,
)
from tools.testing import run_tool

REACH = NetworkAccess(private=frozenset({"127.0.0.1"}))


@dataclass(frozen=True)
class Received:
    """A received request; `target` is the path and query of the request line."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """A response that the API will send."""

    status: int = 200
    content: bytes = b'{"ok":true}'
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


class Outside:
    """An outside API: it sends each of `replies` once, then always `{"ok": true}`; `/token` issues
    tokens.

    Attributes:
        takes_basic: False if `/token` wants the client's id and secret in the body.
        held: paths whose responses wait until `released` is set.
    """

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.replies: list[Reply] = []
        self.tokens_given = 0
        self.token_lives_s = 3600
        self.takes_basic = True
        self.held: set[str] = set()
        self.released = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.outside = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), name="outside", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def last(self) -> Received:
        return self.received[-1]

    def stop(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def call(
        self,
        tool: OpenAPITool,
        params: dict[str, Any] | None = None,
        credentials: dict[str, Any] | None = None,
    ) -> ToolResult:
        """Return the result of one call, as a model would get it."""
        return run_tool(tool, params or {}, credentials=credentials or {}, reach=REACH)

    def tool(
        self,
        paths: dict[str, Any],
        authentication: AuthenticationSettings | None = None,
        **more: Any,
    ) -> OpenAPITool:
        """Return the tool made from the only operation in these paths; `more` is added to the
        description."""
        authentication = authentication or AuthenticationSettings()
        description = read_description(described(paths, **more), provided=authentication.body_names)
        (operation,) = description.operations
        connection = ApiConnection("api", self.url, authentication=authentication)
        return OpenAPITool(operation, connection, tokens=TokenCache())


def described(paths: dict[str, Any], version: str = "3.1.0", **more: Any) -> str:
    """Return the text of a description with these paths."""
    which = {"swagger": version} if version == "2.0" else {"openapi": version}
    return json.dumps({**which, "info": {"title": "Pets", "version": "1"}, "paths": paths, **more})


@contextmanager
def running() -> Iterator[Outside]:
    outside = Outside()
    try:
        yield outside
    finally:
        outside.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    outside: Outside


class _Handler(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        assert isinstance(self.server, _Server)
        outside = self.server.outside
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        outside.received.append(Received(self.command, self.path, headers, body))
        if self.path in outside.held:
            outside.released.wait()
        if self.path == "/token":
            is_refused = "authorization" in headers and not outside.takes_basic
            reply = (
                Reply(401, b'{"error":"invalid_client"}')
                if is_refused
                else self._token(outside, body)
            )
        else:
            reply = outside.replies.pop(0) if outside.replies else Reply()
        with suppress(BrokenPipeError, ConnectionResetError):  # the client may have disconnected
            self._send(reply)

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.content)

    def _token(self, outside: Outside, body: bytes) -> Reply:
        if parse_qs(body.decode()).get("grant_type") != ["client_credentials"]:
            return Reply(400, b'{"error":"unsupported_grant_type"}')
        outside.tokens_given += 1
        told = {
            "access_token": f"access-token-{outside.tokens_given}",
            "expires_in": outside.token_lives_s,
        }
        return Reply(content=json.dumps(told).encode())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _answer  # noqa: N815 - the server's names

    def log_message(self, *_: object) -> None:
        """Do not log requests; tests read the received requests instead."""
