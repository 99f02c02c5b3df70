"""Reads Chat Completions into one assistant's message: event streams, whole completions, and nonsense."""

from collections.abc import Iterator
from typing import Any

from agents.providers.base import ProviderError, Usage
from agents.providers.deltas import StreamedMessage
from agents.providers.failures import bad_answer
from agents.providers.parts import text_of
from agents.providers.reading import DRAIN_S, Reading, Received, Telling, first_bytes, lines, token_count

END_GRACE_S = 2.0
_EVENT_STREAM_STARTS = (b"data", b"event", b"id", b"retry", b":")


def read_completion(reading: Reading, chunks: Iterator[bytes]) -> Received:
    """Raises ProviderError when what came is no whole answer."""
    start = first_bytes(chunks)
    if start.startswith(_EVENT_STREAM_STARTS):
        return _from_stream(reading, _events(start, chunks))
    body = start + b"".join(chunks)
    if start.startswith(b"{"):
        return _from_body(reading, body)
    raise reading.unreadable(body, "it often ends in /v1")


def _from_body(reading: Reading, body: bytes) -> Received:
    answer = reading.object_in(body)
    choice = _first_choice(answer)
    message = choice.get("message") if choice else None
    if choice is None or not isinstance(message, dict):
        raise bad_answer(f"The answer has no choices with a message: {reading.shown(body)}")
    telling = Telling(reading.on_text)
    telling.add(text_of(message.get("content")))
    telling.finish()
    return Received(message, str(choice.get("finish_reason") or ""), _usage(answer) or Usage())


def _from_stream(reading: Reading, events: Iterator[bytes]) -> Received:
    message = StreamedMessage(reading.offers)
    telling = Telling(reading.on_text)
    finish_reason, usage, done = "", Usage(), False
    try:
        for event in events:
            if done or event.startswith(b"[DONE]"):
                done = True
                reading.watch.shorten(DRAIN_S)
                continue
            chunk = reading.object_in(event)
            usage = _usage(chunk) or usage
            choice = _first_choice(chunk)
            if choice is None:
                continue
            telling.add(message.add(choice.get("delta") or choice.get("message")))
            if choice.get("finish_reason"):
                finish_reason = str(choice["finish_reason"])
                reading.watch.shorten(END_GRACE_S)
    except ProviderError:
        if not (finish_reason or done):
            raise
    if not finish_reason:
        raise ProviderError("cut_stream", "The stream ended before the answer was finished", transient=True)
    telling.finish()
    return Received(message.whole(), finish_reason, usage)


def _events(start: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The data of each server-sent event; lines end with LF or CRLF, and a last event may lack its blank line."""
    data: list[bytes] = []
    for line in lines(start, chunks):
        if line.startswith(b"data:"):
            data.append(line[5:].strip())
        elif not line and data:
            yield b"\n".join(data)
            data = []
    if data:
        yield b"\n".join(data)


def _first_choice(answer: dict[str, Any]) -> dict[str, Any] | None:
    choices = answer.get("choices")
    if not isinstance(choices, list):
        return None
    return next((choice for choice in choices if isinstance(choice, dict) and not choice.get("index")), None)


def _usage(answer: dict[str, Any]) -> Usage | None:
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return None
    return Usage(token_count(usage.get("prompt_tokens")), token_count(usage.get("completion_tokens")))
