"""Responses are limited: in bytes, unpacked bytes, headers and seconds."""

from __future__ import annotations

import gzip
import socket
import time
import tracemalloc
import zlib
from collections.abc import Iterator

import pytest

from tests.features import feature
from tests.tools.network.web_server import Reply, Request, WebServer, dripping, reply
from tools.contract import ErrorCode, NetworkAccess, ToolError
from tools.network import ClientResponse, NetworkLimits, request

REACH = NetworkAccess(private=frozenset({"127.0.0.1"}))
MEGABYTE = 1_000_000
PATH = "/private-path?key=s3cret-key"


@pytest.fixture
def server() -> Iterator[WebServer]:
    with WebServer() as running:
        yield running


def ask(server: WebServer, response: Reply, method: str = "GET", **limits: float) -> ClientResponse:
    server.routes["/private-path"] = response
    body = b"{}" if method == "POST" else None
    given = NetworkLimits(**{"response_bytes": MEGABYTE, "total_s": 20.0, **limits})  # type: ignore[arg-type]
    return request(
        method,
        server.url + PATH,
        reach=REACH,
        headers={"X-Key": "s3cret-key"},
        body=body,
        limits=given,
    )


def failure_of(
    server: WebServer, response: Reply, method: str = "GET", **limits: float
) -> ToolError:
    with pytest.raises(ToolError) as caught:
        ask(server, response, method, **limits)
    told = f"{caught.value} {caught.value.recovery_hint}"
    assert "s3cret" not in told
    assert "private-path" not in told
    return caught.value


def closing(sent: bytes) -> Reply:
    def answer(connection: socket.socket, _: Request) -> None:
        connection.sendall(sent)

    return answer


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
WITHOUT_LENGTH = b"HTTP/1.1 200 OK\r\n\r\n"


@feature(
    "Network access",
    "Limits for size, unpacked size, headers and time of every response",
    "tools/network/transport.py, tools/network/http_client.py",
    whole_file=True,
)
def test_a_response_within_the_limit_is_complete(server: WebServer) -> None:
    assert ask(server, reply(b"x" * MEGABYTE)).content == b"x" * MEGABYTE


@pytest.mark.parametrize(
    "response",
    [
        reply(b"x" * (MEGABYTE + 1)),
        dripping(WITHOUT_LENGTH, b"x" * 100_000, 0),
        dripping(CHUNKED, b"186a0\r\n" + b"x" * 100_000 + b"\r\n", 0),
        dripping(CHUNKED, b"1;" + b"e" * 8000 + b"\r\nx\r\n", 0),
    ],
    ids=["with a length", "without", "in chunks", "in chunks that say more than they hold"],
)
def test_a_response_over_the_limit_is_refused(server: WebServer, response: Reply) -> None:
    error = failure_of(server, response)
    assert error.code is ErrorCode.LIMIT_EXCEEDED
    assert error.message.startswith("The response of 127.0.0.1 is larger than")


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_compression_bomb_is_stopped_while_it_unpacks(server: WebServer, coding: str) -> None:
    packed = (
        zlib.compress(b"\0" * 100 * MEGABYTE)
        if coding == "deflate"
        else gzip.compress(b"\0" * 100 * MEGABYTE)
    )
    assert len(packed) < MEGABYTE
    tracemalloc.start()
    try:
        error = failure_of(server, reply(packed, content_encoding=coding))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert error.code is ErrorCode.LIMIT_EXCEEDED
    assert peak < 20 * MEGABYTE


def test_a_compressed_response_is_unpacked(server: WebServer) -> None:
    assert ask(server, reply(gzip.compress(b"fine"), content_encoding="gzip")).content == b"fine"


@pytest.mark.parametrize("coding", ["gzip, gzip", "gzip, deflate, gzip"])
def test_a_doubly_compressed_response_is_refused(server: WebServer, coding: str) -> None:
    packed = gzip.compress(gzip.compress(b"x" * 100))
    assert (
        failure_of(server, reply(packed, content_encoding=coding)).code is ErrorCode.NETWORK_ERROR
    )


def test_a_response_that_cannot_be_decompressed_is_reported(server: WebServer) -> None:
    error = failure_of(server, reply(b"not packed at all", content_encoding="gzip"))
    assert (error.code, error.message) == (
        "NETWORK_ERROR",
        "127.0.0.1 sent a response that cannot be decompressed.",
    )


@pytest.mark.parametrize(
    "response",
    [
        dripping(b"HTTP/1.1 200 OK\r\n", b"X-Filler: " + b"x" * 5000 + b"\r\n", 0),
        dripping(b"HTTP/1.1 200 OK\r\nX-Endless: ", b"x" * 5000, 0),
        dripping(b"", b"HTTP/1.1 103 Early Hints\r\nX: " + b"x" * 500 + b"\r\n\r\n", 0),
        dripping(b"HTTP/1.1 200 OK\r\nX: ".ljust(64 * 1024, b"x"), b""),
    ],
    ids=["many", "one without end", "hints without end", "exactly the limit, unfinished"],
)
def test_headers_over_the_limit_are_refused(server: WebServer, response: Reply) -> None:
    error = failure_of(server, response)
    assert error.code is ErrorCode.LIMIT_EXCEEDED
    assert "head of the response" in error.message


