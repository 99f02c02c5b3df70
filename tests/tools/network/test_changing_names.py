"""A name is resolved once for each connection, which is made to exactly the checked address."""

from __future__ import annotations

import time

import pytest

from tests.features import feature
from tests.tools.network.dns_server import DnsServer
from tests.tools.network.web_server import CountingDial, WebServer, redirect, reply
from tools.contract import ErrorCode, NetworkAccess, ToolError
from tools.network import GuardedClient, NetworkLimits
from tools.network.name_resolution import resolve_with_system

INSIDE = NetworkAccess(private=frozenset({"moving.test", "two.test"}))


def test_a_name_without_an_address_resolves_to_an_empty_list() -> None:
    assert resolve_with_system("::no-name", 5) == []


@feature(
    "Network access",
    "The connection goes to the address that was checked",
    "tools/network/transport.py",
)
def test_a_name_that_changes_after_its_check_does_not_change_the_connection() -> None:
    """The name is resolved once, for the check; no connection is made to the addresses that it gets
    later."""
    with WebServer({"/": reply(b"first")}) as server, DnsServer() as dns:
        dns.names["moving.test"] = [["127.0.0.1"], ["127.0.0.2"], ["127.0.0.3"]]
        dial = CountingDial()
        response = GuardedClient(INSIDE, resolve=dns.resolve, dial=dial).request(
            "GET", f"http://moving.test:{server.port}/"
        )
        assert response.text == "first"
        assert dns.asked == ["moving.test"]
        assert dial.tried == [("127.0.0.1", server.port)]


def test_a_public_name_that_turns_private_is_refused_before_the_next_connection() -> None:
    with WebServer({"/": reply(b"public")}) as server, DnsServer() as dns:
        dns.names["moving.test"] = [["8.8.8.8"], ["127.0.0.1"]]
        dial = CountingDial(instead="127.0.0.1")
        door = GuardedClient(resolve=dns.resolve, dial=dial)
        url = f"http://moving.test:{server.port}/"
        assert door.request("GET", url).text == "public"
        for _ in range(2):
            with pytest.raises(ToolError) as caught:
                door.request("GET", url)
            assert caught.value.code is ErrorCode.SECURITY_VIOLATION
        assert dial.tried == [("8.8.8.8", server.port)]
        assert server.connections == 1


def test_each_hop_of_a_redirect_is_checked_again() -> None:
    reach = NetworkAccess(
        allowed=frozenset({"moving.test", "later.test"}), private=frozenset({"moving.test"})
    )
    with WebServer() as server, DnsServer() as dns:
        server.routes["/"] = redirect(f"http://later.test:{server.port}/")
        dns.names = {"moving.test": [["127.0.0.1"]], "later.test": [["127.0.0.1"]]}
        with pytest.raises(ToolError) as caught:
            GuardedClient(reach, resolve=dns.resolve).request(
                "GET", f"http://moving.test:{server.port}/"
            )
        assert caught.value.code is ErrorCode.SECURITY_VIOLATION
        assert server.connections == 1


@pytest.mark.parametrize(
    "addresses", [["8.8.8.8", "10.0.0.1"], ["10.0.0.1", "8.8.8.8"], ["2606:4700::1", "127.0.0.1"]]
)
def test_a_name_with_one_forbidden_address_among_several_is_refused(addresses: list[str]) -> None:
    with DnsServer(**{"mixed.test": addresses}) as dns:
        dial = CountingDial()
        with pytest.raises(ToolError) as caught:
            GuardedClient(resolve=dns.resolve, dial=dial).request("GET", "http://mixed.test/")
        assert caught.value.code is ErrorCode.SECURITY_VIOLATION
        assert "10.0.0.1" not in caught.value.message
        assert dial.tried == []


def test_the_next_address_is_tried_if_one_does_not_respond() -> None:
    with (
        WebServer({"/": reply(b"second")}) as server,
        DnsServer(**{"two.test": ["127.0.0.9", "127.0.0.1"]}) as dns,
    ):
        dial = CountingDial()
        response = GuardedClient(INSIDE, resolve=dns.resolve, dial=dial).request(
            "GET", f"http://two.test:{server.port}/"
        )
        assert response.text == "second"
        assert dial.tried == [("127.0.0.9", server.port), ("127.0.0.1", server.port)]


def test_a_slow_name_lookup_is_abandoned_at_the_deadline() -> None:
    with DnsServer(**{"slow.test": ["8.8.8.8"]}) as dns:
        dns.delay_s = 3.0
        started = time.monotonic()
        with pytest.raises(ToolError) as caught:
            GuardedClient(resolve=dns.resolve, limits=NetworkLimits(total_s=0.2)).request(
                "GET", "http://slow.test/"
            )
        assert time.monotonic() - started < 2.5
        assert caught.value.code is ErrorCode.TIMEOUT
        assert not caught.value.attempted


def test_a_name_that_does_not_exist_is_reported() -> None:
    with (
        DnsServer() as dns,
        pytest.raises(ToolError, match=r"The host 'nowhere\.test' does not exist\.") as caught,
    ):
        GuardedClient(resolve=dns.resolve).request("GET", "http://nowhere.test/secret?key=hidden")
    assert caught.value.code is ErrorCode.NETWORK_ERROR
    assert not caught.value.attempted
