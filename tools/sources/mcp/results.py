"""Conversion of a server's answer into a tool result; links in it are never opened."""

import json
from collections.abc import Mapping
from typing import Any

import mcp_types

from tools.contract import ErrorCode, ToolError, ToolResult, canonical_json
from tools.sources.json_schema import UncheckableError, build_validator, find_faults
from tools.sources.mcp.definitions import MAX_TITLE_LENGTH, Definition
from tools.sources.mcp.display_text import clean_line

MAX_ERROR_LENGTH = 1_000
MAX_SUMMARY_LENGTH = 200
MAX_ADDRESS_LENGTH = 300
MAX_STEPS = 500_000
"""The most keywords applied to structured content, which may have very many entries."""


def build_result(answer: mcp_types.CallToolResult, definition: Definition, title: str) -> ToolResult:
    """Build a tool result: structured content becomes the data, and any other text reaches the model too.

    Args:
        title: the tool's name in messages.

    Raises:
        ToolError: OPERATION_FAILED, the server reports a failure; TOOL_EXECUTION_FAILED, the answer violates the output
            schema.
    """
    parts = [_render_part(part) for part in answer.content]
    text = "\n\n".join(part for part in parts if part)
    if answer.is_error:
        reason = clean_line(text, MAX_ERROR_LENGTH) or "the server gave no reason"
        raise ToolError(ErrorCode.OPERATION_FAILED, f"{title} failed: {reason}")
    data = answer.structured_content
    if definition.output_schema is not None:
        _check_data(data, definition.output_schema, title)
    summary = clean_line(text.partition("\n")[0], MAX_SUMMARY_LENGTH) if data is None else ""
    kinds = sorted({part.type for part in answer.content})
    return ToolResult.ok(data, summary, _render_markdown(data, text), content_type=kinds)


def _render_markdown(data: Any, text: str) -> str:
    """Return the text for the model, without the copy of the structured content that servers add for older clients."""
    if data is None:
        return text
    if not text.strip() or _repeats_data(data, text):
        return ""
    return f"{text}\n\n```json\n{canonical_json(data)}\n```"


def _repeats_data(data: Any, text: str) -> bool:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return data in (parsed, {"result": parsed})


def _render_part(part: mcp_types.ContentBlock) -> str:
    if isinstance(part, mcp_types.TextContent):
        return part.text
    if isinstance(part, mcp_types.ImageContent | mcp_types.AudioContent):
        return f"[{part.type}: {clean_line(part.mime_type, 100)}, {len(part.data) * 3 // 4:,} bytes, not shown]"
    if isinstance(part, mcp_types.ResourceLink):
        size = "" if part.size is None else f", {part.size:,} bytes"
        name = clean_line(part.title or part.name, MAX_TITLE_LENGTH)
        return f"[link: {name}, {_clean_uri(part.uri)}{_describe_type(part.mime_type)}{size}, not opened]"
    resource = part.resource
    head = f"[resource: {_clean_uri(resource.uri)}{_describe_type(resource.mime_type)}"
    if isinstance(resource, mcp_types.TextResourceContents):
        return f"{head}, {len(resource.text):,} characters]\n{resource.text}"
    return f"{head}, {len(resource.blob) * 3 // 4:,} bytes, not shown]"


def _clean_uri(uri: object) -> str:
    return clean_line(str(uri), MAX_ADDRESS_LENGTH)


def _describe_type(mime_type: str | None) -> str:
    return f", {clean_line(mime_type, 100)}" if mime_type else ""


def _check_data(data: Any, schema: Mapping[str, Any], title: str) -> None:
    try:
        faults = find_faults(build_validator(schema), data, most=1, steps=MAX_STEPS)
    except UncheckableError as error:
        raise _build_invalid_result_error(title, f"its result cannot be checked: {error}") from None
    for fault in faults:
        place = ".".join(["data", *(str(part) for part in fault.absolute_path)])
        raise _build_invalid_result_error(
            title, f"its result violates the output schema at {place:.200}: {fault.message:.300}"
        )


def _build_invalid_result_error(title: str, fault: str) -> ToolError:
    return ToolError(ErrorCode.TOOL_EXECUTION_FAILED, f"{title} sent an invalid answer: {fault}.")
