"""Redirects: each is checked again, only a few are followed, and secrets are never sent to another
server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.features import feature
from tests.tools.network.dns_server import DnsServer
from tests.tools.network.web_server import WebServer, redirect, reply
from tools.contract import ErrorCode, NetworkAccess, ToolError
from tools.network import GuardedClient, NetworkLimits, read_url
from tools.network.urls import get_origin

HOSTS = ("here.test", "there.test", "other.test")
REACH = NetworkAccess(allowed=frozenset({"there.test"}), private=frozenset(HOSTS))
SECRETS = {
    "Authorization": "Bearer s3cret",
    "Cookie": "a=b",
    "X-Api-Key": "s3cret",
    "Accept": "text/html",
}


@pytest.fixture(scope="module")
def dns() -> Iterator[DnsServer]:
    with DnsServer(**{key: ["127.0.0.1"] for key in HOSTS}) as server:
        yield server


@pytest.fixture
def server() -> Iterator[WebServer]:
    with WebServer({"/end": reply(b"the end")}) as running:
        yield running


@pytest.fixture
def door(dns: DnsServer) -> GuardedClient:
    return GuardedClient(REACH, resolve=dns.resolve)


def refusal_of(
    door: GuardedClient, url: str, method: str = "GET", body: bytes | None = None
) -> ToolError:
    with pytest.raises(ToolError) as caught:
        door.request(method, url, SECRETS, body)
    return caught.value


@feature(
    "Network access",
    "Redirects are checked again, drop secrets, and repeat no write",
    "tools/network/http_client.py",
    whole_file=True,
)
@pytest.mark.parametrize(
    "status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"]
)
def test_a_redirect_on_the_same_server_keeps_the_secret_headers(
    server: WebServer, door: GuardedClient, status: str
) -> None:
    server.routes["/"] = redirect("/end", status)
    response = door.request("GET", f"http://here.test:{server.port}/", SECRETS)
    assert response.text == "the end"
    assert response.url == f"http://here.test:{server.port}/end"
    assert server.requests[-1].headers["authorization"] == "Bearer s3cret"


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://a.test/", ("https", "a.test", 443)),
        ("http://a.test:8080/", ("http", "a.test", 8080)),
    ],
)
def test_the_origin_of_an_address_includes_its_port(url: str, origin: tuple[str, str, int]) -> None:
    assert get_origin(read_url(url)) == origin


def test_a_redirect_to_an_allowed_host_drops_every_secret(
    server: WebServer, door: GuardedClient
) -> None:
    server.routes["/"] = redirect(f"http://there.test:{server.port}/end")
    assert door.request("GET", f"http://here.test:{server.port}/", SECRETS).text == "the end"
    first, second = server.requests
    assert first.headers["x-api-key"] == "s3cret"
    assert second.headers["host"] == f"there.test:{server.port}"
    assert second.headers["accept"] == "text/html"
    assert not {"authorization", "cookie", "x-api-key", "referer"} & second.headers.keys()


def test_a_second_redirect_does_not_restore_the_secrets(
    server: WebServer, door: GuardedClient
) -> None:
    server.routes["/"] = redirect(f"http://there.test:{server.port}/back")
    server.routes["/back"] = redirect(f"http://there.test:{server.port}/end")
    door.request("GET", f"http://here.test:{server.port}/", SECRETS)
    assert ["authorization" in request.headers for request in server.requests] == [
        True,
        False,
        False,
    ]


def test_another_port_is_treated_as_another_server(server: WebServer, door: GuardedClient) -> None:
    with WebServer({"/end": reply(b"elsewhere")}) as other:
        server.routes["/"] = redirect(f"http://here.test:{other.port}/end")
        assert door.request("GET", f"http://here.test:{server.port}/", SECRETS).text == "elsewhere"
        assert "authorization" not in other.requests[0].headers


def test_a_redirect_to_any_other_host_is_refused(server: WebServer, door: GuardedClient) -> None:
    server.routes["/"] = redirect(f"http://other.test:{server.port}/end?token=s3cret")
    error = refusal_of(door, f"http://here.test:{server.port}/")
    assert error.code is ErrorCode.SECURITY_VIOLATION
    assert error.message == "here.test redirects to another host: http://other.test."
    assert server.connections == 1


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:{port}/end",
        "http://2130706433:{port}/end",
        "http://[::ffff:127.0.0.1]:{port}/end",
        "//127.1/",
        "http://169.254.169.254/latest/",
        "file:///etc/hosts",
        "ftp://here.test/",
        "http://u:p@here.test:{port}/end",
        "http://[broken/",
        "http://here.test:99999/",
        "\\\\127.0.0.1\\x",
        "javascript:alert(1)",
    ],
)
def test_a_redirect_to_a_forbidden_address_is_refused(
    server: WebServer, door: GuardedClient, target: str
) -> None:
    server.routes["/"] = redirect(target.format(port=server.port))
    error = refusal_of(door, f"http://here.test:{server.port}/")
    assert error.code in {
        ErrorCode.SECURITY_VIOLATION,
        ErrorCode.INVALID_PARAMETER,
        ErrorCode.NETWORK_ERROR,
    }
    assert [request.target for request in server.requests] == ["/"]


@pytest.mark.parametrize(("most", "times"), [(1, "once"), (5, "5 times")])
def test_the_number_of_redirects_is_limited(
    server: WebServer, dns: DnsServer, most: int, times: str
) -> None:
    server.routes["/"] = redirect("/")
    limited = GuardedClient(REACH, NetworkLimits(redirects=most), dns.resolve)
    error = refusal_of(limited, f"http://here.test:{server.port}/")
    assert error.code is ErrorCode.LIMIT_EXCEEDED
    assert error.message == f"here.test redirects more than {times}."
    assert len(server.requests) == most + 1


def test_too_many_redirects_name_the_first_host_instead_of_one_that_was_never_contacted(
    server: WebServer, dns: DnsServer
) -> None:
    server.routes["/"] = redirect("/again")
    server.routes["/again"] = redirect(f"http://there.test:{server.port}/end")
    limited = GuardedClient(REACH, NetworkLimits(redirects=1), dns.resolve)
    error = refusal_of(limited, f"http://here.test:{server.port}/")
    assert error.message == "here.test redirects more than once."
    assert [request.target for request in server.requests] == ["/", "/again"]


def test_redirects_can_be_disabled(server: WebServer, dns: DnsServer) -> None:
    server.routes["/"] = redirect("http://other.test/")
    response = GuardedClient(REACH, NetworkLimits(redirects=0), dns.resolve).request(
        "GET", f"http://here.test:{server.port}/"
    )
    assert (response.status, response.headers["location"]) == (302, "http://other.test/")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("status", ["307 Temporary Redirect", "308 Permanent Redirect"])
def test_a_write_is_not_repeated_at_another_address(
    server: WebServer, door: GuardedClient, method: str, status: str
) -> None:
    server.routes["/"] = redirect("/end", status)
    error = refusal_of(door, f"http://here.test:{server.port}/", method, b"{}")
    assert error.code is ErrorCode.OPERATION_FAILED
    assert [request.target for request in server.requests] == ["/"]


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other"])
def test_a_redirect_of_a_write_is_returned_as_its_response(
    server: WebServer, door: GuardedClient, status: str
) -> None:
    """The write was done, so it must not be reported as refused, and nothing else may be
    requested."""
    server.routes["/"] = redirect("http://other.test/made", status)
    response = door.request("POST", f"http://here.test:{server.port}/", SECRETS, b"{}")
    assert str(response.status) == status[:3]
    assert [request.method for request in server.requests] == ["POST"]


def test_a_read_with_a_body_is_not_repeated_at_another_address(
    server: WebServer, door: GuardedClient
) -> None:
    server.routes["/"] = redirect("/end", "307 Temporary Redirect")
    assert (
        refusal_of(door, f"http://here.test:{server.port}/", "GET", b"{}").code
        is ErrorCode.OPERATION_FAILED
    )


def test_a_get_request_that_writes_is_not_redirected_and_its_outcome_is_unknown(
    server: WebServer, door: GuardedClient
) -> None:
    server.routes["/"] = redirect(f"http://other.test:{server.port}/end")
    url = f"http://here.test:{server.port}/"
    assert door.request("GET", url, repeatable=False).status == 302
    assert [request.target for request in server.requests] == ["/"]
    server.routes["/"] = reply(b"x" * 2_000)
    small = replace(door, limits=NetworkLimits(response_bytes=1_000))
    with pytest.raises(ToolError) as caught:
        small.request("GET", url, repeatable=False)
    assert not caught.value.is_definite
    with pytest.raises(ToolError) as caught:
        small.request("GET", url)
    assert (caught.value.code, caught.value.is_definite) == (ErrorCode.LIMIT_EXCEEDED, True)


@pytest.mark.parametrize("target", ["http://other.test/", "http://here.test:1/", "http://[broken/"])
def test_a_failure_after_a_redirect_is_reported_as_attempted(
    server: WebServer, door: GuardedClient, target: str
) -> None:
    server.routes["/"] = redirect(target)
    assert refusal_of(door, f"http://here.test:{server.port}/").attempted


def test_a_post_request_that_reads_is_not_redirected(
    server: WebServer, door: GuardedClient
) -> None:
    server.routes["/"] = redirect("/end")
    assert (
        door.request("POST", f"http://here.test:{server.port}/", body=b"{}", repeatable=True).status
        == 302
    )
    assert len(server.requests) == 1
