"""The tools that an organisation has connected, made from what is stored: nobody is asked."""

import logging
from collections.abc import Mapping

from tools.contract import Level, Reach, Tool, ToolError
from tools.sources import mcp, openapi

from .models import OFFERED, AllowedHost, Source, SourceTool
from .servers import connection_of, server_of

logger = logging.getLogger("gadget.tools")

Credentials = Mapping[str, Mapping[str, str]]


def offered_tools(organization_id: int, credentials: Credentials) -> list[Tool]:
    """Every chosen and accepted tool of the organisation's active sources, in two queries; one that fails is left out.

    Args:
        credentials: of the organisation, by service.
    """
    rows = SourceTool.objects.filter(OFFERED, source__organization_id=organization_id).select_related("source")
    reach = reach_of(organization_id)
    tools = []
    for row in rows.defer("source__document").order_by("source_id", "key"):
        try:
            tools.append(_made(row, credentials, reach))
        except (ToolError, KeyError, TypeError, ValueError) as error:
            logger.warning("organisation %s: %s is left out: %s", organization_id, row.tool, error)
    return tools


def reach_of(organization_id: int) -> Reach:
    """The hosts that the organisation's admins allow, in one query."""
    rows = AllowedHost.objects.filter(organization_id=organization_id).values_list("host", "may_be_private")
    hosts = dict(rows)
    return Reach(frozenset(hosts), frozenset(host for host, may_be_private in hosts.items() if may_be_private))


def _made(row: SourceTool, credentials: Credentials, reach: Reach) -> Tool:
    source, level = row.source, Level(row.level) if row.level else None
    if source.is_mcp:
        tool: Tool = _mcp_tool(row, source, credentials, reach)
    else:
        tool = openapi.OpenAPITool(openapi.Operation.from_json(row.definition), connection_of(source), level)
    tool.name = row.tool  # the name stays, whatever else the source describes later
    return tool


def _mcp_tool(row: SourceTool, source: Source, credentials: Credentials, reach: Reach) -> Tool:
    server = server_of(source, credentials.get(source.credentials_service, {}), reach)
    tool = mcp.McpTool(mcp.Definition.from_json(row.definition), server, source.name, row.effective_level)
    tool.timeout_s = float(source.timeout_s)
    return tool
