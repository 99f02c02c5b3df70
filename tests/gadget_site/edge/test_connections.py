"""A connection in memory, for cases that no real page produces."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from daphne.server import Server
from twisted.internet.address import IPv4Address
from twisted.internet.testing import StringTransportWithDisconnection

from gadget_site.edge.connections import BoundedFactory

pytestmark = pytest.mark.once


def talk(application: Any, data: bytes) -> tuple[bytes, bool]:
    """Send the data; return the server's response, and True if the connection stays open."""

    async def main() -> tuple[bytes, bool]:
        server = Server(application=application, endpoints=["none"], server_name="")
        server.connections = {}
        protocol = BoundedFactory(server).buildProtocol(IPv4Address("TCP", "192.0.2.1", 1))
        transport: Any = StringTransportWithDisconnection()  # type: ignore[no-untyped-call]
        transport.protocol = protocol
        protocol.makeConnection(transport)
        protocol.dataReceived(data)
        for _ in range(10):
            await asyncio.sleep(0)
        written, is_open = transport.value(), transport.connected
        if is_open:
            transport.loseConnection()
        return written, is_open

    return asyncio.run(main())


def app(length: int, body: bytes) -> Any:
    async def answer(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", b"%d" % length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return answer


GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_a_response_shorter_than_announced_ends_the_connection() -> None:
    assert talk(app(3, b"abc"), GET)[1]
    written, is_open = talk(app(4, b"abc"), GET)
    assert written.endswith(b"\r\n\r\nabc")
    assert not is_open


def test_a_head_response_keeps_the_connection_open() -> None:
    assert talk(app(4, b""), GET.replace(b"GET", b"HEAD"))[1]


def test_forms_are_not_parsed_before_they_reach_the_application() -> None:
    """Twisted would return 400 here, after it has parsed the form in the event loop."""
    head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data\r\nContent-Length: 1\r\n\r\nx"
    assert talk(app(2, b"ok"), head.encode())[0].startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("value", [b"/x", "/ü".encode()])
def test_a_header_cannot_set_the_root_path(value: bytes) -> None:
    paths = []

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        paths.append((scope["root_path"], scope["headers"]))
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]}
        )
        await send({"type": "http.response.body", "body": b""})

    talk(answer, GET.replace(b"\r\n\r\n", b"\r\nDaphne-Root-Path: " + value + b"\r\n\r\n"))
    assert paths == [("", [(b"host", b"localhost")])]
