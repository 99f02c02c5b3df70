"""The size of a response is limited: in bytes of content, and in bytes on the wire."""

import pytest

from agents.providers import transport
from agents.providers.base import ProviderError
from tests.providers.conftest import Asking
from tests.tools.network.web_server import Reply, WebServer, dripping, reply

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


@pytest.mark.parametrize(
    "response",
    [reply(b" " * 100_001), dripping(CHUNKED, b"1;" + b"e" * 8000 + b"\r\n \r\n", 0)],
    ids=["content", "chunks that say more than they hold"],
)
def test_a_response_over_the_limit_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, response: Reply
) -> None:
    monkeypatch.setattr(transport, "MAX_RESPONSE_BYTES", 100_000)
    with WebServer({"/v1/chat/completions": response}) as server:
        with pytest.raises(ProviderError, match="sent more than 100000 bytes") as caught:
            Asking(f"{server.url}/v1")()
        assert (caught.value.code, caught.value.transient) == ("bad_answer", False)
        assert len(server.requests) == 1
