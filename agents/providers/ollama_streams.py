"""Read a response of Ollama, which has one JSON object per line, into an assistant message."""

from collections.abc import Iterator
from typing import Any

from agents.providers.base import ProviderError, Usage
from agents.providers.late_usage import DRAIN_S
from agents.providers.response_reader import (
    RawResponse,
    ResponseReader,
    TextRelay,
    parse_token_count,
    read_first_bytes,
    split_lines,
)
from agents.providers.server_errors import build_response_error
from agents.providers.streamed_message import StreamedMessage


def read_chat(reader: ResponseReader, chunks: Iterator[bytes]) -> RawResponse:
    """Read the response. If it is not streamed, it is a single line.

    Raises:
        ProviderError: the response is incomplete or unreadable.
    """
    start = read_first_bytes(chunks)
    if not start.startswith(b"{"):
        raise reader.build_unreadable_error(start + b"".join(chunks), "it has no /v1")
    message = _ChatMessage(reader)
    reader.progress.build = message.build
    relay = TextRelay(reader.on_text)
    end: dict[str, Any] = {}
    try:
        for line in split_lines(start, chunks):
            if end or not line.strip():
                continue
            chunk = reader.parse_object(line)
            relay.add(message.add(chunk, line))
            if chunk.get("done") is True:
                end = chunk
                reader.scope.shorten(DRAIN_S)
    except ProviderError:
        if not end:
            raise
    if not end:
        raise ProviderError(
            "cut_stream", "The stream ended before the response was finished", transient=True
        )
    relay.finish()
    usage = Usage(
        parse_token_count(end.get("prompt_eval_count")), parse_token_count(end.get("eval_count"))
    )
    return RawResponse(
        message.build(), str(end.get("done_reason") or "stop"), usage if usage.total else None
    )


class _ChatMessage:
    """Collects the pieces of a message. Unlike in Chat Completions, each call arrives complete."""

    def __init__(self, reader: ResponseReader) -> None:
        self._reader = reader
        self._text = StreamedMessage(reader.is_offered)
        self._calls: list[Any] = []

    def add(self, chunk: dict[str, Any], line: bytes) -> str:
        """Add a line, and return the text in it."""
        piece = chunk.get("message")
        if not isinstance(piece, dict):
            raise build_response_error(f"The response has no message: {self._reader.quote(line)}")
        self._reader.note(piece)
        calls = piece.get("tool_calls")
        self._calls += calls if isinstance(calls, list) else [calls]
        return self._text.add(
            {name: value for name, value in piece.items() if name != "tool_calls"}
        )

    def build(self) -> dict[str, Any]:
        return {**self._text.build(), "tool_calls": self._calls}
