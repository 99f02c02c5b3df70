"""Certificates are checked for the requested name, although the connection goes to a checked
address."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.features import feature
from tests.tools.network.certificates import ISSUER, Authority
from tests.tools.network.dns_server import DnsServer
from tests.tools.network.web_server import Request, WebServer, reply
from tools.contract import ErrorCode, NetworkAccess, ToolError
from tools.network import GuardedClient, NetworkLimits, fetch_certificate

REACH = NetworkAccess(private=frozenset({"good.test", "wrong.test"}))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def door(authority: Authority) -> Iterator[GuardedClient]:
    with DnsServer(**{key: ["127.0.0.1"] for key in ("good.test", "wrong.test")}) as dns:
        yield GuardedClient(REACH, NetworkLimits(total_s=5), dns.resolve, authority.trust)


@feature(
    "Network access",
    "Certificates are verified for the requested name",
    "tools/network/http_client.py",
    whole_file=True,
)
def test_a_valid_certificate_is_accepted(authority: Authority, door: GuardedClient) -> None:
    with WebServer({"/": reply(b"sealed")}, authority.server("good.test")) as server:
        assert door.request("GET", f"https://good.test:{server.port}/").text == "sealed"


@pytest.mark.parametrize(
    ("name", "days", "by_itself", "word"),
    [
        ("wrong.test", 30, False, "mismatch"),
        ("good.test", -1, False, "expired"),
        ("good.test", 30, True, "self"),
    ],
)
def test_an_invalid_certificate_is_refused_before_sending(
    authority: Authority, door: GuardedClient, name: str, days: float, *, by_itself: bool, word: str
) -> None:
    with WebServer({"/": reply()}, authority.server(name, days, by_itself=by_itself)) as server:
        with pytest.raises(
            ToolError, match=f"The certificate of good.test is not valid: .*{word}"
        ) as caught:
            door.request(
                "POST",
                f"https://good.test:{server.port}/?key=s3cret",
                {"Authorization": "s3cret"},
                b"{}",
            )
        assert caught.value.code is ErrorCode.NETWORK_ERROR
        assert not caught.value.attempted
        assert "s3cret" not in str(caught.value)
        assert server.requests == []


def test_an_unknown_authority_is_not_trusted(authority: Authority, door: GuardedClient) -> None:
    with WebServer({"/": reply()}, authority.server("good.test")) as server:
        with pytest.raises(ToolError, match="is not valid"):
            GuardedClient(REACH, resolve=door.resolve).request(
                "GET", f"https://good.test:{server.port}/"
            )
        assert server.requests == []


def test_a_redirect_back_to_http_is_refused(authority: Authority, door: GuardedClient) -> None:
    with WebServer(tls=authority.server("good.test")) as server:
        server.routes["/"] = reply(b"", "302 Found", location=f"http://good.test:{server.port}/")
        with pytest.raises(ToolError, match=r"good\.test redirects from https to http") as caught:
            door.request("GET", f"https://good.test:{server.port}/")
        assert caught.value.code is ErrorCode.SECURITY_VIOLATION
        assert server.connections == 1


def test_a_server_without_tls_is_reported(door: GuardedClient) -> None:
    def nonsense(connection: socket.socket, _: Request) -> None:
        connection.sendall(b"no")

    with (
        WebServer({"/": nonsense}) as server,
        pytest.raises(ToolError, match=r"good\.test") as caught,
    ):
        GuardedClient(REACH, NetworkLimits(total_s=0.5), door.resolve).request(
            "GET", f"https://good.test:{server.port}/"
        )
    assert caught.value.code in {ErrorCode.NETWORK_ERROR, ErrorCode.TIMEOUT}
    assert not caught.value.attempted


@pytest.mark.parametrize(
    ("name", "days", "problem"),
    [("good.test", 30.5, ""), ("good.test", -1.5, "expired"), ("wrong.test", 10.5, "mismatch")],
)
def test_a_certificate_is_described_by_issuer_remaining_days_and_problem(
    authority: Authority, door: GuardedClient, name: str, days: float, problem: str
) -> None:
    with WebServer(tls=authority.server(name, days)) as server:
        seen = fetch_certificate("good.test", server.port, door)
        assert (seen.issuer, seen.days_left) == (ISSUER, int(days // 1))
        assert problem in seen.problem
        assert bool(seen.problem) == bool(problem)
        assert server.requests == []


def test_the_certificate_of_a_private_host_cannot_be_inspected(authority: Authority) -> None:
    with WebServer(tls=authority.server("good.test")) as server, pytest.raises(ToolError) as caught:
        fetch_certificate("127.0.0.1", server.port, GuardedClient())
    assert caught.value.code is ErrorCode.SECURITY_VIOLATION
