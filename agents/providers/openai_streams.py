"""Read a response of Chat Completions, which is an event stream or one JSON object, into an
assistant message."""

import contextlib
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

from agents.providers.base import ProviderError, Usage
from agents.providers.content_text import extract_text
from agents.providers.late_usage import DRAIN_S, StreamRest
from agents.providers.reasoning_text import split_reasoning
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
from agents.providers.wire_json import is_json_object

_EVENT_STREAM_STARTS = (b"data", b"event", b"id", b"retry", b":")


def read_completion(reader: ResponseReader, chunks: Iterator[bytes]) -> RawResponse:
    """Read the response, as an event stream or as one JSON object.

    Raises:
        ProviderError: the response is incomplete or unreadable.
    """
    start = read_first_bytes(chunks)
    if start.startswith(_EVENT_STREAM_STARTS):
        return _read_stream(reader, _split_events(start, chunks))
    body = start + b"".join(chunks)
    if start.startswith(b"{"):
        return _read_body(reader, body)
    raise reader.build_unreadable_error(body, "it often ends in /v1")


def _read_body(reader: ResponseReader, body: bytes) -> RawResponse:
    completion = reader.parse_object(body)
    reader.progress.usage = _parse_usage(completion)
    choice = _find_choice(completion)
    message = choice.get("message") if choice else None
    if choice is None or not isinstance(message, dict):
        raise build_response_error(
            f"The response has no choices with a message: {reader.quote(body)}"
        )
    relay = TextRelay(reader.on_text)
    relay.add(extract_text(message.get("content")))
    relay.finish()
    return RawResponse(message, _read_finish_reason(choice), _parse_usage(completion))


def _read_stream(reader: ResponseReader, events: Iterator[bytes]) -> RawResponse:
    stream = _EventStream(reader)
    for event in events:
        stream.add_event(event)
        if stream.finish_reason:
            return stream.finish(events)
        if stream.is_done:
            break
    if stream.is_done and is_complete(stream.message.build()):
        reader.scope.shorten(DRAIN_S)
        with contextlib.suppress(ProviderError):
            deque(events, maxlen=0)
        stream.finish_reason = "stop"
        return stream.build_response()
    raise ProviderError(
        "cut_stream", "The stream ended before the response was finished", transient=True
    )


class _EventStream:
    """The part of a streamed response that has been received."""

    def __init__(self, reader: ResponseReader) -> None:
        self.message = StreamedMessage(reader.is_offered)
        reader.progress.build = self.message.build
        self.finish_reason = ""
        self.usage: Usage | None = None
        self.is_done = False
        self._reader = reader
        self._relay = TextRelay(reader.on_text)
        self._lock = threading.Lock()
        self._is_returned = False

    def add_event(self, event: bytes) -> None:
        """Add an event. Once the response has been returned, only the event's usage is read."""
        if self.is_done or event.startswith(b"[DONE]"):
            self.is_done = True
            return
        chunk = self._reader.parse_object(event)
        self.usage = self._reader.progress.usage = _parse_usage(chunk) or self.usage
        choice = _find_choice(chunk)
        with self._lock:
            if choice is None or self._is_returned:
                return
            piece = choice.get("delta") or choice.get("message")
            self._relay.add(self.message.add(piece))
            self._reader.note(piece)
            self.finish_reason = _read_finish_reason(choice) or self.finish_reason

    def finish(self, events: Iterator[bytes]) -> RawResponse:
        """Return the response. If the stream does not end soon, let another thread read the
        rest."""
        scope = self._reader.scope
        rest = StreamRest(self._read_rest(events), scope.copy(), self._reader.close)
        has_ended = rest.start()
        with self._lock:
            self._is_returned = True
        if has_ended or self.usage is None:
            return self.build_response(None if has_ended else rest)
        rest.abandon()
        return self.build_response(rest)

    def build_response(self, rest: StreamRest | None = None) -> RawResponse:
        """Build the response from the events so far."""
        self._relay.finish()
        return RawResponse(self.message.build(), self.finish_reason, self.usage, rest)

    def _read_rest(self, events: Iterator[bytes]) -> Iterator[tuple[Usage | None, bool]]:
        for event in events:
            self.add_event(event)
            yield self.usage, self.is_done


def is_complete(message: dict[str, Any]) -> bool:
    """Return True if a message without a finish reason looks complete, because it has complete
    calls, or text in addition to reasoning."""
    calls = message.get("tool_calls") or []
    if calls:
        functions = [call["function"] for call in calls]
        return all(
            each["name"] and is_json_object(each["arguments"].strip() or "{}") for each in functions
        )
    return bool(
        split_reasoning(extract_text(message.get("content"))).content.strip()
        or message.get("refusal")
    )


def _read_finish_reason(choice: dict[str, Any]) -> str:
    """Return the finish reason, or "error" if the choice contains an error."""
    return "error" if choice.get("error") else str(choice.get("finish_reason") or "")


def _split_events(start: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the data of each server-sent event. The blank line after the last event may be
    missing."""
    data: list[bytes] = []
    for line in split_lines(start, chunks):
        if line.startswith(b"data:"):
            data.append(line[5:].strip())
        elif not line and data:
            yield b"\n".join(data)
            data = []
    if data:
        yield b"\n".join(data)


def _find_choice(completion: dict[str, Any]) -> dict[str, Any] | None:
    choices = completion.get("choices")
    if not isinstance(choices, list):
        return None
    return next(
        (choice for choice in choices if isinstance(choice, dict) and not choice.get("index")), None
    )


def _parse_usage(completion: dict[str, Any]) -> Usage | None:
    usage = completion.get("usage")
    if not isinstance(usage, dict):
        return None
    given, written = (
        parse_token_count(usage.get("prompt_tokens")),
        parse_token_count(usage.get("completion_tokens")),
    )
    cached = min(_find_cached_tokens(usage), given)
    return Usage(given, written, cached_tokens=cached) if given or written else None


def _find_cached_tokens(usage: dict[str, Any]) -> int:
    """Return the number of cached input tokens, from the field that OpenAI, DeepSeek or small
    servers use; 0 if no field has a number."""
    details = usage.get("prompt_tokens_details")
    counts = (
        details.get("cached_tokens") if isinstance(details, dict) else None,
        usage.get("prompt_cache_hit_tokens"),
        usage.get("cached_tokens"),
    )
    return next((count for value in counts if (count := parse_token_count(value))), 0)
