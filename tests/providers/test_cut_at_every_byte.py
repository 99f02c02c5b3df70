"""A stream that is cut at any byte is never treated as a complete response, and the received part
is stored and counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agents.providers.base import ProviderError
from agents.providers.ollama_streams import read_chat
from agents.providers.openai_streams import read_completion
from agents.providers.response_reader import RawResponse, ResponseProgress, ResponseReader
from agents.providers.responses import build_response
from agents.providers.transport import CancelScope
from agents.providers.wire_names import WireNames
from tests.model_server import Call, ModelServer, Response
from tests.ollama_server import Chat
from tests.providers.conftest import Asking

NAMES = WireNames(["data.searchRecords", "utility.now"])
CALLS = (Call("data.searchRecords", {"region": "EU", "text": "ü"}), Call("utility.now"))
TEXT = "Zürich — 47 records. 😀"
Read = Callable[[ResponseReader, Iterator[bytes]], RawResponse]
STREAMS: dict[str, tuple[Read, Response]] = {
    "text": (read_completion, Response(text=TEXT)),
    "calls": (read_completion, Response(text="I look.", calls=CALLS)),
    "calls in one delta": (read_completion, Response(calls=CALLS, style="one_delta")),
    "reasoning": (read_completion, Response(text=f"<think>Hm.</think>{TEXT}")),
    "without a finish reason": (read_completion, Response(text=TEXT, finish=None)),
    "Ollama's text": (read_chat, Chat(text=TEXT)),
    "Ollama's calls": (read_chat, Chat(text="I look.", calls=CALLS)),
}


def read(reading: Read, data: bytes) -> tuple[Any, ResponseProgress, str]:
    """Read the bytes of a stream; return the response or the error, the progress, and the text that
    was passed on."""
    progress, heard = ResponseProgress(), list[str]()
    scope = CancelScope(time.monotonic() + 20, threading.Event())
    reader = ResponseReader(scope, NAMES.is_offered, "", heard.append, lambda: None, progress)
    try:
        received = reading(reader, iter([data]))
        return build_response(received, NAMES, frozenset()), progress, "".join(heard)
    except ProviderError as error:
        return error, progress, "".join(heard)


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_cut_at_any_byte_is_either_complete_or_refused(name: str) -> None:
    reading, response = STREAMS[name]
    data = response.stream(1)
    whole, _, _ = read(reading, data)
    assert not isinstance(whole, ProviderError)
    is_whole = False
    for end in range(len(data) + 1):
        result, progress, heard = read(reading, data[:end])
        assert whole.text.startswith(heard.strip()) or heard.startswith(whole.text[:1])
        if isinstance(result, ProviderError):
            assert not is_whole, f"whole before byte {end}, and cut again"
            assert result.transient
            message = progress.build()
            assert progress.has_content == bool(
                message.get("content") or any(message.get("tool_calls") or [])
            )
        else:
            is_whole = True
            assert (result.text, [call.arguments for call in result.calls]) == (
                whole.text,
                [call.arguments for call in whole.calls],
            )
    assert is_whole


@pytest.mark.parametrize("streamed", [True, False])
def test_text_that_is_received_before_the_connection_is_cut_is_kept(
    server: ModelServer, ask: Asking, streamed: bool
) -> None:
    data = Response(text=TEXT).stream(1) if streamed else Response(text=TEXT).completion(1)
    for end in range(1, data.index(b'"finish_reason": "stop"'), 37):
        server.enqueue(Response(raw=data[:end], fault="cut_raw"))
        with pytest.raises(ProviderError) as caught:
            ask(max_retries=0)
        assert caught.value.transient, caught.value
        assert TEXT.startswith(caught.value.text)
        assert (caught.value.usage is not None) or not caught.value.text
