"""Only pages of this host or of a listed origin, and programs with a token, can open a socket."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import Settings

from gadget_site.origins import is_known_origin

HOST = "localhost:8000"


@pytest.mark.parametrize(
    ("host", "origin", "known"),
    [
        (HOST, "http://localhost:8000", True),
        (HOST, "http://LOCALHOST:8000", True),
        ("localhost", "http://localhost", True),
        ("localhost", "http://localhost:80", True),
        ("[::1]:8000", "http://[::1]:8000", True),
        (HOST, "http://localhost:9000", False),
        (HOST, "https://localhost:8000", False),
        (HOST, "http://localhost", False),
        (HOST, "http://evil.example.com", False),
        (HOST, "null", False),
        (HOST, "", False),
        ("evil.example.com", "http://evil.example.com", False),
        (HOST, "https://gadget.example.com", True),
        (HOST, "https://gadget.example.com:443", True),
        (HOST, "http://gadget.example.com", False),
    ],
)
def test_origins_are_compared_by_scheme_host_and_port(
    settings: Settings, host: str, origin: str, known: bool
) -> None:
    settings.ALLOWED_HOSTS = ["localhost", "[::1]"]
    settings.ALLOWED_ORIGINS = ["https://gadget.example.com"]
    assert is_known_origin(scope(host=host, origin=origin)) is known


def test_a_cookie_without_an_origin_is_refused(settings: Settings) -> None:
    assert not is_known_origin(scope(host=HOST, cookie="sessionid=1"))


def test_a_token_needs_no_origin_but_the_origin_of_another_site_is_refused(
    settings: Settings,
) -> None:
    settings.ALLOWED_HOSTS = ["localhost"]
    assert is_known_origin(scope(host=HOST, authorization="Bearer token"))
    assert not is_known_origin(
        scope(host=HOST, authorization="Bearer token", origin="http://evil.example.com")
    )


def scope(**headers: str) -> dict[str, Any]:
    return {
        "type": "websocket",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