@pytest.mark.parametrize(
    "response",
    [
        dripping(b"", b"H"[:0]),
        dripping(b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        dripping(WITHOUT_LENGTH, b"x"),
        dripping(CHUNKED, b"1\r\nx\r\n"),
        dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["silence", "headers", "content", "chunks", "continue"],
)
def test_a_dripping_server_is_abandoned_at_the_deadline(server: WebServer, response: Reply) -> None:
    started = time.monotonic()
    error = failure_of(server, response, total_s=0.4)
    assert 0.3 < time.monotonic() - started < 10
    assert error.code is ErrorCode.TIMEOUT
    assert error.attempted


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
        b"HTTP/9.9 abc\r\n\r\n",
        b"\0" * 99,
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nBad Name: 1\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        CHUNKED + b"zz\r\nxx\r\n",
    ],
)
def test_a_malformed_response_is_reported_in_plain_language(server: WebServer, sent: bytes) -> None:
    error = failure_of(server, closing(sent))
    assert error.code is ErrorCode.NETWORK_ERROR
    assert error.attempted


def test_a_refused_connection_means_that_the_request_was_not_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ToolError, match=r"127\.0\.0\.1 does not accept connections\.") as caught:
        request("POST", f"http://127.0.0.1:{port}/", reach=REACH, body=b"{}")
    assert caught.value.code is ErrorCode.NETWORK_ERROR
    assert caught.value.is_definite


@feature(
    "Network access",
    "After a write was sent, no error claims that nothing was done",
    "tools/network/http_client.py",
)
@pytest.mark.parametrize(
    ("response", "code"),
    [
        (reply(b"x" * (MEGABYTE + 1)), "NETWORK_ERROR"),
        (reply(b"junk", content_encoding="gzip"), "NETWORK_ERROR"),
        (
            dripping(b"HTTP/1.1 200 OK\r\n", b"X-Filler: " + b"x" * 5000 + b"\r\n", 0),
            "NETWORK_ERROR",
        ),
        (closing(b""), "NETWORK_ERROR"),
        (dripping(WITHOUT_LENGTH, b"x"), "TIMEOUT"),
    ],
    ids=["too large", "not to be unpacked", "too many headers", "cut off", "dripping"],
)
def test_a_failure_after_a_sent_write_is_not_definite(
    server: WebServer, response: Reply, code: str
) -> None:
    error = failure_of(server, response, "POST", total_s=2.0 if code == "NETWORK_ERROR" else 0.4)
    assert error.code == code
    assert not error.is_definite
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"X": "a\r\nHost: evil"},
        {"X\r\nY": "a"},
        {"Bad Name": "a"},
        {"X": "\x00"},
        {"X": "€"},
        {"Host": "evil.example"},
        {"Transfer-Encoding": "chunked"},
        {"content-length": "0"},
        {"Connection": "upgrade"},
    ],
)
def test_headers_cannot_change_the_method_or_the_host(
    server: WebServer, headers: dict[str, str]
) -> None:
    with pytest.raises(ToolError) as caught:
        request("POST", server.url, reach=REACH, headers=headers, body=b"{}")
    assert caught.value.code in {ErrorCode.INVALID_PARAMETER, ErrorCode.SECURITY_VIOLATION}
    assert not caught.value.attempted
    assert server.requests == []


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "GET /x HTTP/1.1\r\nX:", ""])
def test_only_the_usual_methods_are_allowed(server: WebServer, method: str) -> None:
    with pytest.raises(ToolError):
        request(method, server.url, reach=REACH)
    assert server.connections == 0


@pytest.mark.parametrize(
    ("content", "content_type", "text"),
    [
        ("ü".encode(), "text/plain", "ü"),
        ("ü".encode("latin-1"), "text/plain; charset=iso-8859-1", "ü"),
        (b"\xff", "text/plain", "\ufffd"),
        ("ü".encode(), "text/plain; charset=no-such", "ü"),
        ("ü".encode(), 'text/plain; charset="a b"', "ü"),
        ("カ".encode("shift_jis"), "text/plain; charset=Shift_JIS", "カ"),
        (b"bcher-kva", "text/plain; charset=punycode", "bcher-kva"),
        (b"&APw-", "text/plain; charset=utf-7", "&APw-"),
        (b"61", "text/plain; charset=hex", "61"),
    ],
)
def test_text_is_decoded_by_its_charset(
    server: WebServer, content: bytes, content_type: str, text: str
) -> None:
    assert ask(server, reply(content, content_type=content_type)).text == text


def test_invalid_json_is_reported_without_its_content(server: WebServer) -> None:
    assert ask(server, reply(b'{"a": 1}')).json() == {"a": 1}
    for junk in (b"<html>", b"[" * 100_000):
        with pytest.raises(ToolError, match=r"The response of 127\.0\.0\.1 is not JSON\."):
            ask(server, reply(junk)).json()
