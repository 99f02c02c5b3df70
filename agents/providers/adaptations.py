"""Adapt requests to model servers that refuse certain fields or forms, for each address and model.

An adaptation is learned only from an error that names a field of the request and says that it is
not supported; if only a value is out of range, the admin has to change it. The run's page shows
each adaptation.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

Body = dict[str, Any]

LONGEST_WORDS = 10_000
"""The maximum number of characters of an error that are searched."""
MOST_AT_ONCE = 4
"""The maximum number of adaptations that may be learned from one request."""
_STATUSES = frozenset({400, 404, 405, 415, 422, 500, 501})
_NEEDED = frozenset({"model", "messages", "tools", "tool_choice"})
_PLAIN_WORDS = frozenset({"temperature", "stream"})
"""The fields without an underscore that an error may name without quotes."""
_ECHOED = frozenset({"input", "ctx", "url", "failed_generation", "param", "loc"})
"""The fields of an error that repeat the request, or that contain only the name of a field."""
_UNSUPPORTED = re.compile(
    r"unsupported|n.t support|not? (?:\w+ )?support|not (?:permitted|allowed|available)|unrecogni[sz]ed|unknown"
    r"|unexpected|forbidden|deprecated|only the default|must be verified|extra (?:inputs|fields)|set \w+ ?(?:=|to)"
    r"|only \w+ and \w+ roles|roles must alternate|n.t (?:\w+ )*enabled|not enabled"
    r"|cannot (?:both )?be (?:used|specified|set)|use '?max_completion_tokens",
    re.IGNORECASE,
)
_NEEDS_NO_REASONING = re.compile(r"reasoning_effort.*\bto ['\"`]none['\"`]", re.DOTALL)
_ROLE = re.compile(
    r"\brole\b|\broles\b|system (?:message|prompt|instruction)|developer instruction", re.I
)


@dataclass(frozen=True)
class Adaptation:
    """A change that is made to every later request to one model.

    Attributes:
        field: the field that was refused.
        words: the change in words, such as `without temperature`.
    """

    field: str
    words: str
    apply: Callable[[Body], Body]


def find_adaptation(status: int | None, error: Any, sent: Body) -> Adaptation | None:
    """Return the adaptation that avoids this error for the body that was sent; None if there is no
    such adaptation."""
    words = " ".join(islice(_list_words(error), LONGEST_WORDS))[:LONGEST_WORDS]
    if status not in _STATUSES or not _UNSUPPORTED.search(words):
        return None
    named = set(_list_named(error, words, sent))
    roles = {message.get("role") for message in sent["messages"]} & {"system", "developer"}
    if roles and _ROLE.search(words) and re.search(r"system|developer|user", words, re.I):
        return _adapt_role(roles, _names_role_of_message(error))
    if (
        _NEEDS_NO_REASONING.search(words)
        and sent.get("tools")
        and sent.get("reasoning_effort") != "none"
    ):
        return Adaptation("reasoning_effort", "with reasoning_effort none", _switch_reasoning_off)
    if "max_tokens" in named:
        return Adaptation(
            "max_tokens", "with max_completion_tokens in place of max_tokens", _rename_limit
        )
    for field in sorted(named, key=lambda name: (name == "stream", name == "temperature", name)):
        return Adaptation(
            field, "without streaming" if field == "stream" else f"without {field}", _drop(field)
        )
    return None


def _list_words(error: Any) -> Iterator[str]:
    """Yield the texts of an error, except those that repeat the request."""
    if isinstance(error, str):
        yield error[:2000]
    elif isinstance(error, dict):
        for name, value in error.items():
            if name not in _ECHOED:
                yield from _list_words(value)
    elif isinstance(error, list):
        for each in error[:20]:
            yield from _list_words(each)


def _list_named(error: Any, words: str, sent: Body) -> Iterator[str]:
    """Yield the fields of the request that the error names."""
    exact = set(_list_exact_names(error))
    for field in sent.keys() - _NEEDED:
        is_plain = "_" in field or field in _PLAIN_WORDS
        pattern = (
            rf"(?<![\w]){re.escape(field)}(?![\w])"
            if is_plain
            else rf"['\"`]{re.escape(field)}['\"`]"
        )
        if field in exact or (not exact & sent.keys() - _NEEDED and re.search(pattern, words)):
            yield field


def _list_exact_names(error: Any) -> Iterator[str]:
    """Yield the names in `param` of OpenAI's errors and in `loc` of FastAPI's errors."""
    if isinstance(error, dict):
        for name, value in error.items():
            if name == "param" and isinstance(value, str):
                yield value
            elif name == "loc" and isinstance(value, list):
                yield from (part for part in value[:3] if isinstance(part, str))
            else:
                yield from _list_exact_names(value)
    elif isinstance(error, list):
        for each in error[:20]:
            yield from _list_exact_names(each)


def _names_role_of_message(error: Any) -> bool:
    return any(re.fullmatch(r"messages\[\d+\]\.role", name) for name in _list_exact_names(error))


def _adapt_role(roles: set[Any], is_exact: bool) -> Adaptation:
    if "system" in roles and is_exact:
        return Adaptation(
            "system", "with the role developer in place of system", _use_developer_role
        )
    return Adaptation(
        "developer", "with the instructions in the first message", _merge_instructions
    )


def _drop(field: str) -> Callable[[Body], Body]:
    dropped = {field, "stream_options"} if field == "stream" else {field}
    return lambda body: {name: value for name, value in body.items() if name not in dropped}


def _rename_limit(body: Body) -> Body:
    return {
        "max_completion_tokens" if name == "max_tokens" else name: value
        for name, value in body.items()
    }


def _switch_reasoning_off(body: Body) -> Body:
    return {**body, "reasoning_effort": "none"} if body.get("tools") else body


def _use_developer_role(body: Body) -> Body:
    messages = [
        {**each, "role": "developer"} if each["role"] == "system" else each
        for each in body["messages"]
    ]
    return {**body, "messages": messages}


def _merge_instructions(body: Body) -> Body:
    """Put the instructions before the text of the first message if a person wrote that message;
    otherwise, send the instructions as a message of their own."""
    is_instruction = [each["role"] in ("system", "developer") for each in body["messages"]]
    parts = [
        each["content"]
        for each, found in zip(body["messages"], is_instruction, strict=True)
        if found
    ]
    others = [
        each for each, found in zip(body["messages"], is_instruction, strict=True) if not found
    ]
    if others and others[0]["role"] == "user" and isinstance(others[0]["content"], str):
        parts, others = [*parts, others[0]["content"]], others[1:]
    return {**body, "messages": [{"role": "user", "content": "\n\n".join(parts)}, *others]}
