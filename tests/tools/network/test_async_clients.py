"""The network client's checks also guard third-party HTTP clients."""

from __future__ import annotations

import asyncio
import gzip

import httpx2
import pytest

from tests.features import feature
from tests.tools.network.dns_server import DnsServer
from tests.tools.network.web_server import Reply, WebServer, redirect, reply
from tools.contract import ErrorCode, NetworkAccess, ToolError
from tools.network import GuardedAsyncTransport, GuardedClient, NetworkLimits

INSIDE = GuardedClient(
    NetworkAccess(private=frozenset({"127.0.0.1"})), NetworkLimits(response_bytes=100_000)
)


def asked(door: GuardedClient, url: str, of: str = "") -> str:
    """Request `url` with a client that may reach only the server at `of`, or at `url` if `of` is
    empty; return the response's text."""

    async def run() -> str:
        transport = GuardedAsyncTransport(door, of or url)
        async with httpx2.AsyncClient(
            transport=transport, trust_env=False, follow_redirects=True
        ) as client:
            return (await client.get(url, headers={"Authorization": "s3cret"})).text

    return asyncio.run(run())


def refusal(door: GuardedClient, url: str, of: str = "") -> ErrorCode:
    with pytest.raises(ToolError) as caught:
        asked(door, url, of)
    return caught.value.code


@feature(
    "Network access",
    "Asynchronous clients of libraries use the same lookup and checks",
    "tools/network/async_transport.py",
    whole_file=True,
)
def test_a_third_party_client_gets_its_response() -> None:
    with WebServer({"/": reply(b"async")}) as server:
        assert asked(INSIDE, server.url) == "async"
        assert server.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("charset", ["punycode", "utf-7", "utf-16", "latin-1"])
def test_text_is_decoded_as_utf_8_whatever_charset_the_server_declares(charset: str) -> None:
    with WebServer(
        {"/": reply("bü-kva".encode(), content_type=f"text/plain; charset={charset}")}
    ) as server:
        assert asked(INSIDE, server.url) == "bü-kva"


def test_private_addresses_are_refused() -> None:
    with WebServer({"/": reply()}) as server, DnsServer(**{"inside.test": ["127.0.0.1"]}) as dns:
        for host in ("127.0.0.1", "inside.test", "[::ffff:127.0.0.1]", "2130706433", "localhost"):
            codes = {ErrorCode.SECURITY_VIOLATION, ErrorCode.NETWORK_ERROR}
            assert (
                refusal(GuardedClient(resolve=dns.resolve), f"http://{host}:{server.port}/")
                in codes
            )
        assert server.connections == 0


def test_redirects_stay_on_the_server() -> None:
    with (
        WebServer({"/end": reply(b"end")}) as server,
        WebServer({"/end": reply(b"elsewhere")}) as other,
    ):
        server.routes["/"] = redirect("/end")
        assert asked(INSIDE, server.url + "/") == "end"
        server.routes["/"] = redirect(f"{other.url}/end")
        assert refusal(INSIDE, server.url + "/") is ErrorCode.SECURITY_VIOLATION
        assert other.connections == 0


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (reply(b"x" * 100_001), "LIMIT_EXCEEDED"),
        (reply(gzip.compress(b"x" * 10**6), content_encoding="gzip"), "NETWORK_ERROR"),
    ],
)
def test_responses_are_limited_in_size_and_time(response: Reply, code: str) -> None:
    with WebServer({"/": response}) as server:
        assert refusal(INSIDE, server.url) == code


def test_failures_raise_the_clients_usual_exceptions() -> None:
    with WebServer({"/": lambda connection, _: connection.close()}) as server:
        with pytest.raises(httpx2.HTTPError):
            asked(INSIDE, server.url)
        port = server.port
    with pytest.raises(httpx2.ConnectError):
        asked(INSIDE, f"http://127.0.0.1:{port}/")
