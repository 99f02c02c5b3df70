"""Build the responses that contain results. Some clients show their model only the text, others
only the structured content.

So both contain everything that the model must know. A small result is in both; the structured
content of a large result is an excerpt.
"""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types

from agents.gateway.tickets import Ticket
from agents.mcp_server.names import TICKET_TOOL
from agents.runs.engine.results import describe_edited_params
from agents.runs.models import CallStatus
from tools.contract import ToolResult
from tools.contract.excerpts import (
    Excerpt,
    describe_position,
    format_for_model,
    take_excerpt,
    take_rows,
)

SHORT = 4_000
"""The maximum length of the JSON in the structured content, in characters. For a larger result, the
structured content has an excerpt of this length."""
_MAX_NOTE = 1_000
_CONTINUE = f"continue with {TICKET_TOOL}, this handle as ticket, and start {{end}}"


def build_result(ticket: Ticket) -> types.CallToolResult:
    """Build the response with the result of an ended call."""
    result = ticket.result
    error = result.error if result is not None else None
    if result is None or error is not None:
        text = ticket.content or str(CallStatus(ticket.call.status).label)
        known = {
            "status": str(ticket.call.status),
            "code": str(error.code) if error else "",
            "message": text[:SHORT],
        }
        return types.CallToolResult(
            content=[types.TextContent(text=text)], structured_content=known, is_error=True
        )
    note = describe_edited_params(ticket.call)
    text = "\n".join(filter(None, [note, format_for_model(result, ticket.id, _CONTINUE)]))
    structure = _build_structure(ticket, result, note)
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=structure, is_error=False
    )


def build_page(ticket: Ticket, start: int) -> types.CallToolResult:
    """Build the response with a part of a large result, beginning at the piece `start`. It contains
    only text, so that clients show the part once."""
    result = ticket.result
    if result is None or result.error is not None:
        return build_result(ticket)
    excerpt = take_excerpt(result, start)
    position = describe_position(excerpt, _CONTINUE)
    text = types.TextContent(text=f"{excerpt.text}\n[{position}; handle {ticket.id}]")
    return types.CallToolResult(content=[text], is_error=False)


def _build_structure(ticket: Ticket, result: ToolResult, note: str) -> dict[str, Any] | None:
    """Build the structured content; return None if the data is not an object, because then only the
    text contains the data."""
    if not isinstance(result.data, dict):
        return None
    whole = _add_markdown(result.data, result.markdown)
    note = note if len(note) <= _MAX_NOTE else f"{note[:_MAX_NOTE]}…"
    if _measure(whole) <= SHORT:
        return {"guidance": note, "result": whole} if note else whole
    excerpt = take_excerpt(result, longest=SHORT)
    rows = take_rows(result, excerpt)
    step = _describe_rest(ticket, result, excerpt)
    return {
        "summary": result.summary,
        "guidance": " ".join(filter(None, [note, step])),
        "ticket": ticket.id,
        **({"text": excerpt.text} if rows is None else {"result": rows}),
    }


def _add_markdown(data: dict[str, Any], markdown: str) -> dict[str, Any]:
    """Add to the data the Markdown that the tool wrote for models, because it may contain more than
    the data."""
    if not markdown:
        return data
    return (
        {"data": data, "markdown": markdown}
        if "markdown" in data
        else {**data, "markdown": markdown}
    )


def _describe_rest(ticket: Ticket, result: ToolResult, excerpt: Excerpt) -> str:
    """Say how to continue from the first missing piece, or from the start if pages count pieces in
    another unit; empty if nothing is missing."""
    if excerpt.end == excerpt.total:
        return ""
    start = excerpt.end if take_excerpt(result).unit == excerpt.unit else 0
    part = f"This is a part: {excerpt.end:,} of {excerpt.total:,} {excerpt.unit}."
    return f"{part} Call {TICKET_TOOL} with ticket {ticket.id} and start {start} for the rest. Do not repeat the call."


def _measure(data: dict[str, Any]) -> int:
    return len(json.dumps(data, default=str, ensure_ascii=False))
