"""Connections are never made to an address that is not public, however it is written or reached."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_network

import pytest

from tests.features import feature
from tests.tools.network.dns_server import DnsServer
from tests.tools.network.web_server import CountingDial, WebServer, reply
from tools.contract import ErrorCode, NetworkAccess, ToolError
from tools.network import GuardedClient, parse_host, read_url
from tools.network.addresses import AddressKind, classify_address

SPELLINGS = [
    # 127.0.0.1, in all notations that operating systems accept
    "127.0.0.1",
    "127.0.0.2",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0X7F000001",
    "017700000001",
    "0177.0.0.1",
    "0x7f.0.0.1",
    "0x7f.1",
    "127.1",
    "127.0.1",
    "127.0x0.0.1",
    "0127.0.0.1",
    "127.0.0.01",
    "127.0.0.1.",
    "00000000177.0.0.1",
    "1.0x7f000001",
    "127.0.0.0x1",
    "4294967297",
    "127.0.0.257",
    "127.0.0.1.1",
    # the same with other characters
    "\uff11\uff12\uff17.0.0.1",
    "127\u30020\u30020\u30021",
    "127\uff0e0\uff0e0\uff0e1",
    "127\uff610\uff610\uff611",
    "\u2460\u2461\u2466.\u24ea.\u24ea.\u2460",
    "%31%32%37.0.0.1",
    "127%2e0%2e0%2e1",
    "127.0.0.1%00.example.com",
    "\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3",
    "loc%61lhost",
    "localhost%2e",
    "127.0.0.1%2f.example.com",
    # names
    "localhost",
    "LOCALHOST",
    "LocalHost.",
    "localhost..",
    "loopback.test",
    "metadata.google.internal",
    "metadata.google.internal.",
    "instance-data.ec2.internal",
    "inside.test",
    "six.test",
    "mixed.test",
    "mapped.test",
    # IPv6
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000::0001]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b:1::1]",
    "[64:ff9b:1::a9fe:a9fe]",
    "[2002:7f00:1::]",
    "[2002:a9fe:a9fe::1]",
    "[2002:c0a8:101::1]",
    "[2001:0:4136:e378:8000:63bf:80ff:fffe]",
    "[2001::1]",
    "[fe80::1]",
    "[fe80::1%25eth0]",
    "[fe80::1%eth0]",
    "[fe80::1%251]",
    "[::1%251]",
    "[fc00::1]",
    "[fd00::1]",
    "[fd00:ec2::254]",
    "[fd20:ce::254]",
    "[fd00:c1::a9fe:a9fe]",
    "[fd00:42::42]",
    "[fec0::1]",
    "[ff02::1]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[100::1]",
    "[5f00::1]",
    "[2001:20::1]",
    "[2606:4700::5efe:7f00:1]",
    "[2606:4700::200:5efe:a00:1]",
    # IPv4
    "0.0.0.0",
    "0",
    "0x0",
    "0.1.2.3",
    "10.0.0.1",
    "167772161",
    "10.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "0300.0250.1.1",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "[::ffff:169.254.169.254]",
    "100.64.0.1",
    "100.127.255.255",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "192.88.99.1",
]

URLS = [
    "http://user@127.0.0.1:{port}/",
    "http://example.com@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@example.com/",
    "http://example.com\\@127.0.0.1:{port}/",
    "http://example.com%2f@127.0.0.1:{port}/",
    "http:127.0.0.1:{port}/",
    "http:///127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "127.0.0.1:{port}",
    "http://127.0.0.1:{port}#@example.com/",
    "http://127.0.0.1:{port}?@example.com/",
    "http://@127.0.0.1:{port}/",
    "http://:@127.0.0.1:{port}/",
    "http://127.0.0.1 :{port}/",
    "http://127.0.0.1\t:{port}/",
    "http://127.0.0.1\r\n:{port}/",
    " http://127.0.0.1:{port}/",
    "ftp://127.0.0.1:{port}/",
    "file:///etc/hosts",
    "gopher://127.0.0.1:{port}/_x",
    "ws://127.0.0.1:{port}/",
    "http+unix://127.0.0.1:{port}/",
    "javascript:alert(1)",
    "data:text/plain,x",
    "http://",
    "http://:{port}/",
    "",
    "http://[::1/",
    "http://[v1.x]:{port}/",
    "http://[127.0.0.1]:{port}/",
    "http://127.0.0.1:0/",
    "http://127.0.0.1:99999/",
    "http://127.0.0.1:{port}:80/",
    "http://127.0.0.1:+{port}/",
    "http://127.0.0.1:\uff18\uff10/",
    "dict://127.0.0.1:{port}/",
]

NAMES = {
    "loopback.test": ["127.0.0.1"],
    "metadata.google.internal": ["169.254.169.254"],
    "instance-data.ec2.internal": ["169.254.169.254"],
    "inside.test": ["10.1.2.3"],
    "six.test": ["::1"],
    "mixed.test": ["8.8.8.8", "127.0.0.1"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "localhost": ["127.0.0.1", "::1"],
}


@pytest.fixture(scope="module")
def recorder() -> Iterator[WebServer]:
    with WebServer({"/": reply(b"reached")}) as server:
        yield server


@pytest.fixture(scope="module")
def dns() -> Iterator[DnsServer]:
    with DnsServer(**NAMES) as server:
        yield server


def refusal_of(door: GuardedClient, url: str) -> ToolError:
    with pytest.raises(ToolError) as caught:
        door.request("GET", url)
    return caught.value


def test_at_least_60_different_spellings_of_addresses_are_tested() -> None:
    assert len(set(SPELLINGS)) == len(SPELLINGS) >= 60


@feature(
    "Network access",
    "No private, loopback, link-local, translated or metadata address, in any notation",
    "tools/network/addresses.py",
)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_forbidden_address_is_never_connected_to(
    recorder: WebServer, dns: DnsServer, spelling: str
) -> None:
    dial = CountingDial()
    error = refusal_of(
        GuardedClient(resolve=dns.resolve, dial=dial), f"http://{spelling}:{recorder.port}/"
    )
    assert error.code in {ErrorCode.SECURITY_VIOLATION, ErrorCode.INVALID_PARAMETER}
    assert not error.attempted
    assert dial.tried == []
    assert recorder.connections == 0


@pytest.mark.parametrize("url", URLS)
def test_a_malformed_url_is_never_connected_to(
    recorder: WebServer, dns: DnsServer, url: str
) -> None:
    dial = CountingDial()
    error = refusal_of(
        GuardedClient(resolve=dns.resolve, dial=dial), url.format(port=recorder.port)
    )
    assert error.code in {ErrorCode.SECURITY_VIOLATION, ErrorCode.INVALID_PARAMETER}
    assert not error.attempted
    assert dial.tried == []
    assert recorder.connections == 0


def test_the_system_resolver_is_used_by_default(recorder: WebServer) -> None:
    before = recorder.connections
    assert refusal_of(GuardedClient(), f"http://localhost:{recorder.port}/").code in {
        ErrorCode.SECURITY_VIOLATION,
        ErrorCode.NETWORK_ERROR,  # on machines that cannot resolve even localhost
    }
    assert recorder.connections == before


def test_an_admin_can_allow_a_host_with_its_private_addresses(dns: DnsServer) -> None:
    with WebServer({"/": reply(b"inside")}) as server:
        allowed = NetworkAccess(private=frozenset({"loopback.test", "127.0.0.1"}))
        for host in ("loopback.test", "LoopBack.Test.", "127.0.0.1"):
            assert (
                GuardedClient(allowed, resolve=dns.resolve)
                .request("GET", f"http://{host}:{server.port}/")
                .text
                == "inside"
            )


def test_an_allowed_address_does_not_allow_names_that_lead_to_it(
    recorder: WebServer, dns: DnsServer
) -> None:
    door = GuardedClient(NetworkAccess(private=frozenset({"127.0.0.1"})), resolve=dns.resolve)
    assert (
        refusal_of(door, f"http://loopback.test:{recorder.port}/").code
        is ErrorCode.SECURITY_VIOLATION
    )


def test_an_allowed_name_never_leads_to_a_metadata_service(dns: DnsServer) -> None:
    dial = CountingDial()
    reach = NetworkAccess(private=frozenset({"metadata.google.internal", "mapped.test"}))
    for host in reach.private:
        assert (
            refusal_of(GuardedClient(reach, resolve=dns.resolve, dial=dial), f"http://{host}/").code
            == "SECURITY_VIOLATION"
        )
    assert dial.tried == []


@feature(
    "Network access",
    "Link-local and metadata addresses stay forbidden even if an admin allows them",
    "tools/network/addresses.py",
)
@pytest.mark.parametrize(
    "address",
    [
        *(
            "169.254.169.254",
            "169.254.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "198.51.100.7",
            "0.0.0.0",
        ),
        *("fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42"),
        *("255.255.255.255", "fe80::1", "64:ff9b::7f00:1", "2002:7f00:1::", "::ffff:127.0.0.1"),
    ],
)
def test_a_special_address_stays_forbidden_even_if_an_admin_allows_it(address: str) -> None:
    dial = CountingDial()
    door = GuardedClient(
        NetworkAccess(allowed=frozenset({address}), private=frozenset({address})), dial=dial
    )
    written = f"[{address}]" if ":" in address else address
    error = refusal_of(door, f"http://{written}/")
    assert (error.code, error.attempted) == (ErrorCode.SECURITY_VIOLATION, False)
    assert dial.tried == []


def test_a_host_allowed_without_a_card_is_not_allowed_in_private_networks(
    recorder: WebServer, dns: DnsServer
) -> None:
    door = GuardedClient(
        NetworkAccess(allowed=frozenset({"loopback.test", "127.0.0.1"})), resolve=dns.resolve
    )
    for host in ("loopback.test", "127.0.0.1"):
        assert (
            refusal_of(door, f"http://{host}:{recorder.port}/").code is ErrorCode.SECURITY_VIOLATION
        )


PUBLIC = (
    "8.8.8.8",
    "1.1.1.1",
    "172.15.255.255",
    "172.32.0.1",
    "100.63.255.255",
    "100.128.0.1",
    "192.167.255.255",
    "169.253.0.1",
    "223.255.255.254",
    "2606:4700:4700::1111",
    "2a00:1450:4001:82a::200e",
    "2620:fe::fe",
)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_stay_public(address: str) -> None:
    assert classify_address(ip_address(address)) is AddressKind.PUBLIC


@pytest.mark.parametrize(
    "network",
    [
        "10.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "224.0.0.0/4",
        "fc00::/7",
        "fe80::/10",
        "ff00::/8",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2002::/16",
        "::ffff:0:0/96",
        "2001::/32",
    ],
)
def test_the_first_and_the_last_address_of_each_special_range_are_not_public(network: str) -> None:
    for edge in (ip_network(network)[0], ip_network(network)[-1]):
        assert classify_address(edge) is not AddressKind.PUBLIC


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("Example.COM.", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("2001:4860:0:0::8888", "2001:4860::8888"),
        ("[2001:4860::8888]", "2001:4860::8888"),
        ("a_b.example", "a_b.example"),
    ],
)
def test_hosts_are_compared_in_canonical_form(text: str, host: str) -> None:
    assert parse_host(text) == host


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "a..b",
        "-a.example",
        "a" * 64 + ".example",
        "a.b/c",
        "a:80",
        "[::1]:80",
        "a b",
        "a@b",
        "a?b",
        "a#",
    ],
)
def test_an_invalid_host_is_refused(text: str) -> None:
    with pytest.raises(ToolError):
        parse_host(text)


def test_an_address_keeps_its_path_and_query_and_loses_its_fragment() -> None:
    assert (
        str(read_url("HTTPS://Example.com:443/a%2Fb?x=1&y=%20#part"))
        == "https://example.com/a%2Fb?x=1&y=%20"
    )
