"""Normalization of a tool's return value into a result that can be stored and shown."""

import json
from typing import Any

from pydantic import BaseModel, ValidationError

from tools.contract import (
    INDEFINITE_CODES,
    ErrorCode,
    Level,
    ResultError,
    Tool,
    ToolError,
    ToolResult,
    find_unstorable,
    make_storable,
)

ERROR_PREFIX = "TOOL ERROR:"
LARGEST_PART = 8_000_000
"""The limit in characters for each of a result's data, metadata and Markdown."""
LONGEST_SUMMARY = 4_000


def normalize_result(tool: Tool, returned: object, duration_ms: int, level: Level | None = None) -> ToolResult:
    """Turn the returned value into a result of plain JSON, detached from the tool's own objects.

    A text becomes a result with its first line as the summary and the text as Markdown; a text that starts with
    `TOOL ERROR:` is a failure. NUL characters and lone surrogates, which no database stores, become U+FFFD.

    Args:
        level: the call's level if an admin raised it; None means the tool's own.

    Raises:
        ToolError: LIMIT_EXCEEDED if the result is too large, or OUTCOME_UNKNOWN after a write.
            TOOL_EXECUTION_FAILED for a value that is not JSON or breaks the tool's `Output`, naming its place. It is
            not definite, because the tool has already done its work.
    """
    result = _parse_text(returned) if isinstance(returned, str) else returned
    if not isinstance(result, ToolResult):
        raise _build_broken_promise_error(tool, f"it is {type(result).__name__}, not a ToolResult")
    if result.success is (result.error is not None):
        raise _build_broken_promise_error(tool, "success and error contradict each other")
    if not isinstance(result.summary, str) or not isinstance(result.markdown, str):
        raise _build_broken_promise_error(tool, "summary and markdown must be text")
    level = level or tool.level
    _refuse_oversized(tool, result.markdown, "markdown", level)
    data = _make_plain(tool, result.data, "data", level)
    if result.success and tool.Output is not None:
        _check_output(tool, tool.Output, data)
    metadata = {**_make_plain(tool, result.metadata, "metadata", level), "duration_ms": duration_ms}
    summary = make_storable(" ".join(result.summary[:LONGEST_SUMMARY].split()))
    return ToolResult(result.success, data, summary, make_storable(result.markdown), result.error, metadata)


def _parse_text(text: str) -> ToolResult:
    first, _, rest = text.strip().partition("\n")
    if not first.startswith(ERROR_PREFIX):
        return ToolResult.ok(summary=first.strip(), markdown=text)
    name = first.removeprefix(ERROR_PREFIX).strip()
    known = name in ErrorCode.__members__
    code = ErrorCode(name) if known else ErrorCode.OPERATION_FAILED
    message = (rest.partition("\n")[0].strip() if known else name) or "The tool reported a failure."
    error = ResultError(code, message, text.strip(), is_definite=code not in INDEFINITE_CODES)
    return ToolResult(success=False, summary=message, error=error)


def _make_plain(tool: Tool, value: Any, place: str, level: Level) -> Any:
    if value is None or value == {}:
        return value
    try:
        text = _ENCODER.encode(value)
        _refuse_oversized(tool, text, place, level)
        plain = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise _build_broken_promise_error(
            tool, _find_fault(value, place, 0) or f"{place} cannot be written as JSON"
        ) from None
    return make_storable(plain) if find_unstorable(text) else plain


def _refuse_oversized(tool: Tool, text: str, place: str, level: Level) -> None:
    """Refuse a part too large for a row, a page or a request. After a write, the outcome is then unknown."""
    if len(text) <= LARGEST_PART:
        return
    raise ToolError(
        ErrorCode.OUTCOME_UNKNOWN if level.has_side_effects else ErrorCode.LIMIT_EXCEEDED,
        f"{tool.title} returned {len(text):,} characters of {place}; the limit is {LARGEST_PART:,}.",
        recovery_hint="Request less at once.",
    )


def _dump_model(value: object) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} is not JSON")


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_dump_model)


def _find_fault(value: Any, place: str, depth: int) -> str:
    """Describe the first value that JSON cannot represent, with its place; return an empty string if there is none."""
    if depth > 100:
        return f"{place} is nested too deeply, or contains itself"
    if isinstance(value, dict):
        faults = (_find_fault(child, f"{place}.{key}", depth + 1) for key, child in value.items())
        return next(filter(None, faults), "")
    if isinstance(value, list | tuple):
        faults = (_find_fault(child, f"{place}.{index}", depth + 1) for index, child in enumerate(value))
        return next(filter(None, faults), "")
    try:
        _ENCODER.encode(value)
    except ValueError:
        return f"{place} is a number that JSON does not support"
    except TypeError:
        return f"{place} is {type(value).__name__}, which is not JSON"
    return ""


def _check_output(tool: Tool, output: type[BaseModel], data: Any) -> None:
    try:
        output.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(["data", *(str(part) for part in first["loc"])])
        raise _build_broken_promise_error(tool, f"{place}: {first['msg']}") from None


def _build_broken_promise_error(tool: Tool, fault: str) -> ToolError:
    return ToolError(
        ErrorCode.TOOL_EXECUTION_FAILED,
        f"{tool.title} returned a result that does not match its declaration: {fault}.",
    )
