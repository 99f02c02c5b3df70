"""Reads what came over the wire into one assistant's message: event streams, whole completions, and nonsense."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from agents.providers.base import ProviderError, Usage
from agents.providers.deltas import StreamedMessage
from agents.providers.failures import bad_answer, from_error_object, quote
from agents.providers.parts import text_of
from agents.providers.transport import Watch
from agents.providers.wire_json import read_json
from tools.contract import made_storable

END_GRACE_S = 2.0
DRAIN_S = 0.2
MOST_TOKENS = 10_000_000
"""Of one answer; what a server counts beyond that is wrong, and the sum of a run must fit its column."""
_EVENT_STREAM_STARTS = (b"data", b"event", b"id", b"retry", b":")
_LONGEST_START = 5
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Received:
    """An assistant's message as it came, with `finish_reason` and what it cost."""

    message: dict[str, Any]
    finish_reason: str
    usage: Usage


@dataclass(frozen=True)
class Reader:
    """Reads one answer. `offers` tells a complete wire name, `secret` never appears in an error."""

    watch: Watch
    offers: Callable[[str], bool]
    secret: str
    on_text: Callable[[str], None]

    def read(self, chunks: Iterator[bytes]) -> Received:
        """Raises ProviderError when what came is no whole answer."""
        start = _first_bytes(chunks)
        if start.startswith(_EVENT_STREAM_STARTS):
            return self._read_stream(_events(start, chunks))
        body = start + b"".join(chunks)
        if start.startswith(b"{"):
            return self._read_completion(body)
        if not body:
            raise bad_answer("The model's server answered with an empty body")
        shown = quote(body[:2000].decode("utf-8", "replace"), self.secret)
        if start.startswith(b"<"):
            raise bad_answer(
                f"A web page came instead of an answer; is the base URL right (it often ends in /v1)? {shown}",
                transient=False,
            )
        raise bad_answer(f"The model's server answered with neither JSON nor an event stream: {shown}")

    def _read_completion(self, body: bytes) -> Received:
        answer = self._object(body)
        choice = _first_choice(answer)
        message = choice.get("message") if choice else None
        if choice is None or not isinstance(message, dict):
            raise bad_answer(f"The answer has no choices with a message: {self._shown(body)}")
        text = text_of(message.get("content"))
        telling = _Telling(self.on_text)
        telling.add(text)
        telling.finish()
        return Received(message, str(choice.get("finish_reason") or ""), _usage(answer) or Usage())

    def _read_stream(self, events: Iterator[bytes]) -> Received:
        message = StreamedMessage(self.offers)
        telling = _Telling(self.on_text)
        finish_reason, usage, done = "", Usage(), False
        try:
            for event in events:
                if done or event.startswith(b"[DONE]"):
                    done = True
                    self.watch.shorten(DRAIN_S)
                    continue
                chunk = self._object(event)
                usage = _usage(chunk) or usage
                choice = _first_choice(chunk)
                if choice is None:
                    continue
                telling.add(message.add(choice.get("delta") or choice.get("message")))
                if choice.get("finish_reason"):
                    finish_reason = str(choice["finish_reason"])
                    self.watch.shorten(END_GRACE_S)
        except ProviderError:
            if not (finish_reason or done):
                raise
        if not finish_reason:
            raise ProviderError("cut_stream", "The stream ended before the answer was finished", transient=True)
        telling.finish()
        return Received(message.whole(), finish_reason, usage)

    def _object(self, text: bytes) -> dict[str, Any]:
        try:
            value = read_json(text.decode())
        except ValueError as error:
            raise bad_answer(f"The answer is not valid JSON ({error}): {self._shown(text)}") from error
        if not isinstance(value, dict):
            raise bad_answer(f"The answer is not a JSON object: {self._shown(text)}")
        if value.get("error"):
            raise from_error_object(value["error"], self.secret)
        return value

    def _shown(self, text: bytes) -> str:
        return quote(text[:2000].decode("utf-8", "replace"), self.secret)


class _Telling:
    """Passes text on as it comes, fit to be stored; the first half of a surrogate pair waits for the second."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._half = ""

    def add(self, text: str) -> None:
        text = self._half + text
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        self._tell(text[: len(text) - len(self._half)])

    def finish(self) -> None:
        """Tell a half that stayed alone too."""
        self._tell(self._half)

    def _tell(self, text: str) -> None:
        if text:
            self._on_text(made_storable(text))


def _first_bytes(chunks: Iterator[bytes]) -> bytes:
    start = b""
    for chunk in chunks:
        start = (start + chunk).removeprefix(_BYTE_ORDER_MARK).lstrip()
        if len(start) >= _LONGEST_START:
            break
    return start


def _events(start: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The data of each server-sent event; lines end with LF or CRLF, and a last event may lack its blank line."""
    data: list[bytes] = []
    for line in _lines(start, chunks):
        if line.startswith(b"data:"):
            data.append(line[5:].strip())
        elif not line and data:
            yield b"\n".join(data)
            data = []
    if data:
        yield b"\n".join(data)


def _lines(start: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    unfinished: list[bytes] = []
    chunk: bytes | None = start
    while chunk is not None:
        head, *rest = chunk.split(b"\n")
        unfinished.append(head)
        if rest:
            yield b"".join(unfinished).rstrip(b"\r")
            for line in rest[:-1]:
                yield line.rstrip(b"\r")
            unfinished = [rest[-1]]
        chunk = next(chunks, None)
    yield b"".join(unfinished).rstrip(b"\r")


def _first_choice(answer: dict[str, Any]) -> dict[str, Any] | None:
    choices = answer.get("choices")
    if not isinstance(choices, list):
        return None
    return next((choice for choice in choices if isinstance(choice, dict) and not choice.get("index")), None)


def _usage(answer: dict[str, Any]) -> Usage | None:
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return None
    return Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(max(0, min(value, MOST_TOKENS)))
