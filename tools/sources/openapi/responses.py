"""Conversion of an API's responses into tool results, or into errors that the model can act on."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from email.message import Message
from mimetypes import guess_extension
from typing import Any
from urllib.parse import unquote, urlsplit

from tools.contract import JSON_TYPE, ErrorCode, ResultFile, ToolError, ToolResult, find_media_type
from tools.contract.canonical import refuse_constant
from tools.network import ClientResponse

_MAX_EXCERPT_LENGTH = 300
_MAX_EXCERPT_DEPTH = 4
_MESSAGE_KEYS = (
    "message",
    "error_description",
    "detail",
    "error",
    "errors",
    "description",
    "reason",
    "title",
    "msg",
)
_RESULT_HEADERS = ("content-type", "content-length", "etag", "last-modified", "location", "allow")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+")
_RETRY_AFTER = re.compile(r"[0-9A-Za-z ,:+-]{1,40}")

_CODES = {
    400: ErrorCode.VALIDATION_ERROR,
    401: ErrorCode.UNAUTHORIZED,
    403: ErrorCode.FORBIDDEN,
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.OPERATION_NOT_ALLOWED,
    408: ErrorCode.TIMEOUT,
    409: ErrorCode.VALIDATION_ERROR,
    410: ErrorCode.NOT_FOUND,
    412: ErrorCode.VALIDATION_ERROR,
    422: ErrorCode.VALIDATION_ERROR,
    429: ErrorCode.RATE_LIMIT_EXCEEDED,
}
_HINTS = {
    ErrorCode.VALIDATION_ERROR: "Correct the params and try again.",
    ErrorCode.UNAUTHORIZED: "An admin must check the credentials of this connection.",
    ErrorCode.FORBIDDEN: "The connection's account may not do this; ask for something else.",
    ErrorCode.NOT_FOUND: "Check the ids in the params.",
}


def build_result(response: ClientResponse, summary: str) -> ToolResult:
    """Build a tool result: JSON as data, text as text, anything else as its type and size.

    Args:
        summary: the request, for people.
    """
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    result = _read_response(response, media_type, summary)
    metadata = {"status": response.status, "content_type": media_type}
    return replace(result, metadata=metadata, content_type=find_media_type(media_type) or JSON_TYPE)


def _read_response(response: ClientResponse, media_type: str, summary: str) -> ToolResult:
    line = f"{summary}: {response.status}"
    if not response.content:
        headers = {
            name: response.headers[name] for name in _RESULT_HEADERS if name in response.headers
        }
        return ToolResult.ok({"status": response.status, **headers}, line)
    is_json = media_type.endswith("json") or not media_type
    if is_json and (found := _parse_json(response)) is not _NOT_JSON:
        return ToolResult.ok(found, line)
    if (
        is_json
        or media_type.startswith("text/")
        or media_type.endswith(("xml", "yaml", "javascript", "x-www-form-urlencoded"))
    ):
        return ToolResult.ok(response.text, line)
    size = len(response.content)
    return ToolResult.ok(
        {"content_type": media_type, "bytes": size},
        f"{line}, {size:,} bytes of {media_type}",
        files=[ResultFile(_name_file(response, media_type), response.content, media_type)],
    )


def _name_file(response: ClientResponse, media_type: str) -> str:
    """Return the file's name, from a header or the address, with a suffix for its media type."""
    header = Message()
    header["content-disposition"] = response.headers.get("content-disposition", "")
    name = (
        header.get_filename()
        or unquote(urlsplit(response.url).path.rstrip("/").rpartition("/")[2])
        or "file"
    )
    return name if "." in name else f"{name}{guess_extension(media_type) or ''}"


def raise_for_status(response: ClientResponse, summary: str, *, has_side_effects: bool) -> None:
    """Raise a ToolError unless the status is a success.

    After a write, 303 is a success, and the outcome is unknown (OUTCOME_UNKNOWN) after a server
    error (5xx) or a redirect by 301 or 302. A client error (4xx) means that the write did not
    happen.
    """
    status = response.status
    if 200 <= status < 300 or (has_side_effects and status == 303):
        return
    code = _CODES.get(status, ErrorCode.OPERATION_FAILED)
    if has_side_effects and (status >= 500 or status in (301, 302)):
        code = ErrorCode.OUTCOME_UNKNOWN
    hint, words = _choose_hint(code, response), extract_excerpt(response)
    raise ToolError(code, f"{summary} failed with {status}.", recovery_hint=hint, words=words)


def extract_excerpt(response: ClientResponse) -> str:
    """Extract the error message of a JSON or text response: one line of at most 300 characters."""
    found = _parse_json(response)
    plain = response.headers.get("content-type", "").startswith("text/plain")
    text = (
        response.text
        if found is _NOT_JSON and plain
        else ""
        if found is _NOT_JSON
        else _join_messages(found)
    )
    line = " ".join(_UNPRINTABLE.sub(" ", text).split())
    return line if len(line) <= _MAX_EXCERPT_LENGTH else f"{line[: _MAX_EXCERPT_LENGTH - 1]}…"


def _choose_hint(code: ErrorCode, response: ClientResponse) -> str:
    after = response.headers.get("retry-after", "")
    if code is ErrorCode.RATE_LIMIT_EXCEEDED and _RETRY_AFTER.fullmatch(after):
        return (
            f"Try again after {after} seconds." if after.isdigit() else f"Try again after {after}."
        )
    if code is ErrorCode.RATE_LIMIT_EXCEEDED:
        return "Try again later, and ask for less at once."
    if code is ErrorCode.OUTCOME_UNKNOWN:
        return "Check whether it was done."
    return _HINTS.get(code, "")


_NOT_JSON: Any = object()


def _parse_json(response: ClientResponse) -> Any:
    try:
        return json.loads(response.content, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _join_messages(value: Any) -> str:
    return "; ".join(dict.fromkeys(filter(None, _find_messages(value, 0))))


def _find_messages(value: Any, depth: int) -> Iterator[str]:
    """Yield the texts under keys that usually hold error messages."""
    if depth > _MAX_EXCERPT_DEPTH:
        return
    if isinstance(value, str):
        yield value.strip()[: _MAX_EXCERPT_LENGTH + 1]
    elif isinstance(value, list):
        for entry in value[:3]:
            yield from _find_messages(entry, depth + 1)
    elif isinstance(value, dict):
        for key in _MESSAGE_KEYS:
            if key in value:
                yield from _find_messages(value[key], depth + 1)
