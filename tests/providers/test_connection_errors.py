"""The error for a failed connection says in a sentence what happened and what to do next."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from agents.providers.base import ProviderError
from tests.model_server import ModelServer
from tests.providers.conftest import Asking


@pytest.fixture
def closing_server() -> Iterator[str]:
    """Accept connections and close them without a response."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.recv(1 << 16)
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    yield f"127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def fail(ask: Asking, base_url: str) -> str:
    ask.base_url = base_url
    with pytest.raises(ProviderError) as caught:
        ask(max_retries=0)
    assert caught.value.code == "unreachable"
    assert "[SSL" not in caught.value.message
    assert "Errno" not in caught.value.message
    return caught.value.message


def test_a_request_over_https_to_a_plain_http_server_suggests_http(
    server: ModelServer, ask: Asking
) -> None:
    place = server.url.removeprefix("http://")
    message = fail(ask, f"https://{place}")
    assert "doesn't speak https" in message
    assert f"http://{place.partition('/')[0]}" in message


def test_a_refused_connection_names_the_address(ask: Asking) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        assert fail(ask, f"{address}/v1") == (
            f"Nothing responds at {address}. Start the server, or correct the address and its port"
        )


def test_an_unknown_host_suggests_checking_the_spelling(ask: Asking) -> None:
    ask.base_url = "https://no-such-host.invalid/v1"
    with pytest.raises(ProviderError, match="Check the spelling of the address"):
        ask(max_retries=0)


@pytest.mark.parametrize(("scheme", "advice"), [("http", "try https://"), ("https", "Try http://")])
def test_a_connection_closed_without_a_response_suggests_the_other_scheme(
    ask: Asking, closing_server: str, scheme: str, advice: str
) -> None:
    assert advice in fail(ask, f"{scheme}://{closing_server}/v1")


@pytest.mark.parametrize(
    ("props", "is_told"),
    [
        ('{"chat_template_caps": {"supports_tools": false}}', True),
        ('{"supports_tools": false}', True),
        ('{"chat_template_caps": {"supports_tools": true}}', False),
        ('{"chat_template_caps": {}}', False),
        ("[]", False),
        ("no JSON", False),
        (None, False),
    ],
)
def test_the_check_reports_a_server_that_drops_tools(
    server: ModelServer, ask: Asking, props: str | None, is_told: bool
) -> None:
    server.pages = {} if props is None else {"/props": props}
    assert ("silently drops them" in ask.provider().check()) == is_told
