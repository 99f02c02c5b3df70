"""The tools that an organisation has connected, made from what is stored: nobody is asked."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tools.contract import Level, Reach, Tool, ToolContext, ToolError, ToolResult
from tools.sources import mcp, openapi

from .models import Source, SourceTool
from .servers import account_of, connection_of, server_of

logger = logging.getLogger("gadget.tools")

Credentials = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Offered:
    """What an organisation's employees may be granted of its sources.

    Attributes:
        withheld: what was chosen and cannot be used now, by name, and why, as a sentence for those who were granted it.
    """

    tools: list[Tool]
    withheld: Mapping[str, str]


def offered_tools(organization_id: int, credentials: Credentials, reach: Reach) -> Offered:
    """Every chosen tool of the organisation's sources, in one query; one that fails holds up no other.

    Args:
        credentials: that the organisation has set itself, by service; its sources get no others.
        reach: the hosts that its admins allow.
    """
    rows = SourceTool.objects.filter(is_chosen=True, source__organization_id=organization_id).select_related("source")
    tools, withheld = [], {}
    for row in rows.defer("source__document", "accepted_definition").order_by("source_id", "key"):
        if why := _why_withheld(row):
            withheld[row.tool] = why
            continue
        try:
            tools.append(_made(row, credentials, reach))
        except ToolError as error:
            withheld[row.tool] = f"{row.tool} cannot be used: {error.message}"
        except (KeyError, TypeError, ValueError):
            logger.exception("organisation %s: %s is left out", organization_id, row.tool)
            withheld[row.tool] = f"{row.tool} cannot be used: the log says why."
    return Offered(tools, withheld)


def _why_withheld(row: SourceTool) -> str:
    if not row.source.is_active:
        return f"{row.tool} cannot be used: an admin has switched {row.source} off."
    if row.source.leads_nowhere:
        return f"{row.tool} cannot be used: {row.source} does not say where its operations go."
    if row.gone_at is not None:
        return f"{row.tool} is not there any more: {row.source} does not describe it."
    if row.is_quarantined:
        return (
            f"{row.tool} cannot be used until an admin has looked at it: {row.source} describes it in another way now."
        )
    return ""


def _made(row: SourceTool, credentials: Credentials, reach: Reach) -> Tool:
    source, level = row.source, Level(row.level) if row.level else None
    if source.is_mcp:
        tool: Tool = _mcp_tool(row, source, credentials, reach)
    else:
        tool = _ConnectedOperation(openapi.Operation.from_json(row.definition), connection_of(source), level)
        tool.credentials = credentials
    tool.name = row.tool  # the name stays, whatever else the source describes later
    return tool


class _ConnectedOperation(openapi.OpenAPITool):
    """Signs with what its organisation has set; those of a run hold the installation's as well."""

    credentials: Credentials

    def execute(self, params: Mapping[str, Any], context: ToolContext) -> ToolResult:
        return super().execute(params, replace(context, credentials=self.credentials))


def _mcp_tool(row: SourceTool, source: Source, credentials: Credentials, reach: Reach) -> Tool:
    server = server_of(source, credentials.get(source.credentials_service, {}), reach)
    tool = mcp.McpTool(mcp.Definition.from_json(row.definition), server, source.name, row.effective_level)
    tool.timeout_s, tool.account = float(source.timeout_s), account_of(source)
    return tool
