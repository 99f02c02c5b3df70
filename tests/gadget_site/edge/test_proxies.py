"""A client's address and scheme are taken from a proxy's headers only if that proxy is trusted."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest
from pytest_django import Settings

from gadget_site.edge.proxies import FORWARDED_HEADER, clean
from tests.gadget_site.edge.site import Site

pytestmark = pytest.mark.once

PROXY, OTHER_PROXY, CLIENT, LIAR = "10.0.0.1", "10.0.0.2", "203.0.113.7", "198.51.100.9"


HEADERS = [
    *(
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-prefix",
        "X-Forwarded-User",
        "forwarded",
        "via",
    ),
    *(
        "x-real-ip",
        "remote-user",
        "x-original-url",
        "x-rewrite-url",
        "daphne-root-path",
        "x_forwarded_for",
    ),
    *("x-gadget-forwarded", "true-client-ip"),
]


@pytest.fixture(autouse=True)
def trusted(settings: Settings) -> Settings:
    settings.GADGET_TRUSTED_PROXIES = (ip_network("10.0.0.0/30"), ip_network("2001:db8:1::/48"))
    settings.GADGET_ORIGIN = ""
    return settings


def pass_on(peer: str, kind: str = "http", **headers: str) -> dict[str, Any]:
    """Return the request as passed to the application."""
    written = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "client": [peer, 4000], "headers": written, "root_path": "/moved"}
    return clean(scope | ({"scheme": "http"} if kind == "http" else {}))


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        (PROXY, CLIENT, CLIENT),
        (PROXY, f"{LIAR}, {CLIENT}", CLIENT),
        (PROXY, f"{LIAR}, {CLIENT}, {OTHER_PROXY}", CLIENT),
        (PROXY, f"{OTHER_PROXY}", OTHER_PROXY),
        (PROXY, f"{CLIENT}:55000", CLIENT),
        (PROXY, "[2001:db8:2::7]:55000", "2001:db8:2::7"),
        (PROXY, f"::ffff:{CLIENT}", CLIENT),
        (PROXY, f"{LIAR}, unknown", PROXY),
        (PROXY, "", PROXY),
        (f"::ffff:{PROXY}", CLIENT, CLIENT),
        ("2001:db8:1::5", CLIENT, CLIENT),
        (LIAR, CLIENT, LIAR),
        (LIAR, PROXY, LIAR),
    ],
)
def test_the_client_is_the_rightmost_address_that_is_not_a_trusted_proxy(
    peer: str, forwarded: str, client: str
) -> None:
    assert pass_on(peer, x_forwarded_for=forwarded)["client"][0] == client


@pytest.mark.parametrize(
    ("peer", "proto", "schemes"),
    [
        (PROXY, "https", ("https", "wss")),
        (PROXY, "HTTPS", ("https", "wss")),
        (PROXY, "https, http", ("http", "ws")),
        (PROXY, "gopher", ("http", "ws")),
        (LIAR, "https", ("http", "ws")),
    ],
)
def test_the_scheme_is_taken_only_from_a_trusted_proxy(
    peer: str, proto: str, schemes: tuple[str, str]
) -> None:
    kinds = ("http", "websocket")
    assert (
        tuple(pass_on(peer, kind, x_forwarded_proto=proto)["scheme"] for kind in kinds) == schemes
    )


def test_requests_to_a_site_with_an_https_origin_are_https_unless_a_trusted_proxy_disagrees(
    trusted: Settings,
) -> None:
    trusted.GADGET_ORIGIN = "https://gadget.example.com"
    assert pass_on(CLIENT)["scheme"] == "https"
    assert pass_on(CLIENT, "websocket")["scheme"] == "wss"
    assert pass_on(PROXY, x_forwarded_proto="http")["scheme"] == "http"
    assert pass_on(LIAR, x_forwarded_proto="http")["scheme"] == "https"


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize("peer", [PROXY, LIAR])
@pytest.mark.parametrize("name", HEADERS)
def test_headers_of_proxies_are_removed_and_cannot_set_the_root_path(
    kind: str, peer: str, name: str
) -> None:
    scope = {
        "type": kind,
        "client": [peer, 1],
        "headers": [(name.encode(), b"/x"), (b"host", b"h")],
        "root_path": "/x",
    }
    passed = clean(scope)
    assert passed["headers"] == [(b"host", b"h"), (FORWARDED_HEADER, b"1")]
    assert passed["root_path"] == ""


def test_a_request_without_proxy_headers_is_not_flagged_as_forwarded() -> None:
    assert pass_on(CLIENT, host="h")["headers"] == [(b"host", b"h")]


def test_a_client_cannot_set_the_root_path_of_the_running_site(site: Site) -> None:
    with site.connect() as wire:
        assert wire.ask("GET", "/login/", {"Daphne-Root-Path": "/login"}).status == 200
        page = wire.ask(
            "GET", "/login/", {"Daphne-Root-Path": "/evil", "X-Forwarded-Prefix": "/evil"}
        )
        assert b"/evil" not in page.body
        seen = [
            wire.ask("GET", "/metrics", more).status
            for more in ({}, {"X-Forwarded-For": "127.0.0.1"})
        ]
        assert seen == [200, 404]
