"""An organization's connected sources. Their tools are built from stored definitions, without
contacting the sources."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from django.db.models import QuerySet

from tools.connections.models import SourceTool
from tools.connections.servers import build_api_connection, build_server, identify_account
from tools.contract import Level, NetworkAccess, Tool, ToolContext, ToolError, ToolResult
from tools.contract.outside_text import quote_text
from tools.sources import mcp, openapi
from tools.sources.base import LoadedSource
from tools.sources.external_tool import ExternalTool
from tools.toolbox.objections import Objection

logger = logging.getLogger("gadget.tools")

Credentials = Mapping[str, Mapping[str, str]]


class ConnectedSource(LoadedSource):
    """A source of an organization, with the tools that were chosen; a tool that cannot be built is
    withheld.

    Args:
        rows: the source's chosen tools, at least one. The first start frees these rows; a later
            start loads them again.
        credentials: the organization's own credentials, by service; its sources do not get any
            other credentials.
        reach: the hosts that the organization's admins allow.
    """

    def __init__(
        self, rows: Sequence[SourceTool], credentials: Credentials, reach: NetworkAccess
    ) -> None:
        super().__init__(rows[0].source.name)
        self._id = rows[0].source_id
        self._rows = rows
        self._credentials = credentials
        self._reach = reach

    def _load_tools(self) -> Iterator[Tool]:
        rows, self._rows = (
            self._rows or _order(SourceTool.objects.filter(is_chosen=True, source=self._id)),
            (),
        )
        self.withheld = withheld = dict[str, str]()
        for row in rows:
            if (objection := _object_to_use(row)) is not None:
                withheld[row.tool] = objection.why
                continue
            try:
                yield self._build(row)
            except ToolError as error:
                withheld[row.tool] = f"{quote_text(row.tool)} cannot be used: {error.message}"
            except (KeyError, TypeError, ValueError):
                logger.exception(
                    "organization %s: %s is left out", row.source.organization_id, row.tool
                )
                withheld[row.tool] = f"{quote_text(row.tool)} cannot be used: see the log."

    def _build(self, row: SourceTool) -> Tool:
        if row.source.is_mcp:
            tool: ExternalTool = self._build_mcp_tool(row)
        else:
            level, operation = (
                Level(row.level) if row.level else None,
                openapi.ApiOperation.from_json(row.definition),
            )
            tool = _ConnectedOperation(operation, build_api_connection(row.source), level)
            tool.credentials = self._credentials
        tool.server_title = row.accepted_title
        tool.destination_params = frozenset(map(str, row.named_params))
        tool.plain_params = frozenset(map(str, row.plain_params))
        tool.name = row.tool  # the stored name, because the source may have renamed the tool since
        return tool

    def _build_mcp_tool(self, row: SourceTool) -> mcp.McpTool:
        source = row.source
        server = build_server(
            source, self._credentials.get(source.credentials_service, {}), self._reach
        )
        tool = mcp.McpTool(
            mcp.Definition.from_json(row.definition), server, source.name, row.effective_level
        )
        tool.timeout_s, tool.account = float(source.timeout_s), identify_account(source)
        return tool


class _ConnectedOperation(openapi.OpenAPITool):
    """An operation that uses only its organization's credentials, not the installation's."""

    credentials: Credentials

    def execute(self, params: Mapping[str, Any], context: ToolContext) -> ToolResult:
        return super().execute(params, replace(context, credentials=self.credentials))


def load_connected_sources(
    organization_id: int, credentials: Credentials, reach: NetworkAccess
) -> Iterator[ConnectedSource]:
    """Load the organization's sources with all chosen tools in one query; see `ConnectedSource`."""
    chosen = SourceTool.objects.filter(is_chosen=True, source__organization_id=organization_id)
    for _, rows in groupby(_order(chosen), key=lambda row: row.source_id):
        yield ConnectedSource(list(rows), credentials, reach)


def _order(rows: QuerySet[SourceTool]) -> QuerySet[SourceTool]:
    found = rows.select_related("source").defer("source__document", "accepted_definition")
    return found.order_by("source_id", "key")


def _object_to_use(row: SourceTool) -> Objection | None:
    tool, source = quote_text(row.tool), quote_text(str(row.source))
    if not row.source.is_active:
        return Objection(f"{tool} cannot be used: an admin has switched off {source}.")
    if row.source.lacks_base_url:
        return Objection(f"{tool} cannot be used: {source} has no address for its operations.")
    if row.gone_at is not None:
        return Objection(f"{tool} no longer exists: {source} no longer describes it.")
    if row.is_quarantined:
        return Objection(
            f"{tool} cannot be used: {source} has changed its definition, and an admin must accept it."
        )
    return None
