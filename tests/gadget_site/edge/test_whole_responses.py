"""After a response, no bytes are left in the connection, so the next response cannot be forged."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.conf import settings

from gadget_site.edge.bounded_responses import BoundedResponses
from tests.gadget_site.edge.site import Site
from tests.gadget_site.edge.wire import request
from tools.office.records.models import Record

pytestmark = pytest.mark.once

LARGE = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged" * 5_000


@pytest.fixture
def large(site: Site) -> Site:
    """Store a file of more than 200 KB, and the same amount of data to show and to export."""
    cookies = site.cookies("operator")
    assert site.upload("large.bin", LARGE, cookies).status == 302
    rows = [
        Record(organization=site.world.acme, name=f"Company {n}", notes="n" * 500)
        for n in range(500)
    ]
    Record.objects.bulk_create(rows)
    return site


@pytest.mark.parametrize(
    "path", ["/files/download/large.bin", "/records/export.csv", "/records/", "STATIC", "/api/runs"]
)
def test_a_head_response_has_no_body_and_the_next_request_gets_its_own_response(
    large: Site, path: str
) -> None:
    path = static_file() if path == "STATIC" else path
    cookies = large.cookies("operator")
    with large.connect() as wire:
        head = wire.ask("HEAD", path, cookies)
        assert head.status == 200
        assert wire.is_silent()
        assert wire.ask("GET", "/api/health").body == b'{"status": "ok"}'
        assert wire.is_silent()


def test_pipelined_requests_get_their_responses_in_order(large: Site) -> None:
    cookies = large.cookies("operator")
    paths = ["/files/download/large.bin", static_file(), "/records/export.csv"]
    asked = [request(method, path, cookies) for path in paths for method in ("HEAD", "GET")]
    with large.connect() as wire:
        wire.send(b"".join(asked) + request("GET", "/api/health", {"Connection": "close"}))
        for path in paths:
            head, whole = wire.read_response("HEAD"), wire.read_response()
            assert (head.status, whole.status) == (200, 200)
            assert head.headers.get("content-length") in (None, str(len(whole.body))), path
        assert wire.read_response().body == b'{"status": "ok"}'
        assert wire.rest() == b""


def test_a_not_modified_response_has_no_body(large: Site) -> None:
    with large.connect() as wire:
        first = wire.ask("GET", static_file())
        second = wire.ask(
            "GET", static_file(), {"If-Modified-Since": first.headers["last-modified"]}
        )
        assert (second.status, wire.is_silent()) == (304, True)
        assert wire.ask("GET", "/api/health").status == 200


def static_file() -> str:
    """Return the address of our largest static file, which is sent in several parts."""
    found = max((settings.BASE_DIR / "static").rglob("*.*"), key=lambda path: path.stat().st_size)
    assert found.stat().st_size > 1 << 16
    return f"/static/{found.relative_to(settings.BASE_DIR / 'static').as_posix()}"


class TestOneResponse:
    """The rules for a response, each tested separately and without a network."""

    @pytest.mark.parametrize(
        ("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304), ("POST", 204)]
    )
    def test_sends_one_empty_part_if_it_has_no_body(self, method: str, status: int) -> None:
        sent = answered(method, status, [b"a", b"b"])
        assert sent[1:] == [{"type": "http.response.body", "body": b"", "more_body": False}]

    def test_ends_its_body_at_the_announced_length(self) -> None:
        assert bodies(answered("GET", 200, [b"abc", b"def", b"ghi"], length=b"4")) == b"abcd"

    def test_is_sent_whole_if_no_length_is_announced(self) -> None:
        assert bodies(answered("GET", 200, [b"abc", b"def"])) == b"abcdef"


def answered(
    method: str, status: int, parts: list[bytes], length: bytes = b""
) -> list[dict[str, Any]]:
    """Return all messages that the server gets for a response with these parts."""
    sent: list[dict[str, Any]] = []

    async def application(_scope: Any, _receive: Any, send: Any) -> None:
        headers = [(b"content-length", length)] if length else []
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(BoundedResponses(application)({"type": "http", "method": method}, None, send))
    return sent


def bodies(sent: list[dict[str, Any]]) -> bytes:
    return b"".join(message["body"] for message in sent[1:])
