"""A server's responses in raw form, before the protocol's client checks them.

The client refuses a whole response because of one invalid part, and it creates its own errors in
the server's name. So each response is taken from the transport, and the client gets a short valid
one instead.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import mcp_types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from tools.contract import canonical_json

UNUSUAL_CODE = 0
"""The code for an error that has no usable code; such an error is not evidence about the call."""
MAX_DEPTH = 150
_MAX_WORDS_LENGTH = 4_000
_WORD_KEYS = (
    "message",
    "error_description",
    "detail",
    "error",
    "title",
    "reason",
    "description",
    "data",
)

Message: TypeAlias = mcp_types.JSONRPCMessage
Stream: TypeAlias = Any
"""A stream of the protocol's client; its own type is private."""
Transport: TypeAlias = AbstractAsyncContextManager[tuple[Stream, Stream]]


class ServerError(Exception):
    """An error object that the server sent as its response."""

    def __init__(self, error: mcp_types.ErrorData) -> None:
        super().__init__(error.message)
        self.code = error.code
        self.words = error.message


@dataclass
class ExpectedResponse:
    """The response to one request.

    Attributes:
        replace: takes the raw result, of any JSON type, and returns a valid one for the protocol's
            client.
        error: the error that the client got; over HTTP, it may be the client's own.
    """

    replace: Callable[[Any], dict[str, Any]]
    has_result: bool = False
    result: Any = None
    error: mcp_types.ErrorData | None = None

    def take(self, message: Message) -> Message:
        """Keep the raw response and return the one for the client."""
        if isinstance(message, mcp_types.JSONRPCError):
            self.error = message.error
            return message
        assert isinstance(message, mcp_types.JSONRPCResponse)
        self.has_result, self.result = True, message.result
        return mcp_types.JSONRPCResponse(
            jsonrpc="2.0", id=message.id, result=self.replace(message.result)
        )


expected_response: ContextVar[ExpectedResponse | None] = ContextVar(
    "expected_response", default=None
)
"""Receives the response to this task's request; without one, the client reads responses itself."""


@asynccontextmanager
async def watch_responses(transport: Transport) -> AsyncIterator[tuple[Stream, Stream]]:
    """Open the transport and take the responses to requests sent with an `expected_response`."""
    async with transport as (read, write):
        expected: dict[str, ExpectedResponse] = {}
        yield _WatchedReads(read, expected), _WatchedWrites(write, expected)


class _WatchedStream:
    def __init__(self, inner: Stream, expected: dict[str, ExpectedResponse]) -> None:
        self._inner = inner
        self._expected = expected

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *failure: Any) -> Any:
        return await self._inner.__aexit__(*failure)


class _WatchedWrites(_WatchedStream):
    async def send(self, item: SessionMessage, /) -> None:
        message, response = item.message, expected_response.get()
        if response is not None and isinstance(message, mcp_types.JSONRPCRequest):
            self._expected[str(message.id)] = response
        elif (
            isinstance(message, mcp_types.JSONRPCNotification)
            and message.method == "notifications/cancelled"
        ):
            self._expected.pop(str((message.params or {}).get("requestId")), None)
        await self._inner.send(item)


class _WatchedReads(_WatchedStream):
    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._take(await self._inner.__anext__())

    async def receive(self) -> SessionMessage | Exception:
        return self._take(await self._inner.receive())

    def _take(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if not isinstance(item, SessionMessage) or not isinstance(
            item.message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError
        ):
            return item
        message = item.message
        number: Any = message.id
        if number is None and len(self._expected) == 1:  # it belongs to the only request
            message.id = next(iter(self._expected))
            if isinstance(message, mcp_types.JSONRPCError):
                message.error.code = UNUSUAL_CODE
        response = self._expected.pop(str(message.id), None)
        if response is not None:
            return SessionMessage(response.take(message), item.metadata)
        if isinstance(message, mcp_types.JSONRPCResponse):
            raw: Any = message.result
            message.result = raw if isinstance(raw, dict) else {}
        return item


def read_messages(text: bytes) -> list[Message]:
    """Read the messages of a text: one valid message, or else everything that can be read as a
    response."""
    try:
        return [mcp_types.jsonrpc_message_adapter.validate_json(text, by_name=False)]
    except ValidationError:
        pass
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    entries = found if isinstance(found, list) else [found]
    return [message for entry in entries if (message := _repair_message(entry)) is not None]


def find_response(
    body: bytes, is_stream: bool
) -> mcp_types.JSONRPCResponse | mcp_types.JSONRPCError | None:
    """Find the last response in the body of an HTTP response to one request; None if
    there is none."""
    texts = _list_events(body) if is_stream else [body]
    messages = [message for text in texts for message in read_messages(text)]
    kinds = (mcp_types.JSONRPCResponse, mcp_types.JSONRPCError)
    return next((message for message in reversed(messages) if isinstance(message, kinds)), None)


def find_words(value: Any) -> str:
    """Return the message of an error of any shape: a text, the first text under a usual key, or
    else the JSON."""
    if isinstance(value, str):
        return value[:_MAX_WORDS_LENGTH]
    if isinstance(value, dict):
        found = (
            find_words(value[key]) for key in _WORD_KEYS if value.get(key) not in (None, "", [], {})
        )
        if words := next(filter(None, found), ""):
            return words
    return "" if value in (None, [], {}) else canonical_json(value)[:_MAX_WORDS_LENGTH]


def _list_events(body: bytes) -> Iterator[bytes]:
    """Yield the data of each event of a stream."""
    for event in body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n\n"):
        lines = (line for line in event.split(b"\n") if line.startswith(b"data:"))
        if data := b"\n".join(line[5:].removeprefix(b" ") for line in lines):
            yield data


def _is_too_deep(found: Any) -> bool:
    level = [found] if isinstance(found, dict | list) else []
    for _ in range(MAX_DEPTH):
        nodes = (node.values() if isinstance(node, dict) else node for node in level)
        level = [child for node in nodes for child in node if isinstance(child, dict | list)]
        if not level:
            return False
    return True


def _repair_message(found: Any) -> Message | None:
    """Build the message that the server meant; None if that is not clear."""
    if not isinstance(found, dict):
        return None
    try:
        return mcp_types.jsonrpc_message_adapter.validate_python(found, by_name=False)
    except ValidationError:
        return None if "method" in found else _repair_response(found)


def _repair_response(found: dict[str, Any]) -> Message | None:
    name = _read_id(found.get("id"))
    error = found.get("error")
    if error in (None, False) and "result" in found:
        unnamed: Any = name
        result = _cut_deep_result(found["result"])
        return mcp_types.JSONRPCResponse.model_construct(jsonrpc="2.0", id=unnamed, result=result)
    if error in (None, False) and name is None:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    is_plain = isinstance(code, int) and not isinstance(code, bool) and "result" not in found
    said = error or {
        key: value for key, value in found.items() if key not in ("jsonrpc", "id", "error")
    }
    data = mcp_types.ErrorData(
        code=code if is_plain and code else UNUSUAL_CODE, message=find_words(said)
    )
    return mcp_types.JSONRPCError(jsonrpc="2.0", id=name, error=data)


def _read_id(given: Any) -> int | str | None:
    if isinstance(given, float) and given.is_integer():
        return int(given)
    return given if isinstance(given, int | str) and not isinstance(given, bool) else None


def _cut_deep_result(result: Any) -> Any:
    """Return the result, or a sentence in its place if it is nested too deeply to be read."""
    if not _is_too_deep(result):
        return result
    flag = result.get("isError") if isinstance(result, dict) else None
    return {"content": "[the response is nested too deeply to show]", "isError": flag}
