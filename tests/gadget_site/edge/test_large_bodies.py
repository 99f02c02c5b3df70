"""A body that is too large is refused before it is received: the limit is 1 MB without a login;
with a login, each page has its own limit."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db.models.functions import Now

from agents.accounts.models import ApiToken
from gadget_site.edge.bodies import (
    LARGEST,
    WITH_LOGIN,
    WITHOUT_LOGIN,
    RequestSender,
    get_body_limit,
)
from tests.gadget_site.edge.site import Site, multipart
from tests.gadget_site.edge.wire import Wire, request

pytestmark = pytest.mark.once

MB = 1_000_000
PATHS = [
    "/login/",
    "/",
    "/api/runs",
    "/files/upload/",
    "/static/css/base.css",
    "/no/such/page",
    "/ws/inbox/",
]


def head_of(path: str, length: int, headers: dict[str, str] | None = None) -> bytes:
    """Build the head of a request that announces a body of this length."""
    return request("POST", path, {"Content-Length": str(length)} | (headers or {}))


def in_chunks(
    wire: Wire, path: str, sizes: list[int], headers: dict[str, str] | None = None
) -> None:
    """Send a body of this many bytes in chunks; the server may stop listening."""
    wire.send(request("POST", path, {"Transfer-Encoding": "chunked"} | (headers or {})))
    for size in sizes:
        wire.send(f"{size:x}\r\n".encode() + b"x" * size + b"\r\n")
    wire.send(b"0\r\n\r\n")


@pytest.mark.parametrize("path", PATHS)
def test_a_stranger_who_announces_a_large_body_is_refused_on_every_path(
    site: Site, path: str
) -> None:
    with site.connect() as wire:
        wire.send(head_of(path, 400 * MB, {"Expect": "100-continue"}))
        response = wire.read_response()
        assert (response.status, response.headers["connection"]) == (413, "close")
        assert wire.rest() == b""


@pytest.mark.parametrize("path", PATHS)
def test_a_stranger_is_refused_while_chunks_arrive(site: Site, path: str) -> None:
    with site.connect() as wire:
        in_chunks(wire, path, [50_000] * 21)
        assert wire.read_response().status == 413
        assert wire.rest() == b""


def test_a_slow_sender_is_refused_at_the_first_byte_over_the_limit(site: Site) -> None:
    with site.connect() as wire:
        wire.send(
            b"POST /login/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nf4241\r\n"
        )
        for _ in range(10):
            wire.send(b"x" * 100_000)
            assert wire.is_silent(0.01)
        wire.send(b"x")
        assert wire.read_response().status == 413


def test_a_small_body_from_a_stranger_is_accepted(site: Site) -> None:
    with site.connect() as wire:
        in_chunks(wire, "/login/", [50_000] * 20)
        assert wire.read_response().status == 403
        assert wire.ask("POST", "/login/", body=b"x" * WITHOUT_LOGIN).status == 403
        assert wire.ask("GET", "/api/health").status == 200


@pytest.mark.parametrize(
    "proof", ["made up", "logged out", "switched off", "wrong token", "revoked token"]
)
def test_an_invalid_cookie_or_token_is_not_accepted_as_a_login(site: Site, proof: str) -> None:
    headers = site.token("operator") if "token" in proof else site.cookies("operator")
    if proof == "made up":
        headers = {"Cookie": "sessionid=abcdefghijklmnopqrstuvwxyz012345"}
    elif proof == "logged out":
        Session.objects.all().delete()
    elif proof == "switched off":
        User.objects.filter(username="operator").update(is_active=False)
    elif proof == "wrong token":
        headers = {"Authorization": "Bearer gadget_wrong", **site.cookies("operator")}
    else:
        ApiToken.objects.update(revoked_at=Now())
    with site.connect() as wire:
        wire.send(head_of("/files/upload/", 5 * MB, headers))
        assert wire.read_response().status == 413
    with site.connect() as wire:
        in_chunks(wire, "/files/upload/", [50_000] * 21, headers)
        assert wire.read_response().status == 413


def test_a_login_allows_bodies_up_to_the_pages_limit(site: Site) -> None:
    cookies = site.cookies("operator")
    assert site.upload("five.bin", b"x" * 5 * MB, cookies).status == 302
    with site.connect() as wire:
        assert len(wire.ask("GET", "/files/download/five.bin", cookies).body) == 5 * MB


def test_a_login_allows_chunked_bodies(site: Site) -> None:
    with site.connect() as wire:
        in_chunks(
            wire,
            "/api/runs",
            [50_000] * 30,
            {"Content-Type": "application/json"} | site.token("operator"),
        )
        assert wire.read_response().status == 400


@pytest.mark.parametrize(
    ("path", "length"),
    [("/", WITH_LOGIN + 1), ("/files/upload/", LARGEST + 1), ("/api/runs", 9 * MB)],
)
def test_a_body_over_the_limit_is_refused_despite_a_login(
    site: Site, path: str, length: int
) -> None:
    with site.connect() as wire:
        wire.send(head_of(path, length, multipart() | site.cookies("operator")))
        response = wire.read_response()
        assert response.status == 413
        if path.startswith("/api/"):
            assert response.headers["content-type"] == "application/problem+json"
            assert json.loads(response.body)["code"] == "too_large"


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/files/upload/", 101 * MB),
        ("/files%2Fupload/", 101 * MB),
        ("/records/import/", 51 * MB),
        ("/admin/connections/source/add/", 21 * MB),
        ("/login/", WITH_LOGIN),
        ("/no/such/page/", WITH_LOGIN),
    ],
)
def test_each_page_has_its_own_limit(site: Site, path: str, most: int) -> None:
    sender = RequestSender(cookies=site.cookies("viewer")["Cookie"])
    assert get_body_limit(sender, path) == most
    assert get_body_limit(RequestSender(), path) == WITHOUT_LOGIN
