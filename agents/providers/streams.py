"""Reads Chat Completions into one assistant's message: event streams, whole completions, and nonsense."""

import contextlib
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

from agents.providers.base import ProviderError, Usage
from agents.providers.deltas import StreamedMessage
from agents.providers.failures import bad_answer
from agents.providers.parts import text_of
from agents.providers.reading import Reading, Received, Telling, first_bytes, lines, token_count
from agents.providers.tails import DRAIN_S, Tail
from agents.providers.thoughts import split_text
from agents.providers.wire_json import is_object

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
    return Received(message, _finish_of(choice), _usage(answer))


def _from_stream(reading: Reading, events: Iterator[bytes]) -> Received:
    stream = _Stream(reading)
    for event in events:
        stream.take(event)
        if stream.finish_reason:
            return stream.ended(events)
        if stream.is_done:
            break
    if stream.is_done and is_whole(stream.message.whole()):
        reading.watch.shorten(DRAIN_S)
        with contextlib.suppress(ProviderError):
            deque(events, maxlen=0)
        stream.finish_reason = "stop"
        return stream.received()
    raise ProviderError("cut_stream", "The stream ended before the answer was finished", transient=True)


class _Stream:
    """The received part of one answer."""

    def __init__(self, reading: Reading) -> None:
        self.message = StreamedMessage(reading.offers)
        self.finish_reason = ""
        self.usage: Usage | None = None
        self.is_done = False
        self._reading = reading
        self._telling = Telling(reading.on_text)
        self._lock = threading.Lock()
        self._is_given = False

    def take(self, event: bytes) -> None:
        """Take one event; after the answer was returned, only its usage."""
        if self.is_done or event.startswith(b"[DONE]"):
            self.is_done = True
            return
        chunk = self._reading.object_in(event)
        self.usage = _usage(chunk) or self.usage
        choice = _first_choice(chunk)
        with self._lock:
            if choice is None or self._is_given:
                return
            self._telling.add(self.message.add(choice.get("delta") or choice.get("message")))
            self.finish_reason = _finish_of(choice) or self.finish_reason

    def ended(self, events: Iterator[bytes]) -> Received:
        """Return the answer; if its ending does not come at once, it is read in the background."""
        watch = self._reading.watch
        tail = Tail(self._rest(events), watch.copy(), self._reading.close)
        is_over = tail.read()
        with self._lock:
            self._is_given = True
        if is_over or self.usage is None:
            return self.received(None if is_over else tail)
        tail.leave()
        return self.received(tail)

    def received(self, tail: Tail | None = None) -> Received:
        self._telling.finish()
        return Received(self.message.whole(), self.finish_reason, self.usage, tail)

    def _rest(self, events: Iterator[bytes]) -> Iterator[tuple[Usage | None, bool]]:
        for event in events:
            self.take(event)
            yield self.usage, self.is_done


def is_whole(message: dict[str, Any]) -> bool:
    """Return True if a message without a finish reason is complete: whole calls, or else text that is no thought."""
    calls = message.get("tool_calls") or []
    if calls:
        functions = [call["function"] for call in calls]
        return all(each["name"] and is_object(each["arguments"].strip() or "{}") for each in functions)
    return bool(split_text(text_of(message.get("content"))).answer.strip() or message.get("refusal"))


def _finish_of(choice: dict[str, Any]) -> str:
    """Return why the answer ended; a choice with an error ended because of it."""
    return "error" if choice.get("error") else str(choice.get("finish_reason") or "")


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
    found = Usage(token_count(usage.get("prompt_tokens")), token_count(usage.get("completion_tokens")))
    return found if found.total else None
