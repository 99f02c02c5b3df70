"""Translate the errors of model servers into ProviderErrors, each with a code, a sentence, and a
flag that says whether a retry can help."""

import email.utils
import math
import re
import time
from collections.abc import Mapping
from typing import Any

from agents.providers.base import ProviderError
from agents.providers.error_kinds import (
    BROKEN_CALL,
    CONTEXT_TOO_LONG,
    TOO_MUCH_AT_ONCE,
    ErrorKind,
    find_kind,
    find_window,
)
from agents.providers.unusable_responses import MAX_TRIES_IF_BROKEN

MAX_QUOTE = 300
MAX_RETRY_AFTER_S = 24 * 3600.0
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
_STATUS_CODES = {
    400: "refused",
    401: "bad_key",
    402: "quota_exhausted",
    403: "refused",
    404: "not_found",
    405: "not_found",
    408: "timeout",
    409: "server_error",
    422: "refused",
    425: "rate_limited",
    429: "rate_limited",
    501: "refused",
}
_TRANSIENT = frozenset({"rate_limited", "server_error", "timeout"})
_MEANINGS = {
    "rate_limited": "The model's server received too many requests",
    "quota_exhausted": "The account at the model's server has no credit left",
    "server_error": "The model's server failed",
    "timeout": "The model's server took too long",
    "bad_key": "The model's server does not accept the API key",
    "not_found": "The model's server does not know this address or model",
    "refused": "The model's server refused the request",
    CONTEXT_TOO_LONG: "The conversation is longer than the model accepts",
    TOO_MUCH_AT_ONCE: "The request is larger than the account's limit per minute",
    BROKEN_CALL: "The model's response contains a tool call that its server could not parse",
    "answer_filtered": "A content filter of the model's server refused the request",
    "bad_answer": "The model's server responded with an error",
}
_CODES_BY_KIND = {BROKEN_CALL: "answer_cut", TOO_MUCH_AT_ONCE: CONTEXT_TOO_LONG}
_STATUS_BY_WORDS = (
    (("insufficient_quota", "billing", "payment"), 402),
    (("rate_limit", "rate limit", "too many requests"), 429),
    (("invalid_api_key", "authentication", "unauthorized"), 401),
    (("not_found", "not found", "does not exist"), 404),
    (("invalid_request", "bad_request"), 400),
    (("overloaded", "server_error", "unavailable", "timeout", "timed out"), 503),
)


class ModelServerError(ProviderError):
    """An error that a model server sent.

    Attributes:
        status: the HTTP status; for an error sent with status 200, the status that fits it, or None
            if no status does.
        body: the decoded JSON, or the text.
    """

    status: int | None = None
    body: Any = None


def quote(text: str, secret: str = "") -> str:
    """Quote a text for an error message, as one short line without control characters and without
    the secret."""
    if len(secret) >= 4:
        text = text.replace(secret, "***")
    line = _UNPRINTABLE.sub(" ", text[: 4 * MAX_QUOTE]).strip()
    return repr(line if len(line) <= MAX_QUOTE else line[: MAX_QUOTE - 1] + "…")


def build_response_error(message: str, *, transient: bool = True) -> ProviderError:
    """Build the error for a response that cannot be used."""
    return ProviderError("bad_answer", message, transient=transient)


def build_status_error(
    status: int, body: Any, headers: Mapping[str, str], secret: str
) -> ProviderError:
    """Build the error for an HTTP status other than 2xx; `body` is the decoded JSON, or the
    text."""
    if 300 <= status < 400:
        target = quote(headers.get("location", ""), secret)
        return ProviderError(
            "not_found",
            f"The address redirects to {target}. Set that as the base URL",
            transient=False,
        )
    failure = _build_error(status, body, f" (status {status})", secret)
    failure.retry_after = parse_retry_after(headers)
    return failure


def build_body_error(error: Any, secret: str) -> ProviderError:
    """Build the error for the value of `error` in a body that a server sent with status 200."""
    return _build_error(_guess_status(error), error, "", secret)


def build_still_too_long_error(error: ProviderError) -> ProviderError:
    """Build the error for a conversation that is still too long after older results were
    shortened."""
    advice = "It is still too long after older results were shortened. Ask for less, or use a model with more context."
    return ProviderError(error.code, f"{error.message}. {advice}", transient=False)


def _build_error(status: int | None, body: Any, shown: str, secret: str) -> ModelServerError:
    words = _collect_words(body)
    kind = find_kind(status, words)
    if kind is not None:
        code = kind.code
    elif status is None:
        code = "bad_answer"
    elif status in _STATUS_CODES:
        code = _STATUS_CODES[status]
    else:
        code = "server_error" if status >= 500 else "refused"
    advice = f". {kind.advice}" if kind and kind.advice else ""
    error = ModelServerError(
        _CODES_BY_KIND.get(code, code),
        f"{_MEANINGS[code]}{shown}: {quote(_find_message(body), secret)}{advice}",
        transient=code in _TRANSIENT or (kind is None and status is None),
    )
    error.status, error.body = status, body
    return _describe_kind(error, kind, words)


def _describe_kind(error: ModelServerError, kind: ErrorKind | None, words: str) -> ModelServerError:
    """Add facts about its kind to the error: the context limit that the server named, or the
    maximum number of attempts."""
    if error.code == CONTEXT_TOO_LONG:
        error.window = find_window(_unwrap_error(error.body), words)
    elif kind is not None and kind.code == BROKEN_CALL:
        error.transient, error.most_tries = True, MAX_TRIES_IF_BROKEN
    return error


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until the server allows a retry, from retry-after-ms or Retry-After
    (seconds or a date); None if neither header has a valid value."""
    milliseconds = _parse_number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return min(milliseconds / 1000, MAX_RETRY_AFTER_S)
    value = headers.get("retry-after")
    seconds = _parse_number(value)
    if seconds is None and value:
        try:
            seconds = max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
        except (ValueError, OverflowError):
            return None
    return None if seconds is None else min(seconds, MAX_RETRY_AFTER_S)


def _parse_number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _unwrap_error(body: Any) -> Any:
    """Return the error inside the body, or the body itself if it contains no error. Gemini sends a
    list with one error."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    return body["error"] if isinstance(body, dict) and body.get("error") else body


def _find_message(body: Any) -> str:
    inner = _unwrap_error(body)
    if isinstance(inner, dict):
        message = inner.get("message") or inner.get("detail")
        return message if isinstance(message, str) else str(inner)
    return str(inner)


def _collect_words(body: Any) -> str:
    return str(_unwrap_error(body))[:2000].lower()


def _guess_status(error: Any) -> int | None:
    if isinstance(error, dict):
        for key in ("code", "status", "status_code"):
            number = _parse_number(str(error.get(key)))
            if number is not None and 400 <= number < 600:
                return int(number)
    words = _collect_words(error)
    return next(
        (
            status
            for phrases, status in _STATUS_BY_WORDS
            if any(phrase in words for phrase in phrases)
        ),
        None,
    )
