"""The tasks extension of MCP (SEP-2663): a client that supports the extension gets a task in place
of a ticket.

A task is the ticket under another name, so a client can use either for the same call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agents.gateway.models import AgentKey
from agents.gateway.tickets import Ticket
from agents.mcp_server.call_responses import build_address, build_call_response
from agents.mcp_server.callers import Caller, get_caller
from agents.mcp_server.database import database_to_async
from agents.mcp_server.failures import hide_failures
from agents.mcp_server.tickets import cancel_ticket, find_ticket
from agents.platform.refusals import Refusal
from agents.runs.models import CallStatus

EXTENSION = "io.modelcontextprotocol/tasks"
POLL_MS = 2_000
KEPT_MS = 30 * 24 * 3600 * 1000
"""The time, in milliseconds, for which a client may rely on a task. In fact, a task can be looked
up as long as its run exists."""
_MESSAGES = {
    "waiting_for_approval": "A person has to decide in Gadget.",
    "waiting_for_people": "It waits for an answer from a person or another employee in Gadget.",
    "outcome_unknown": "Nobody knows whether it happened; a person has to check.",
    "approved": "A person approved it; it is about to start.",
}

Context = ServerRequestContext[Any, Any]


class TaskParams(types.RequestParams):
    """The param that all three methods share; `tasks/update` has further params, which are
    ignored."""

    task_id: str


def add_tasks(server: Server[Any]) -> None:
    """Add the methods of the tasks extension to the server."""
    server.extensions[EXTENSION] = {}
    server.add_request_handler("tasks/get", TaskParams, hide_failures(_get))
    server.add_request_handler("tasks/cancel", TaskParams, hide_failures(_cancel))
    server.add_request_handler("tasks/update", TaskParams, hide_failures(_update))


def knows_tasks(context: Context) -> bool:
    """Return True if the client declared the extension, for its session or for this request."""
    capabilities = context.session.client_capabilities
    is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    return is_modern and capabilities is not None and EXTENSION in (capabilities.extensions or {})


def build_task(ticket: Ticket, caller: Caller) -> dict[str, Any]:
    """Build the task that a client gets as the response to a call that has not ended."""
    return {"resultType": "task", **_describe(ticket, caller)}


async def _get(context: Context, params: TaskParams) -> dict[str, Any]:
    caller = _require(context, params)
    ticket = await _apply(find_ticket, caller.key, params.task_id)
    return {"resultType": "complete", **_describe(ticket, caller)}


async def _cancel(context: Context, params: TaskParams) -> dict[str, Any]:
    await _apply(cancel_ticket, _require(context, params).key, params.task_id)
    return {"resultType": "complete"}


async def _update(context: Context, params: TaskParams) -> dict[str, Any]:
    """Accept input and ignore it, because no task asks for input, and agents do not decide
    anything."""
    await _apply(find_ticket, _require(context, params).key, params.task_id)
    return {"resultType": "complete"}


def _require(context: Context, params: TaskParams) -> Caller:
    """Return the caller; refuse clients that do not support tasks, and requests whose header and
    body name different tasks."""
    if not knows_tasks(context):
        needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"declare the extension {EXTENSION} first",
            needed,
        )
    request: Any = context.request
    if decode_header_value(request.headers.get(MCP_NAME_HEADER)) != params.task_id:
        raise MCPError(types.HEADER_MISMATCH, "the header Mcp-Name must equal params.taskId")
    return get_caller(context)


def _describe(ticket: Ticket, caller: Caller) -> dict[str, Any]:
    call = ticket.call
    changed = call.finished_at or call.started_at or call.created_at
    described: dict[str, Any] = {
        "taskId": ticket.id,
        "status": _find_status(ticket),
        "createdAt": call.created_at.isoformat(),
        "lastUpdatedAt": changed.isoformat(),
        "ttlMs": KEPT_MS,
        "pollIntervalMs": POLL_MS,
    }
    if message := _MESSAGES.get(ticket.status):
        described["statusMessage"] = f"{message} {build_address(ticket, caller.site)}"
    if described["status"] == "completed":
        result = build_call_response(ticket, caller.site)
        described["result"] = result.model_dump(by_alias=True, exclude_none=True, mode="json")
    elif described["status"] == "failed":
        described["error"] = {"code": types.INTERNAL_ERROR, "message": ticket.content}
    return described


def _find_status(ticket: Ticket) -> str:
    """Return the task's status in the extension's words. A call is "completed" even if its tool
    reported an error."""
    if not ticket.has_ended:
        return "working"
    if ticket.call.status == CallStatus.CANCELLED:
        return "cancelled"
    return "failed" if ticket.has_crashed else "completed"


@database_to_async
def _apply(act: Callable[[AgentKey, str], Ticket], key: AgentKey, task_id: str) -> Ticket:
    try:
        return act(key, task_id)
    except Refusal as refusal:
        raise MCPError(types.INVALID_PARAMS, refusal.detail) from refusal
