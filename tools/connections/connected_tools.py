"""An organization's connected tools, built from the database without contacting their sources."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tools.connections.models import Source, SourceTool
from tools.connections.servers import build_api_connection, build_server, identify_account
from tools.contract import Level, NetworkAccess, Tool, ToolContext, ToolError, ToolResult
from tools.sources import mcp, openapi
from tools.sources.external_tool import ExternalTool

logger = logging.getLogger("gadget.tools")

Credentials = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class ConnectedTools:
    """The connected tools that an organization's employees may be granted.

    Attributes:
        withheld: chosen tools that cannot be used now, by name, with the reason as a sentence for people.
    """

    tools: list[Tool]
    withheld: Mapping[str, str]


def load_connected_tools(organization_id: int, credentials: Credentials, reach: NetworkAccess) -> ConnectedTools:
    """Load every chosen tool of the organization's sources in one query; a tool that fails does not affect the others.

    Args:
        credentials: the organization's own credentials, by service; its sources get no others.
        reach: the hosts that its admins allow.
    """
    rows = SourceTool.objects.filter(is_chosen=True, source__organization_id=organization_id).select_related("source")
    tools, withheld = [], {}
    for row in rows.defer("source__document", "accepted_definition").order_by("source_id", "key"):
        if why := _explain_withheld(row):
            withheld[row.tool] = why
            continue
        try:
            tools.append(_build_tool(row, credentials, reach))
        except ToolError as error:
            withheld[row.tool] = f"{row.tool} cannot be used: {error.message}"
        except (KeyError, TypeError, ValueError):
            logger.exception("organization %s: %s is left out", organization_id, row.tool)
            withheld[row.tool] = f"{row.tool} cannot be used: see the log."
    return ConnectedTools(tools, withheld)


def _explain_withheld(row: SourceTool) -> str:
    if not row.source.is_active:
        return f"{row.tool} cannot be used: an admin has switched off {row.source}."
    if row.source.lacks_base_url:
        return f"{row.tool} cannot be used: {row.source} has no address for its operations."
    if row.gone_at is not None:
        return f"{row.tool} no longer exists: {row.source} no longer describes it."
    if row.is_quarantined:
        return f"{row.tool} cannot be used: {row.source} has changed its definition, and an admin must accept it."
    return ""


def _build_tool(row: SourceTool, credentials: Credentials, reach: NetworkAccess) -> Tool:
    source, level = row.source, Level(row.level) if row.level else None
    if source.is_mcp:
        tool: ExternalTool = _build_mcp_tool(row, source, credentials, reach)
    else:
        tool = _ConnectedOperation(openapi.ApiOperation.from_json(row.definition), build_api_connection(source), level)
        tool.credentials = credentials
    tool.server_title = row.accepted_title
    tool.name = row.tool  # the stored name, because the source may have renamed the tool since
    return tool


class _ConnectedOperation(openapi.OpenAPITool):
    """An operation signed with its organization's own credentials; a run's context also has the installation's."""

    credentials: Credentials

    def execute(self, params: Mapping[str, Any], context: ToolContext) -> ToolResult:
        return super().execute(params, replace(context, credentials=self.credentials))


def _build_mcp_tool(row: SourceTool, source: Source, credentials: Credentials, reach: NetworkAccess) -> mcp.McpTool:
    server = build_server(source, credentials.get(source.credentials_service, {}), reach)
    tool = mcp.McpTool(mcp.Definition.from_json(row.definition), server, source.name, row.effective_level)
    tool.timeout_s, tool.account = float(source.timeout_s), identify_account(source)
    return tool
