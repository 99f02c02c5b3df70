"""Read responses. This module has what all formats share, such as lines, JSON objects, streamed
text and errors."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agents.providers.base import ProviderError, Usage
from agents.providers.content_text import extract_text
from agents.providers.late_usage import StreamRest
from agents.providers.reasoning_text import ReasoningSplitter
from agents.providers.response_limits import ResponseLimits
from agents.providers.server_errors import build_body_error, build_response_error, quote
from agents.providers.transport import CancelScope
from agents.providers.wire_json import read_json
from tools.contract import make_storable

MAX_TOKENS = 10_000_000
"""The maximum number of tokens that are counted for one response. A higher number is wrong, and
could overflow a run's sum."""
_LONGEST_START = 5
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class RawResponse:
    """An assistant message as it was received, with the usage if the server reported it.

    If the stream continues, `rest` reads the rest of it and closes it.
    """

    message: dict[str, Any]
    finish_reason: str
    usage: Usage | None
    rest: StreamRest | None = None


@dataclass
class ResponseProgress:
    """The part of a response that has been received. It is kept and counted if the rest never
    arrives.

    Attributes:
        has_content: True once a part of the response has arrived.
        build: returns the message so far.
    """

    usage: Usage | None = None
    has_content: bool = False
    build: Callable[[], dict[str, Any]] = dict
    _limits: ResponseLimits = field(default_factory=ResponseLimits)

    def add(self, piece: Any) -> bool:
        """Add a piece of the message, and return True if it has content.

        Raises:
            ProviderError: the response is too long, or only repeats itself.
        """
        texts = list(_list_texts(piece))
        self.has_content = self.has_content or bool(texts)
        for text in texts:
            self._limits.add(text)
        return bool(texts)


def _list_texts(piece: Any) -> Iterator[str]:
    """Yield the texts in a piece: those of the response, of its reasoning, and of the params of its
    calls."""
    if not isinstance(piece, dict):
        return
    for name, value in piece.items():
        if name == "content":
            text = extract_text(value)
        elif name in ("tool_calls", "function_call"):
            text = "".join(_list_params(value if isinstance(value, list) else [value]))
        else:
            text = value if isinstance(value, str) and name != "role" else ""
        if text:
            yield text


def _list_params(calls: list[Any]) -> Iterator[str]:
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            arguments = function.get("arguments")
            yield f"{function.get('name') or ''}{arguments if isinstance(arguments, str) else ''}"


@dataclass(frozen=True)
class ResponseReader:
    """Everything that is needed to read one response.

    Attributes:
        is_offered: returns True for the complete wire name of an offered tool.
        secret: the API key, which is removed from every error.
        close: ends the connection; the last reader calls it.
        progress: records each piece that arrives.
    """

    scope: CancelScope
    is_offered: Callable[[str], bool]
    secret: str
    on_text: Callable[[str], None]
    close: Callable[[], None]
    progress: ResponseProgress

    def note(self, piece: Any) -> None:
        """Record a piece of the message. If it has content, the time limit for silence starts
        again.

        Raises:
            ProviderError: the response is too long, or only repeats itself.
        """
        if self.progress.add(piece):
            self.scope.note_content()

    def parse_object(self, text: bytes) -> dict[str, Any]:
        """Parse a text that is a JSON object.

        Raises:
            ProviderError: the text is not a JSON object, or the object reports an error.
        """
        try:
            value = read_json(text.decode())
        except ValueError as error:
            raise build_response_error(
                f"The response is not valid JSON ({error}): {self.quote(text)}"
            ) from error
        if not isinstance(value, dict):
            raise build_response_error(f"The response is not a JSON object: {self.quote(text)}")
        if value.get("error"):
            raise build_body_error(value["error"], self.secret)
        return value

    def build_unreadable_error(self, body: bytes, address_hint: str) -> ProviderError:
        """Build the error for a body that a model server would never send."""
        if not body:
            return build_response_error("The model's server responded with an empty body")
        if body.startswith(b"<"):
            return build_response_error(
                f"The server sent a web page. Check the base URL: {address_hint}. It began: {self.quote(body)}",
                transient=False,
            )
        return build_response_error(f"The model's server sent no JSON: {self.quote(body)}")

    def quote(self, text: bytes) -> str:
        """Quote the text for an error message, without the secret."""
        return quote(text[:2000].decode("utf-8", "replace"), self.secret)


class TextRelay:
    """Passes on streamed text without reasoning, in a form that can be stored. Half of a surrogate
    pair is held back until the other half arrives."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._splitter = ReasoningSplitter()
        self._half = ""
        self._has_passed_on = False

    def add(self, text: str) -> None:
        text = self._half + self._strip_gap(self._splitter.add(text))
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        self._pass_on(text[: len(text) - len(self._half)])

    def finish(self) -> None:
        """Pass on the text that was held back: a lone surrogate, or text that only looked like
        reasoning."""
        self._pass_on(self._half + self._strip_gap(self._splitter.finish()))

    def _strip_gap(self, text: str) -> str:
        """Remove the blank lines that follow reasoning."""
        return text.lstrip() if self._splitter.blocks and not self._has_passed_on else text

    def _pass_on(self, text: str) -> None:
        if text:
            self._has_passed_on = True
            self._on_text(make_storable(text))


def read_first_bytes(chunks: Iterator[bytes]) -> bytes:
    """Return the first bytes of the body, without a byte order mark and leading white space. These
    are at least five bytes, unless the body is shorter."""
    start = b""
    for chunk in chunks:
        start = (start + chunk).removeprefix(_BYTE_ORDER_MARK).lstrip()
        if len(start) >= _LONGEST_START:
            break
    return start


def split_lines(start: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines of `start` and of the chunks after it, without LF or CRLF. The last line may
    be empty."""
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


def parse_token_count(value: Any) -> int:
    """Return the number of tokens in a server's report, limited to between 0 and MAX_TOKENS; 0 if
    the value is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(max(0, min(value, MAX_TOKENS)))
