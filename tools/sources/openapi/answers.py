"""Makes a result, or a failure that the model can act on, of what an outside API answered."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tools.contract import ErrorCode, ToolError, ToolResult
from tools.network import Answer

_LONGEST_EXCERPT = 300
_DEEPEST_EXCERPT = 4
_TELLING_KEYS = ("message", "error_description", "detail", "error", "errors", "description", "reason", "title", "msg")
_TELLING_HEADERS = ("content-type", "content-length", "etag", "last-modified", "location", "allow")
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
    ErrorCode.UNAUTHORIZED: "An admin has to check the credentials of this connection.",
    ErrorCode.FORBIDDEN: "The connection's account may not do this; ask for something else.",
    ErrorCode.NOT_FOUND: "Check the ids in the params.",
}


def result_of(answer: Answer, summary: str) -> ToolResult:
    """JSON as data, text as text, anything else as its kind and size.

    Args:
        summary: what was asked, for the person.
    """
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    told: dict[str, Any] = {"status": answer.status, "content_type": kind}
    line = f"{summary}: {answer.status}"
    if not answer.content:
        headers = {name: answer.headers[name] for name in _TELLING_HEADERS if name in answer.headers}
        return ToolResult.ok({"status": answer.status, **headers}, line, **told)
    is_json = kind.endswith("json") or not kind
    if is_json and (found := _json_in(answer)) is not _NO_JSON:
        return ToolResult.ok(found, line, **told)
    if is_json or kind.startswith("text/") or kind.endswith(("xml", "yaml", "javascript", "x-www-form-urlencoded")):
        return ToolResult.ok(answer.text, line, **told)
    size = len(answer.content)
    return ToolResult.ok({"content_type": kind, "bytes": size}, f"{line}, {size:,} bytes of {kind}", **told)


def refuse_failure(answer: Answer, summary: str, *, has_side_effects: bool) -> None:
    """Raises ToolError unless the status says that it worked.

    After a write, what a server says of itself (5xx), and leading elsewhere without a word, leave open whether it was
    done: OUTCOME_UNKNOWN. What it says of the request (4xx) means that nothing was done.
    """
    status = answer.status
    if 200 <= status < 300 or (has_side_effects and status == 303):
        return
    code = _CODES.get(status, ErrorCode.OPERATION_FAILED)
    if has_side_effects and (status >= 500 or status in (301, 302)):
        code = ErrorCode.OUTCOME_UNKNOWN
    excerpt = excerpt_of(answer).removesuffix(".")
    raise ToolError(
        code,
        f"{summary} failed with {status}{f': {excerpt}' if excerpt else ''}.",
        recovery_hint=_hint(code, answer),
    )


def excerpt_of(answer: Answer) -> str:
    """What the answer says in words, on one line of at most 300 characters; nothing of a page of HTML."""
    found = _json_in(answer)
    plain = answer.headers.get("content-type", "").startswith("text/plain")
    text = answer.text if found is _NO_JSON and plain else "" if found is _NO_JSON else _words_in(found)
    line = " ".join(_UNPRINTABLE.sub(" ", text).split())
    return line if len(line) <= _LONGEST_EXCERPT else f"{line[: _LONGEST_EXCERPT - 1]}…"


def _hint(code: ErrorCode, answer: Answer) -> str:
    after = answer.headers.get("retry-after", "")
    if code is ErrorCode.RATE_LIMIT_EXCEEDED and _RETRY_AFTER.fullmatch(after):
        return f"Try again after {after} seconds." if after.isdigit() else f"Try again after {after}."
    if code is ErrorCode.RATE_LIMIT_EXCEEDED:
        return "Try again later, and ask for less at once."
    if code is ErrorCode.OUTCOME_UNKNOWN:
        return "Look whether it was done."
    return _HINTS.get(code, "")


_NO_JSON: Any = object()


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _json_in(answer: Answer) -> Any:
    try:
        return json.loads(answer.content, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return _NO_JSON


def _words_in(value: Any) -> str:
    return "; ".join(dict.fromkeys(filter(None, _texts(value, 0))))


def _texts(value: Any, depth: int) -> Iterator[str]:
    """The texts under keys that tell what went wrong."""
    if depth > _DEEPEST_EXCERPT:
        return
    if isinstance(value, str):
        yield value.strip()[: _LONGEST_EXCERPT + 1]
    elif isinstance(value, list):
        for entry in value[:3]:
            yield from _texts(entry, depth + 1)
    elif isinstance(value, dict):
        for key in _TELLING_KEYS:
            if key in value:
                yield from _texts(value[key], depth + 1)
