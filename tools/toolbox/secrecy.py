"""Takes credentials out of what a tool says, so that they reach no model, no event, no row and no page."""

import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tools.contract import Preview, ToolError, ToolResult

HIDDEN = "[hidden]"


def without_secrets(result: ToolResult, secrets: frozenset[str]) -> ToolResult:
    """The same result with every secret in its texts replaced, keys of its data included.

    Args:
        result: with plain JSON in it.
    """
    if not secrets or not any(secret in text for text in _texts_of(result) for secret in secrets):
        return result
    hidden = _pattern(secrets)
    error = result.error
    if error is not None:
        error = replace(error, message=hidden.sub(HIDDEN, error.message), text=hidden.sub(HIDDEN, error.text))
    return replace(
        result,
        data=_cleaned(result.data, hidden),
        summary=hidden.sub(HIDDEN, result.summary),
        markdown=hidden.sub(HIDDEN, result.markdown),
        error=error,
        metadata=_cleaned(result.metadata, hidden),
    )


def preview_without_secrets(preview: Preview, secrets: frozenset[str]) -> Preview:
    """The same effect, with every secret in it replaced; it is sealed as it is shown."""
    told = preview.as_json()
    if not secrets or not any(secret in text for text in _texts_in(told) for secret in secrets):
        return preview
    return Preview.from_json(_cleaned(told, _pattern(secrets)))


def error_without_secrets(error: ToolError, secrets: frozenset[str]) -> ToolError:
    """The same failure, with every secret in its lines and its notes replaced."""
    if not secrets:
        return error
    hidden = _pattern(secrets)
    cleaned = ToolError(
        error.code,
        hidden.sub(HIDDEN, error.message),
        parameter=hidden.sub(HIDDEN, error.parameter),
        expected=hidden.sub(HIDDEN, error.expected),
        example=hidden.sub(HIDDEN, error.example),
        recovery_hint=hidden.sub(HIDDEN, error.recovery_hint),
        attempted=error.attempted,
    )
    for note in getattr(error, "__notes__", ()):
        cleaned.add_note(hidden.sub(HIDDEN, note))
    return cleaned


def json_without_secrets(value: Any, secrets: frozenset[str]) -> Any:
    """Plain JSON with every secret in its texts replaced, keys included."""
    return _cleaned(value, _pattern(secrets)) if secrets else value


def _texts_of(result: ToolResult) -> list[str]:
    """Everything that the result says; JSON writes some characters differently, so texts are looked at one by one."""
    texts = [result.summary, result.markdown, *_texts_in(result.data), *_texts_in(result.metadata)]
    return [*texts, result.error.message, result.error.text] if result.error else texts


def _texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [*value, *(text for child in value.values() for text in _texts_in(child))]
    return [text for child in value for text in _texts_in(child)] if isinstance(value, list) else []


def _cleaned(value: Any, hidden: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return hidden.sub(HIDDEN, value)
    if isinstance(value, dict):
        return {hidden.sub(HIDDEN, key): _cleaned(child, hidden) for key, child in value.items()}
    return [_cleaned(child, hidden) for child in value] if isinstance(value, list) else value


@lru_cache(maxsize=64)
def _pattern(secrets: frozenset[str]) -> re.Pattern[str]:
    """The longest first, because one may be part of another."""
    return re.compile("|".join(map(re.escape, sorted(secrets, key=len, reverse=True))))
