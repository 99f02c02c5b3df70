"""Removal of credentials from tool output, so that no model, event, row or page contains them."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tools.contract import NothingToDo, Preview, ResultFile, ToolError, ToolResult

HIDDEN = "[hidden]"


def hide_secrets(result: ToolResult, secrets: frozenset[str]) -> ToolResult:
    """Replace every secret in the result's texts, including keys of its data, and in its files.

    Args:
        result: a result that holds plain JSON.
    """
    if secrets and result.files:
        result = replace(result, files=tuple(hide_secrets_in_files(result.files, secrets)))
    if not secrets or not any(secret in text for text in _list_texts(result) for secret in secrets):
        return result
    hidden = _compile_pattern(secrets)
    error = result.error
    if error is not None:
        error = replace(
            error,
            message=hidden.sub(HIDDEN, error.message),
            text=hidden.sub(HIDDEN, error.text),
            fact=hidden.sub(HIDDEN, error.fact),
            words=hidden.sub(HIDDEN, error.words),
        )
    return replace(
        result,
        data=_clean(result.data, hidden),
        summary=hidden.sub(HIDDEN, result.summary),
        markdown=hidden.sub(HIDDEN, result.markdown),
        error=error,
        metadata=_clean(result.metadata, hidden),
        content_type=hidden.sub(HIDDEN, result.content_type),
        details=_clean(result.details, hidden),
    )


def hide_secrets_in_files(files: Sequence[ResultFile], secrets: frozenset[str]) -> list[ResultFile]:
    """Replace every secret in the names, types and contents of the files."""
    cleaned = []
    for file in files:
        name, kind, content = file.name, file.content_type, file.content
        for secret in sorted(secrets, key=len, reverse=True):
            name, kind = name.replace(secret, HIDDEN), kind.replace(secret, HIDDEN)
            content = content.replace(secret.encode(), HIDDEN.encode())
        cleaned.append(replace(file, name=name, content=content, content_type=kind))
    return cleaned


def hide_secrets_in_preview(preview: Preview, secrets: frozenset[str]) -> Preview:
    """Replace every secret in the preview. This is done before the preview is sealed, because the
    seal covers the shown text."""
    written = preview.as_json()
    if not secrets or not any(
        secret in text for text in _list_texts_in_json(written) for secret in secrets
    ):
        return preview
    return Preview.from_json(_clean(written, _compile_pattern(secrets)))


def hide_secrets_in_error(error: ToolError, secrets: frozenset[str]) -> ToolError:
    """Replace every secret in the error's lines and notes."""
    if not secrets:
        return error
    hidden = _compile_pattern(secrets)
    if isinstance(error, NothingToDo):
        return NothingToDo(
            hidden.sub(HIDDEN, error.message), hide_secrets_in_preview(error.preview, secrets)
        )
    cleaned = ToolError(
        error.code,
        hidden.sub(HIDDEN, error.fact),
        parameter=hidden.sub(HIDDEN, error.parameter),
        expected=hidden.sub(HIDDEN, error.expected),
        example=hidden.sub(HIDDEN, error.example),
        recovery_hint=hidden.sub(HIDDEN, error.recovery_hint),
        attempted=error.attempted,
        words=hidden.sub(HIDDEN, error.words),
    )
    for note in getattr(error, "__notes__", ()):
        cleaned.add_note(hidden.sub(HIDDEN, note))
    return cleaned


def hide_secrets_in_json(value: Any, secrets: frozenset[str]) -> Any:
    """Replace every secret in the texts of plain JSON, including keys."""
    return _clean(value, _compile_pattern(secrets)) if secrets else value


def _list_texts(result: ToolResult) -> list[str]:
    """List all texts of the result, to be searched one by one, because JSON escapes characters."""
    parts = (result.data, result.metadata, result.details)
    texts = [result.summary, result.markdown, result.content_type]
    texts += [text for part in parts for text in _list_texts_in_json(part)]
    return [*texts, result.error.message, result.error.text] if result.error else texts


def _list_texts_in_json(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [*value, *(text for child in value.values() for text in _list_texts_in_json(child))]
    return (
        [text for child in value for text in _list_texts_in_json(child)]
        if isinstance(value, list)
        else []
    )


def _clean(value: Any, hidden: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return hidden.sub(HIDDEN, value)
    if isinstance(value, dict):
        return {hidden.sub(HIDDEN, key): _clean(child, hidden) for key, child in value.items()}
    return [_clean(child, hidden) for child in value] if isinstance(value, list) else value


@lru_cache(maxsize=64)
def _compile_pattern(secrets: frozenset[str]) -> re.Pattern[str]:
    """Compile a pattern for all secrets, the longest first, because one may be part of another."""
    return re.compile("|".join(map(re.escape, sorted(secrets, key=len, reverse=True))))
