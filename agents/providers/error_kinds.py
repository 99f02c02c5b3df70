"""Recognize those kinds of server errors that the HTTP status alone does not distinguish."""

import re
from dataclasses import dataclass
from typing import Any

from agents.providers.base import ContextWindow

BROKEN_CALL = "broken_call"
"""The kind of error if the server cannot read a call that the model wrote. It is reported as
`answer_cut`."""
CONTEXT_TOO_LONG = "context_too_long"
TOO_MUCH_AT_ONCE = "too_much_at_once"
"""The kind of error if a request is larger than the account may send in a minute. It is reported as
`context_too_long`."""
_SMALLEST_WINDOW = 256


@dataclass(frozen=True)
class ErrorKind:
    """A kind of error that model servers send.

    Attributes:
        code: the kind's code; the ProviderError has the same code, except for BROKEN_CALL and
            TOO_MUCH_AT_ONCE.
        advice: the next step, as a sentence without a period.
        statuses: the HTTP statuses with which servers send the error; empty for all statuses that
            refuse a request.
    """

    code: str
    pattern: re.Pattern[str]
    advice: str = ""
    statuses: frozenset[int] = frozenset()


def _kind(code: str, *patterns: str, advice: str = "", statuses: tuple[int, ...] = ()) -> ErrorKind:
    return ErrorKind(code, re.compile("|".join(patterns), re.I | re.S), advice, frozenset(statuses))


_REFUSING = frozenset({400, 403, 404, 413, 415, 422, 429, 500, 501})
_KINDS = (
    _kind(
        "answer_filtered",
        r"content_filter",
        r"content_policy_violation",
        r"responsibleaipolicyviolation",
        r"content management polic",
        r"content filtering polic",
        r"our safety system",
        r"data_inspection_failed",
    ),
    _kind(
        BROKEN_CALL,
        r"tool_use_failed",
        r"failed to parse tool call",
        r"error parsing tool call",
        r"invalid tool call arguments generated",
        statuses=(400, 422, 500),
    ),
    _kind(
        "quota_exhausted",
        r"insufficient_quota",
        r"exceeded your current quota",
        r"credit balance is too low",
    ),
    _kind(
        "refused",
        r"only (?:supported|available) in v1/responses",
        r"not a chat model",
        advice="Choose a model that supports Chat Completions",
    ),
    _kind(
        "refused",
        r"no endpoints found that support tool use",
        r"does not support (?:tools|tool use|tool calling|function)",
        r"model_no_support_for_function",
        r"unsupported param: tools",
        advice="Choose a model that supports tools",
    ),
    _kind(
        "refused",
        r"enable-auto-tool-choice",
        r"tool-call-parser",
        advice="Start vLLM with --enable-auto-tool-choice and --tool-call-parser",
    ),
    _kind("refused", r"requires --jinja", advice="Start llama.cpp's server with --jinja"),
    _kind(
        CONTEXT_TOO_LONG,
        r"exceed_context_size",
        r"context_length",
        r"context (?:length|size|limit|window)",
        r"maximum context",
        r"(?:prompt|input|request)(?: is|:)? too long",
        r"too many (?:input )?tokens",
        r"prompt_too_large",
        r"maximum number of tokens allowed",
        r"maximum (?:prompt|input) length",
        r"input tokens exceed",
        r"(?:longer|larger) than the (?:model|maximum)",
        r"`inputs` tokens",
        r"range of input length",
        r"reduce the length of the messages",
        r"request_too_large",
        r"too large to process",
        r"current length is .{1,40} while limit is",
        statuses=(400, 413, 422, 500),
    ),
)
_PER_MINUTE = re.compile(r"limit:? (\d+),? (?:used:? \d+,? )?requested:? (\d+)", re.I)
_LIMITS = (
    r"context size \((\d+)",
    r"context (?:length|window) (?:is|of)(?: only)? (\d+)",
    r"context length \((\d+)",
    r"(\d+) maximum",
    r"allowed \((\d+)",
    r"maximum (?:prompt|input) length (?:is|of) (\d+)",
    r"limit (?:is|of) (\d+)",
    r"\[1, (\d+)\]",
    r"<= ?(\d+)",
    r"> ?(\d+)",
)
_REQUESTS = (
    r"request \((\d+)",
    r"requested (?:about )?(\d+)",
    r"(?:token count|input|prompt) \((?:length )?(\d+)",
    r"too long: (\d+)",
    r"contains (\d+)",
    r"resulted in (\d+)",
    r"first (\d+) tokens",
    r"current length is (\d+)",
)


def find_kind(status: int | None, words: str) -> ErrorKind | None:
    """Return the kind of an error with these words; None if it is not recognized. `status` is None
    if the error came with status 200."""
    if status is not None and status not in _REFUSING:
        return None
    if (found := _PER_MINUTE.search(_join_digits(words))) and int(found[2]) > int(found[1]):
        return _TOO_MUCH_AT_ONCE
    return next(
        (kind for kind in _KINDS if _has_status(kind, status) and kind.pattern.search(words)), None
    )


_TOO_MUCH_AT_ONCE = _kind(
    TOO_MUCH_AT_ONCE, "", advice="Ask for less, or raise the account's limit per minute"
)


def _has_status(kind: ErrorKind, status: int | None) -> bool:
    return status is None or not kind.statuses or status in kind.statuses


def find_window(error: Any, words: str) -> ContextWindow:
    """Return the model's limit and the request's size, in tokens, that an error about the length
    names; 0 for an unknown number."""
    text = _join_digits(words)
    fields = error if isinstance(error, dict) else {}
    minute = _PER_MINUTE.search(text)
    limit = _to_number(fields.get("n_ctx")) or (
        int(minute[1]) if minute else _find_number(_LIMITS, text)
    )
    requested = _to_number(fields.get("n_prompt_tokens")) or (
        int(minute[2]) if minute else _find_number(_REQUESTS, text)
    )
    if limit < _SMALLEST_WINDOW:
        return ContextWindow()
    return ContextWindow(limit, requested if requested > limit else 0)


def _join_digits(words: str) -> str:
    return re.sub(r"(?<=\d),(?=\d{3}\b)", "", words)


def _to_number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _find_number(patterns: tuple[str, ...], text: str) -> int:
    found = next((found for pattern in patterns if (found := re.search(pattern, text, re.I))), None)
    return int(found[1][:12]) if found else 0
