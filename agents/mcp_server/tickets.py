"""Load and cancel tickets for MCP clients. The functions work as in `gateway/tickets.py`, but
errors contain the served names of tools."""

from agents.employees.toolboxes import load_toolbox
from agents.gateway import tickets
from agents.gateway.models import AgentKey
from agents.mcp_server.names import name_as_served


def load_ticket(key: AgentKey, call_id: int) -> tickets.Ticket:
    """Load a call of this key.

    Raises:
        ToolCall.DoesNotExist
    """
    return _name_as_served(key, tickets.load_ticket(call_id))


def find_ticket(key: AgentKey, ticket: str) -> tickets.Ticket:
    """Find a ticket of this key.

    Raises:
        NotFound
    """
    return _name_as_served(key, tickets.find_ticket(key, ticket))


def cancel_ticket(key: AgentKey, ticket: str) -> tickets.Ticket:
    """Cancel the call, if it has not started.

    Raises:
        NotFound
    """
    return _name_as_served(key, tickets.cancel_ticket(key, ticket))


def _name_as_served(key: AgentKey, ticket: tickets.Ticket) -> tickets.Ticket:
    """Replace the names of tools in a failed call's error with their served names. This changes
    only the ticket in memory."""
    if ticket.result is not None and not ticket.result.success:
        names = {tool.name for tool in load_toolbox(key.employee.organization_id).tools()}
        ticket.call.content = name_as_served(ticket.content, names)
    return ticket
