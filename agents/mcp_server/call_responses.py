"""Describe tools for MCP clients, and build the responses to calls: a result, or the ticket of a
waiting call."""

from __future__ import annotations

import json
from collections.abc import Container
from typing import Any

import mcp_types as types
from django.urls import reverse

from agents.gateway.tickets import Ticket
from agents.mcp_server.names import CANCEL_TOOL, TICKET_TOOL, get_served_name, name_as_served
from agents.mcp_server.results import build_page, build_result
from agents.runs.models import CallStatus
from tools.contract import Tool
from tools.contract.level import Level

MAX_WAIT_S = 30
MAX_START = 10**9
_TICKET_PARAM = {"type": "string", "description": "The ticket, as a waiting call returned it."}
TICKET_TOOLS = (
    types.Tool(
        name=TICKET_TOOL,
        title="Look up a ticket",
        description=(
            "Look up a call that waited for a person: its result once it has ended, or its ticket again. "
            "People may take hours to decide; do other work meanwhile, and do not ask for the same call again."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "ticket": _TICKET_PARAM,
                "wait_s": {
                    "type": "number",
                    "minimum": 0,
                    "maximum": MAX_WAIT_S,
                    "default": 0,
                    "description": "Seconds to wait for the call to end.",
                },
                "start": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": MAX_START,
                    "description": "Where to continue in a large result, as given in an earlier response.",
                },
            },
            "required": ["ticket"],
            "additionalProperties": False,
        },
        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    ),
    types.Tool(
        name=CANCEL_TOOL,
        title="Cancel a ticket",
        description="Cancel a call that has not started yet, so that nobody has to decide on it.",
        input_schema={
            "type": "object",
            "properties": {"ticket": _TICKET_PARAM},
            "required": ["ticket"],
            "additionalProperties": False,
        },
        annotations=types.ToolAnnotations(
            read_only_hint=False, destructive_hint=False, idempotent_hint=True
        ),
    ),
)
"""The server's own tools, which every agent has."""


def describe_tool(tool: Tool, names: Container[str]) -> types.Tool:
    """Describe a tool for a client. The annotations about its level are only hints, because the
    gate decides.

    Args:
        names: the names of the tools that the client sees; descriptions use their served names.
    """
    return types.Tool(
        name=get_served_name(tool.name),
        title=tool.title,
        description=name_as_served(tool.description, names),
        input_schema={"type": "object", **_describe_as_served(tool.schema, names)},
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.has_side_effects,
            destructive_hint=tool.level == Level.DESTRUCTIVE,
            idempotent_hint=tool.idempotent,
            open_world_hint=tool.open_world,
        ),
    )


def _describe_as_served(schema: dict[str, Any], names: Container[str]) -> dict[str, Any]:
    """Copy a schema, and replace the names of tools in its descriptions with their served names."""

    def copy(part: Any) -> Any:
        if isinstance(part, list):
            return [copy(each) for each in part]
        if not isinstance(part, dict):
            return part
        copied = {name: copy(each) for name, each in part.items()}
        if isinstance(text := copied.get("description"), str):
            copied["description"] = name_as_served(text, names)
        return copied

    return {name: copy(each) for name, each in schema.items()}


def build_call_response(
    ticket: Ticket, site: str, start: int | None = None
) -> types.CallToolResult:
    """Return the result of an ended call, or the ticket of a call that has not ended.

    Args:
        site: the origin of this installation, as the client reaches it.
        start: the first piece of a large result to return.
    """
    if not ticket.has_ended:
        return _build_told(ticket, site, _advise(ticket))
    return build_result(ticket) if start is None else build_page(ticket, start)


def build_cancellation(ticket: Ticket, site: str) -> types.CallToolResult:
    """Build the response to a cancellation. The response is an error if the cancellation came too
    late."""
    if ticket.call.status == CallStatus.CANCELLED:
        return _build_told(ticket, site, "The call is cancelled. It did not run.")
    state = ticket.status.replace("_", " ")
    advice = f"It was too late to cancel this call: it is {state}. Call {TICKET_TOOL} with this ticket for its result."
    return _build_told(ticket, site, advice, is_error=True)


def _build_told(
    ticket: Ticket, site: str, guidance: str, *, is_error: bool = False
) -> types.CallToolResult:
    """Describe the state of a call, with guidance, both as structured content and as text, because
    clients show only one of them."""
    described = {**ticket.describe(build_address(ticket, site)), "guidance": guidance}
    text = types.TextContent(text=json.dumps(described, ensure_ascii=False))
    return types.CallToolResult(content=[text], structured_content=described, is_error=is_error)


def _advise(ticket: Ticket) -> str:
    if ticket.ends_by_itself:
        return f"The call is running. Call {TICKET_TOOL} with this ticket for its result."
    facts = {
        CallStatus.AWAITING_APPROVAL: "A person has to decide in Gadget; nothing has been changed yet.",
        CallStatus.OUTCOME_UNKNOWN: "Nobody knows whether this call took effect. A person has to check.",
    }
    fact = facts.get(
        CallStatus(ticket.call.status),
        "The call waits for an answer from a person or another employee in Gadget.",
    )
    return f"{fact} Call {TICKET_TOOL} with this ticket later. Do not ask for the same call again."


def build_address(ticket: Ticket, site: str) -> str:
    """Build the address of the ticket's card, or of its run if no card is open; opening either of
    them requires a login."""
    if ticket.card_id is not None:
        return f"{site}{reverse('approval', args=[ticket.card_id])}"
    return f"{site}{reverse('run', args=[ticket.call.run_id])}"


def build_refusal(message: str) -> types.CallToolResult:
    """Build the response to a call that was refused before it was recorded."""
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)
