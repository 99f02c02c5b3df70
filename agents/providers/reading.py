"""Reading one answer off the wire, in whichever format: lines, JSON objects, text told as it comes, and nonsense."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from agents.providers.base import ProviderError, Usage
from agents.providers.failures import bad_answer, from_error_object, quote
from agents.providers.tails import Tail
from agents.providers.thoughts import ThoughtSplitter
from agents.providers.transport import Watch
from agents.providers.wire_json import read_json
from tools.contract import made_storable

MOST_TOKENS = 10_000_000
"""Of one answer; what a server counts beyond that is wrong, and the sum of a run must fit its column."""
_LONGEST_START = 5
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Received:
    """An assistant's message as it came, with `finish_reason`, what it took if its server said so, and what follows.

    With a `tail` the stream is the tail's to close.
    """

    message: dict[str, Any]
    finish_reason: str
    usage: Usage | None
    tail: Tail | None = None


@dataclass(frozen=True)
class Reading:
    """One answer that is being read. `offers` tells a complete wire name, `secret` never appears in an error.

    `close` ends the connection, for the last reader.
    """

    watch: Watch
    offers: Callable[[str], bool]
    secret: str
    on_text: Callable[[str], None]
    close: Callable[[], None]

    def object_in(self, text: bytes) -> dict[str, Any]:
        """The JSON object; raises ProviderError if it is none, or tells of an error."""
        try:
            value = read_json(text.decode())
        except ValueError as error:
            raise bad_answer(f"The answer is not valid JSON ({error}): {self.shown(text)}") from error
        if not isinstance(value, dict):
            raise bad_answer(f"The answer is not a JSON object: {self.shown(text)}")
        if value.get("error"):
            raise from_error_object(value["error"], self.secret)
        return value

    def unreadable(self, body: bytes, address_hint: str) -> ProviderError:
        """The failure behind a body that no model's server sends."""
        if not body:
            return bad_answer("The model's server answered with an empty body")
        if body.startswith(b"<"):
            return bad_answer(
                f"A web page came instead of an answer; is the base URL right ({address_hint})? {self.shown(body)}",
                transient=False,
            )
        return bad_answer(f"The model's server answered with neither JSON nor a stream of it: {self.shown(body)}")

    def shown(self, text: bytes) -> str:
        return quote(text[:2000].decode("utf-8", "replace"), self.secret)


class Telling:
    """Passes text on as it comes, without thoughts and fit to be stored; half a surrogate pair waits for the second."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._thoughts = ThoughtSplitter()
        self._half = ""
        self._has_told = False

    def add(self, text: str) -> None:
        text = self._half + self._visible(self._thoughts.add(text))
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        self._tell(text[: len(text) - len(self._half)])

    def finish(self) -> None:
        """Pass on the rest: a lone surrogate, and text that only looked like a thought."""
        self._tell(self._half + self._visible(self._thoughts.finish()))

    def _visible(self, text: str) -> str:
        """Leave out the lines between a thought and the answer."""
        return text.lstrip() if self._thoughts.thoughts and not self._has_told else text

    def _tell(self, text: str) -> None:
        if text:
            self._has_told = True
            self._on_text(made_storable(text))


def first_bytes(chunks: Iterator[bytes]) -> bytes:
    """What came first, without a byte order mark and white space; empty only if nothing came."""
    start = b""
    for chunk in chunks:
        start = (start + chunk).removeprefix(_BYTE_ORDER_MARK).lstrip()
        if len(start) >= _LONGEST_START:
            break
    return start


def lines(start: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The lines of `start` and what follows it, ended with LF or CRLF; the last may be empty."""
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


def token_count(value: Any) -> int:
    """What a server counted, within bounds; 0 for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(max(0, min(value, MOST_TOKENS)))
