"""Check messages before the SDK reads them, because the SDK would leave some messages without a
response, and refuse some clients."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server.streamable_http import check_accept_headers
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS
from starlette.requests import Request

_VERSION_HEADER = MCP_PROTOCOL_VERSION_HEADER.lower()
_BOTH = b"application/json, text/event-stream"

Scope = dict[str, Any]


@dataclass(frozen=True)
class BadMessage(Exception):
    """A message that is refused with a JSON-RPC error.

    Attributes:
        message_id: the id of the message, if it is usable.
    """

    code: int
    text: str
    message_id: str | int | None = None
    data: Any = None


def read_message(body: bytes) -> dict[str, Any]:
    """Parse one JSON-RPC message. Refuse an unusable id, because a request with such an id would
    never get a response.

    Raises:
        BadMessage
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        raise BadMessage(types.PARSE_ERROR, "The body is not JSON.") from None
    if not isinstance(message, dict):
        raise BadMessage(
            types.INVALID_REQUEST,
            "The body must be one JSON-RPC message; batches are not supported.",
        )
    message_id = message.get("id")
    if "id" in message and (isinstance(message_id, bool) or not isinstance(message_id, str | int)):
        raise BadMessage(types.INVALID_REQUEST, "id must be a string or an integer.")
    if message.get("jsonrpc") != "2.0":
        raise BadMessage(types.INVALID_REQUEST, 'jsonrpc must be "2.0".', message_id)
    if not isinstance(message.get("method"), str) and not message.keys() & {"result", "error"}:
        raise BadMessage(types.INVALID_REQUEST, "method must be a string.", message_id)
    if not isinstance(message.get("params"), dict | None):
        raise BadMessage(types.INVALID_PARAMS, "params must be an object.", message_id)
    return message


def check_version(scope: Scope, message: dict[str, Any]) -> None:
    """Refuse an unsupported revision of the protocol, and name the supported ones.

    Raises:
        BadMessage
    """
    named = read_header(scope, _VERSION_HEADER)
    if named is not None and named not in KNOWN_PROTOCOL_VERSIONS:
        supported = list(KNOWN_PROTOCOL_VERSIONS)
        text = f"Unsupported protocol version. Supported versions: {', '.join(supported)}."
        data = {"supported": supported, "requested": named[:100]}
        raise BadMessage(types.UNSUPPORTED_PROTOCOL_VERSION, text, message.get("id"), data)


def opens_session(scope: Scope, message: dict[str, Any]) -> bool:
    """Return True for an `initialize` request, with which clients of earlier revisions open a
    session."""
    named = read_header(scope, _VERSION_HEADER)
    return message.get("method") == "initialize" and (
        named is None or named in HANDSHAKE_PROTOCOL_VERSIONS
    )


def takes_only_json(scope: Scope) -> bool:
    """Return True if the client accepts JSON but no event stream."""
    return check_accept_headers(Request(scope)) == (True, False)


def accept_both(scope: Scope) -> Scope:
    """Return a scope whose headers accept both JSON and event streams, as the SDK requires. If the
    client does not accept either of them, return the scope unchanged."""
    if read_header(scope, "accept") is not None and not any(check_accept_headers(Request(scope))):
        return scope
    headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"accept"]
    return {**scope, "headers": [*headers, (b"accept", _BOTH)]}


def build_error(
    code: int, text: str, message_id: str | int | None = None, data: Any = None
) -> bytes:
    """Build the response to a refused message."""
    error = {"code": code, "message": text, **({"data": data} if data is not None else {})}
    return json.dumps({"jsonrpc": "2.0", "id": message_id, "error": error}).encode()


def read_header(scope: Scope, name: str) -> str | None:
    """Return the value of the first header with this name, which is given in lower case; None if
    there is no such header."""
    found = (
        value.decode("latin-1") for each, value in scope["headers"] if each.lower() == name.encode()
    )
    return next(found, None)
