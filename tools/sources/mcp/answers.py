"""What a server answered, as a result for the model and for people; nothing that it links to is ever loaded."""

import json
from collections.abc import Mapping
from typing import Any

import mcp_types

from tools.contract import ErrorCode, ToolError, ToolResult, canonical_json
from tools.sources.given_schema import UncheckableError, faults_of, validator_of

from .definitions import LONGEST_TITLE, Definition
from .words import one_line

LONGEST_ERROR = 1_000
LONGEST_SUMMARY = 200
LONGEST_ADDRESS = 300
MOST_STEPS = 500_000
"""Keywords that are applied to structured content, which may have very many entries."""


def result_of(answer: mcp_types.CallToolResult, definition: Definition, title: str) -> ToolResult:
    """Structured content is the data; what is said in other words is told to the model as well.

    Args:
        title: what messages call the tool.

    Raises:
        ToolError: OPERATION_FAILED, the server says that it failed; TOOL_EXECUTION_FAILED, the answer is not what the
            output schema promises.
    """
    parts = [_told(part) for part in answer.content]
    text = "\n\n".join(part for part in parts if part)
    if answer.is_error:
        reason = one_line(text, LONGEST_ERROR) or "it does not say why"
        raise ToolError(ErrorCode.OPERATION_FAILED, f"{title} failed: {reason}")
    data = answer.structured_content
    if definition.output_schema is not None:
        _refuse_broken(data, definition.output_schema, title)
    summary = one_line(text.partition("\n")[0], LONGEST_SUMMARY) if data is None else ""
    kinds = sorted({part.type for part in answer.content})
    return ToolResult.ok(data, summary, _markdown(data, text), content_type=kinds)


def _markdown(data: Any, text: str) -> str:
    """Servers say structured content once more as text, for older clients; that is not told twice."""
    if data is None:
        return text
    if not text.strip() or _is_said_twice(data, text):
        return ""
    return f"{text}\n\n```json\n{canonical_json(data)}\n```"


def _is_said_twice(data: Any, text: str) -> bool:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return data in (said, {"result": said})


def _told(part: mcp_types.ContentBlock) -> str:
    if isinstance(part, mcp_types.TextContent):
        return part.text
    if isinstance(part, mcp_types.ImageContent | mcp_types.AudioContent):
        return f"[{part.type}: {one_line(part.mime_type, 100)}, {len(part.data) * 3 // 4:,} bytes, not shown]"
    if isinstance(part, mcp_types.ResourceLink):
        size = "" if part.size is None else f", {part.size:,} bytes"
        name = one_line(part.title or part.name, LONGEST_TITLE)
        return f"[link: {name}, {_place(part.uri)}{_kind(part.mime_type)}{size}, not opened]"
    resource = part.resource
    told = f"[resource: {_place(resource.uri)}{_kind(resource.mime_type)}"
    if isinstance(resource, mcp_types.TextResourceContents):
        return f"{told}, {len(resource.text):,} characters]\n{resource.text}"
    return f"{told}, {len(resource.blob) * 3 // 4:,} bytes, not shown]"


def _place(uri: object) -> str:
    return one_line(str(uri), LONGEST_ADDRESS)


def _kind(mime_type: str | None) -> str:
    return f", {one_line(mime_type, 100)}" if mime_type else ""


def _refuse_broken(data: Any, schema: Mapping[str, Any], title: str) -> None:
    try:
        faults = faults_of(validator_of(schema), data, most=1, steps=MOST_STEPS)
    except UncheckableError as error:
        raise _broken(title, f"it cannot be checked: {error}") from None
    for fault in faults:
        place = ".".join(["data", *(str(part) for part in fault.absolute_path)])
        raise _broken(title, f"{place:.200}: {fault.message:.300}")


def _broken(title: str, fault: str) -> ToolError:
    return ToolError(
        ErrorCode.TOOL_EXECUTION_FAILED, f"{title} answered, but its result is not as it promised: {fault}."
    )
