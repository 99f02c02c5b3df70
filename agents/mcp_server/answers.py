"""Answers to tool calls: the result of a call that has ended, or the ticket of one that waits for people."""

from __future__ import annotations

import json

import mcp_types as types
from django.urls import reverse

from agents.gateway.tickets import Ticket
from agents.runs.models import CallStatus
from tools.contract import Tool
from tools.contract.level import Level

LARGEST_STRUCTURE = 64_000
"""Characters of JSON up to which a result is also sent as structured content."""
TICKET_TOOL, CANCEL_TOOL = "gadget.ticket", "gadget.cancel"
MAX_WAIT_S = 30
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
        annotations=types.ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True),
    ),
)
"""The tools that every agent has."""


def describe_tool(tool: Tool) -> types.Tool:
    """Describe a tool for a client. Its level is a hint there: the gate decides, whatever the client believes."""
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema={"type": "object", **tool.schema},
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.has_side_effects,
            destructive_hint=tool.level == Level.DESTRUCTIVE,
            idempotent_hint=tool.idempotent,
            open_world_hint=tool.open_world,
        ),
    )


def build_answer(ticket: Ticket, site: str) -> types.CallToolResult:
    """Answer with the result of an ended call, or with the ticket of one that waits.

    Args:
        site: the origin of this installation, as the client reaches it.
    """
    if not ticket.has_ended:
        return _build_ticket_answer(ticket, site)
    text = types.TextContent(text=ticket.content or str(CallStatus(ticket.call.status).label))
    result = ticket.result
    error = result.error if result is not None else None
    if result is None or error is not None:
        known = {"status": str(ticket.call.status), "code": str(error.code) if error else ""}
        return types.CallToolResult(content=[text], structured_content=known, is_error=True)
    fits = isinstance(result.data, dict) and len(json.dumps(result.data, default=str)) <= LARGEST_STRUCTURE
    return types.CallToolResult(content=[text], structured_content=result.data if fits else None, is_error=False)


def _build_ticket_answer(ticket: Ticket, site: str) -> types.CallToolResult:
    described = ticket.describe(build_address(ticket, site))
    return types.CallToolResult(
        content=[types.TextContent(text=f"{json.dumps(described)}\n{_advise(ticket)}")], structured_content=described
    )


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
    """Build the address of the ticket's card, behind the login; without one, that of its run."""
    if ticket.card_id is not None:
        return f"{site}{reverse('approval', args=[ticket.card_id])}"
    return f"{site}{reverse('run', args=[ticket.call.run_id])}"


def build_refusal(message: str) -> types.CallToolResult:
    """Answer that a call was refused before it was recorded."""
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)
