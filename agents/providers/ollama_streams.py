"""Reads Ollama's answer, a JSON object on each line, into one assistant's message."""

from collections.abc import Iterator
from typing import Any

from agents.providers.base import ProviderError, Usage
from agents.providers.deltas import StreamedMessage
from agents.providers.failures import bad_answer
from agents.providers.reading import Reading, Received, Telling, first_bytes, lines, token_count
from agents.providers.tails import DRAIN_S


def read_chat(reading: Reading, chunks: Iterator[bytes]) -> Received:
    """Raises ProviderError when what came is no whole answer; one that is not streamed is a single line."""
    start = first_bytes(chunks)
    if not start.startswith(b"{"):
        raise reading.unreadable(start + b"".join(chunks), "it has no /v1")
    message = _ChatMessage(reading)
    telling = Telling(reading.on_text)
    end: dict[str, Any] = {}
    try:
        for line in lines(start, chunks):
            if end or not line.strip():
                continue
            chunk = reading.object_in(line)
            telling.add(message.add(chunk, line))
            if chunk.get("done") is True:
                end = chunk
                reading.watch.shorten(DRAIN_S)
    except ProviderError:
        if not end:
            raise
    if not end:
        raise ProviderError("cut_stream", "The stream ended before the answer was finished", transient=True)
    telling.finish()
    usage = Usage(token_count(end.get("prompt_eval_count")), token_count(end.get("eval_count")))
    return Received(message.whole(), str(end.get("done_reason") or "stop"), usage if usage.total else None)


class _ChatMessage:
    """Collects the pieces of a message; unlike those of Chat Completions, each call comes whole."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._text = StreamedMessage(reading.offers)
        self._calls: list[Any] = []

    def add(self, chunk: dict[str, Any], line: bytes) -> str:
        """Take what one line brought; its text comes back."""
        piece = chunk.get("message")
        if not isinstance(piece, dict):
            raise bad_answer(f"The answer has no message: {self._reading.shown(line)}")
        calls = piece.get("tool_calls")
        self._calls += calls if isinstance(calls, list) else [calls]
        return self._text.add({name: value for name, value in piece.items() if name != "tool_calls"})

    def whole(self) -> dict[str, Any]:
        return {**self._text.whole(), "tool_calls": self._calls}
