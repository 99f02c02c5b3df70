"""Makes a result that can be stored and shown out of whatever a tool returned."""

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
    made_storable,
    unstorable_in,
)

ERROR_PREFIX = "TOOL ERROR:"
LARGEST_PART = 8_000_000
"""Characters of a result's data as JSON, of its metadata, and of its markdown."""
LONGEST_SUMMARY = 4_000


def checked_result(tool: Tool, returned: object, duration_ms: int, level: Level | None = None) -> ToolResult:
    """The tool's result with plain JSON in it, detached from the tool's own objects.

    A text becomes a result: its first line is the summary, the text the markdown; one that starts with `TOOL ERROR:`
    is a failure. NUL characters and lone surrogates, which no database keeps, become U+FFFD.

    Args:
        level: of the call, as far as an admin raised it; None: the tool's own.

    Raises:
        ToolError: LIMIT_EXCEEDED, or OUTCOME_UNKNOWN after a write: it is larger than can be kept.
            TOOL_EXECUTION_FAILED, naming the place that is not JSON or that breaks the tool's `Output`: not definite,
            because the work itself was done.
    """
    result = _from_text(returned) if isinstance(returned, str) else returned
    if not isinstance(result, ToolResult):
        raise _broken(tool, f"it is {type(result).__name__}, not a ToolResult")
    if result.success is (result.error is not None):
        raise _broken(tool, "success and error contradict each other")
    if not isinstance(result.summary, str) or not isinstance(result.markdown, str):
        raise _broken(tool, "summary and markdown have to be text")
    level = level or tool.level
    _refuse_huge(tool, result.markdown, "markdown", level)
    data = _plain(tool, result.data, "data", level)
    if result.success and tool.Output is not None:
        _check_output(tool, tool.Output, data)
    metadata = {**_plain(tool, result.metadata, "metadata", level), "duration_ms": duration_ms}
    summary = made_storable(" ".join(result.summary[:LONGEST_SUMMARY].split()))
    return ToolResult(result.success, data, summary, made_storable(result.markdown), result.error, metadata)


def _from_text(text: str) -> ToolResult:
    first, _, rest = text.strip().partition("\n")
    if not first.startswith(ERROR_PREFIX):
        return ToolResult.ok(summary=first.strip(), markdown=text)
    named = first.removeprefix(ERROR_PREFIX).strip()
    known = named in ErrorCode.__members__
    code = ErrorCode(named) if known else ErrorCode.OPERATION_FAILED
    message = (rest.partition("\n")[0].strip() if known else named) or "The tool reported a failure."
    error = ResultError(code, message, text.strip(), is_definite=code not in INDEFINITE_CODES)
    return ToolResult(success=False, summary=message, error=error)


def _plain(tool: Tool, value: Any, place: str, level: Level) -> Any:
    if value is None or value == {}:
        return value
    try:
        text = _ENCODER.encode(value)
        _refuse_huge(tool, text, place, level)
        plain = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise _broken(tool, _fault_in(value, place, 0) or f"{place} cannot be written as JSON") from None
    return made_storable(plain) if unstorable_in(text) else plain


def _refuse_huge(tool: Tool, text: str, place: str, level: Level) -> None:
    """What no row, page or request has room for is refused. A write has happened all the same: nobody knows how."""
    if len(text) <= LARGEST_PART:
        return
    raise ToolError(
        ErrorCode.OUTCOME_UNKNOWN if level.has_side_effects else ErrorCode.LIMIT_EXCEEDED,
        f"{tool.title} answered with {len(text):,} characters of {place}; at most {LARGEST_PART:,} can be kept.",
        recovery_hint="Ask for less at once.",
    )


def _dumped_model(value: object) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} is not JSON")


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_dumped_model)


def _fault_in(value: Any, place: str, depth: int) -> str:
    """Where the first thing stands that JSON cannot hold; empty if none is found."""
    if depth > 100:
        return f"{place} is nested too deeply, or holds itself"
    if isinstance(value, dict):
        faults = (_fault_in(child, f"{place}.{key}", depth + 1) for key, child in value.items())
        return next(filter(None, faults), "")
    if isinstance(value, list | tuple):
        faults = (_fault_in(child, f"{place}.{index}", depth + 1) for index, child in enumerate(value))
        return next(filter(None, faults), "")
    try:
        _ENCODER.encode(value)
    except ValueError:
        return f"{place} is a number that JSON does not know"
    except TypeError:
        return f"{place} is {type(value).__name__}, which is not JSON"
    return ""


def _check_output(tool: Tool, output: type[BaseModel], data: Any) -> None:
    try:
        output.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(["data", *(str(part) for part in first["loc"])])
        raise _broken(tool, f"{place}: {first['msg']}") from None


def _broken(tool: Tool, fault: str) -> ToolError:
    return ToolError(
        ErrorCode.TOOL_EXECUTION_FAILED,
        f"{tool.title} answered, but its result is not as it promised: {fault}.",
    )
