"""A small web server over real sockets that sends the exact bytes a test sets, and records
requests."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from httpcore2 import NetworkStream, SyncBackend
from typing_extensions import override


@dataclass(frozen=True)
class Request:
    """A received request; header names are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Reply = bytes | Callable[[socket.socket, Request], None]


def reply(body: bytes = b"fine", status: str = "200 OK", **headers: str) -> bytes:
    """Build a complete response. Headers are given as arguments: `content_type="text/html"` becomes
    Content-Type."""
    given = {"content_length": str(len(body)), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


def redirect(where: str, status: str = "302 Found") -> bytes:
    return reply(b"", status, location=where)


def dripping(head: bytes, drip: bytes, pause_s: float = 0.02) -> Reply:
    """Build a response that never ends."""

    def answer(connection: socket.socket, _: Request) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(drip)
            time.sleep(pause_s)

    return answer


class WebServer:
    """A web server on a free port of 127.0.0.1.

    Attributes:
        routes: the responses by path; other paths get a 404.
        connections: the number of connections that were made.
        requests: the received requests.
    """

    def __init__(
        self, routes: dict[str, Reply] | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self.routes: dict[str, Reply] = routes or {}
        self.connections = 0
        self.requests: list[Request] = []
        self.ended = threading.Event()
        self._tls = tls
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            secured = (
                self._tls.wrap_socket(connection, server_side=True) if self._tls else connection
            )
            with secured:
                while (request := _read(secured)) is not None:
                    self.requests.append(request)
                    response = self.routes.get(
                        request.target.partition("?")[0], reply(b"", "404 Not Found")
                    )
                    if not isinstance(response, bytes):
                        response(secured, request)
                        return
                    secured.sendall(response)


def _read(connection: socket.socket) -> Request | None:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return None
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    method, target, _ = first.split(" ", 2)
    return Request(method, target, headers, body)


class CountingDial(SyncBackend):
    """Records every address that was tried, and connects to it, or to `instead`, so that tests
    never contact another machine."""

    def __init__(self, instead: str = "") -> None:
        self.tried: list[tuple[str, int]] = []
        self._instead = instead

    @override
    def connect_tcp(self, host: str, port: int, *args: object, **kwargs: object) -> NetworkStream:
        self.tried.append((host, port))
        return super().connect_tcp(self._instead or host, port, *args, **kwargs)  # type: ignore[arg-type]
