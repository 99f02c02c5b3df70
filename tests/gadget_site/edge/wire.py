"""A client at the level of bytes: raw requests and raw responses."""

from __future__ import annotations

import select
import socket
from dataclasses import dataclass

PATIENCE_S = 20.0


@dataclass(frozen=True)
class WireResponse:
    """One response, read from the connection exactly to its announced end."""

    status: int
    headers: dict[str, str]
    body: bytes


class Wire:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self._buffer = b""

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def ask(
        self, method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b""
    ) -> WireResponse:
        """Send a request and read its response."""
        self.send(request(method, path, headers, body))
        return self.read_response(method)

    def read_response(self, method: str = "GET") -> WireResponse:
        """Read the next response from the connection."""
        head = self._until(b"\r\n\r\n").decode("latin-1")
        status, *lines = head.strip().split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        code = int(status.split(" ")[1])
        assert status.startswith("HTTP/1.1 "), status
        has_body = method != "HEAD" and code not in (204, 304)
        return WireResponse(code, headers, self._body(headers) if has_body else b"")

    def is_silent(self, seconds: float = 0.15) -> bool:
        """Return True if there is nothing left to read and no data arrives for a moment."""
        return not self._buffer and not select.select([self._socket], [], [], seconds)[0]

    def rest(self) -> bytes:
        """Return all bytes until the server closes the connection."""
        while data := self._socket.recv(1 << 16):
            self._buffer += data
        return self._buffer

    def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") == "chunked":
            parts = []
            while size := int(self._until(b"\r\n"), 16):
                parts.append(self._take(size + 2)[:-2])
            self._take(2)
            return b"".join(parts)
        return self._take(int(headers["content-length"]))

    def _until(self, end: bytes) -> bytes:
        while end not in self._buffer:
            self._receive()
        return self._take(self._buffer.index(end) + len(end))

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._receive()
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def _receive(self) -> None:
        data = self._socket.recv(1 << 16)
        assert data, f"the server closed the connection after {self._buffer[:200]!r}"
        self._buffer += data


def request(
    method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b""
) -> bytes:
    """Build the bytes of a request; a body gets its Content-Length."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body
