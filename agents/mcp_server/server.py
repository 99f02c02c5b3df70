"""The MCP server: it lists the tools of the key's employee, records calls, and waits for the calls
that need no person."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from agents.employees.toolboxes import load_toolbox
from agents.gateway.models import AgentKey
from agents.gateway.requests import ToolRequest, record_request
from agents.gateway.tickets import Ticket
from agents.mcp_server.call_responses import (
    MAX_START,
    MAX_WAIT_S,
    TICKET_TOOLS,
    build_call_response,
    build_cancellation,
    build_refusal,
    describe_tool,
)
from agents.mcp_server.callers import Caller, get_caller
from agents.mcp_server.database import database_to_async
from agents.mcp_server.failures import hide_failures
from agents.mcp_server.names import CANCEL_TOOL, TICKET_TOOL, find_tool_name, get_own_name
from agents.mcp_server.tasks import add_tasks, build_task, knows_tasks
from agents.mcp_server.tickets import cancel_ticket, find_ticket, load_ticket
from agents.platform.refusals import Refusal
from agents.runs.engine.context import load_grants
from agents.runs.models import TERMINAL_CALLS, CallStatus
from agents.web.sockets.call_feed import CallProgress, wait_for_call

Context = ServerRequestContext[Any, Any]
RESULT_WAIT_S = 50.0
"""The number of seconds for which a response waits for a call that needs no approval. Many clients
give up after 60 seconds."""
TASK_WAIT_S = 2.0
"""The number of seconds for which a response waits if the client supports tasks."""
_BY_ITSELF = (CallStatus.READY, CallStatus.APPROVED, CallStatus.EXECUTING)
INSTRUCTIONS = (
    "These tools belong to a team. Calls that need approval return a ticket: a person on the team decides in Gadget, "
    "and Gadget then runs the call itself. All others return their result. "
    f"Look tickets up with {TICKET_TOOL}. You cannot approve anything."
)


def build_server(version: str) -> Server[Any]:
    """Build the server. It does not store anything between requests, so that any process can serve
    any request."""
    server: Server[Any] = Server(
        "gadget",
        version=version,
        title="Gadget",
        instructions=INSTRUCTIONS,
        cache_hints={"tools/list": CacheHint(ttl_ms=0, scope="private")},
        on_list_tools=hide_failures(_list_tools),
        # No schema here needs headers; without this, the SDK would list all tools for each call.
        get_tool_input_schema=lambda _: None,
        on_call_tool=hide_failures(_call_tool),  # type: ignore[arg-type]  # the extension's task is a dict
    )
    add_tasks(server)
    return server


async def _list_tools(
    context: Context, _: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[*await _load_tools(get_caller(context).key), *TICKET_TOOLS])


@database_to_async
def _load_tools(key: AgentKey) -> list[types.Tool]:
    employee = key.employee
    toolbox = load_toolbox(employee.organization_id)
    tools = toolbox.available_tools(load_grants(employee.pk, employee.mode), toolbox.policy)
    names = {tool.name for tool in tools}
    return [describe_tool(tool, names) for tool in tools]


async def _call_tool(
    context: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | dict[str, Any]:
    caller, arguments = get_caller(context), params.arguments or {}
    try:
        name = get_own_name(params.name)
        if name == TICKET_TOOL:
            return await _look_up(context, caller, arguments)
        if name == CANCEL_TOOL:
            return build_cancellation(
                await _cancel(caller.key, _read_ticket(arguments)), caller.site
            )
        return await _record_and_wait(context, caller, ToolRequest(name, arguments))
    except Refusal as refusal:
        return build_refusal(refusal.detail)


async def _look_up(
    context: Context, caller: Caller, arguments: dict[str, Any]
) -> types.CallToolResult:
    wait_s, start = arguments.get("wait_s", 0), arguments.get("start")
    if (
        isinstance(wait_s, bool)
        or not isinstance(wait_s, int | float)
        or not 0 <= wait_s <= MAX_WAIT_S
    ):
        raise MCPError(types.INVALID_PARAMS, f"wait_s must be a number from 0 to {MAX_WAIT_S}")
    if start is not None and (type(start) is not int or not 0 <= start <= MAX_START):
        raise MCPError(types.INVALID_PARAMS, f"start must be an integer from 0 to {MAX_START}")
    ticket = await _find(caller.key, _read_ticket(arguments))
    if not ticket.has_ended and wait_s:
        await wait_for_call(ticket.call, _has_ended, wait_s, _report_to(context))
        ticket = await _find(caller.key, ticket.id)
    return build_call_response(ticket, caller.site, start)


async def _record_and_wait(
    context: Context, caller: Caller, request: ToolRequest
) -> types.CallToolResult | dict[str, Any]:
    ticket = await _record(caller, request)
    if ticket is None or ticket.is_unknown_tool:
        raise MCPError(types.INVALID_PARAMS, f"there is no tool {request.tool[:120]!r}")
    has_tasks = knows_tasks(context)
    if ticket.ends_by_itself:
        wait_s = TASK_WAIT_S if has_tasks else RESULT_WAIT_S
        await wait_for_call(ticket.call, _needs_no_wait, wait_s, _report_to(context))
        ticket = await _find(caller.key, ticket.id)
    if has_tasks and not ticket.has_ended:
        return build_task(ticket, caller)
    return build_call_response(ticket, caller.site)


def _has_ended(status: str) -> bool:
    return status in TERMINAL_CALLS


def _needs_no_wait(status: str) -> bool:
    return status not in _BY_ITSELF


def _report_to(context: Context) -> Any:
    async def report(progress: CallProgress) -> None:
        fraction = progress.fraction if progress.fraction is not None else float(progress.seq)
        total = 1.0 if progress.fraction is not None else None
        await context.session.report_progress(fraction, total, progress.text or None)

    return report


def _read_ticket(arguments: dict[str, Any]) -> str:
    ticket = arguments.get("ticket")
    if not isinstance(ticket, str):
        raise MCPError(types.INVALID_PARAMS, "ticket must be a string")
    return ticket


@database_to_async
def _record(caller: Caller, request: ToolRequest) -> Ticket | None:
    """Record a call of the tool that the client names; return None if there is no such tool."""
    tools = load_toolbox(caller.key.employee.organization_id).tools()
    name = find_tool_name(request.tool, (tool.name for tool in tools))
    if name is None:
        return None
    call = record_request(caller.key, caller.open_session(), ToolRequest(name, request.arguments))
    return (
        Ticket(call, "starting")
        if call.status == CallStatus.READY
        else load_ticket(caller.key, call.pk)
    )


@database_to_async
def _find(key: AgentKey, ticket: str) -> Ticket:
    return find_ticket(key, ticket)


@database_to_async
def _cancel(key: AgentKey, ticket: str) -> Ticket:
    return cancel_ticket(key, ticket)
