"""The operation that lists the catalog of tools, with their statistics in the organization."""

from django.http import HttpRequest
from ninja import Query, Router

from agents.api.auth import get_member
from agents.api.paging import decode_key, encode_cursor
from agents.api.schemas import CursorPage, PageQuery
from agents.api.statistics import ToolDetail, build_tool_statistics
from agents.employees.toolboxes import load_toolbox
from agents.insight import figures
from agents.runs.engine.context import load_organization_rules
from tools.contract import Tool
from tools.toolbox import Grants, Toolbox, determine_level

router = Router(tags=["Tools"])


class ToolList(CursorPage[ToolDetail]):
    """A page of the catalog."""


@router.get("", response=ToolList, summary="List tools")
def list_tools(request: HttpRequest, filters: Query[PageQuery]) -> ToolList:
    """List every version of every tool, sorted by id. Employees can use only their allowed
    tools."""
    member = get_member(request)
    toolbox = load_toolbox(member.organization_id)
    after = decode_key(filters.cursor) if filters.cursor else ""
    remaining = sorted(
        (tool for tool in toolbox.tools() if tool.id > after), key=lambda tool: tool.id
    )
    page = remaining[: filters.limit]
    statistics, rules = (
        figures.load_tool_figures(member.organization_id),
        load_organization_rules(member.organization_id),
    )
    next_cursor = encode_cursor(page[-1].id) if len(remaining) > len(page) else None
    return ToolList(
        items=[_build_detail(tool, toolbox, statistics, rules) for tool in page],
        next_cursor=next_cursor,
    )


def _build_detail(
    tool: Tool, toolbox: Toolbox, statistics: dict[str, figures.Figures], rules: Grants
) -> ToolDetail:
    level = determine_level(tool, rules)
    return ToolDetail(
        id=tool.id,
        name=tool.name,
        display_name=tool.title,
        description=tool.description,
        category=tool.category,
        level=level.value,
        version=tool.version,
        author=tool.author,
        source=tool.source,
        is_enabled=tool.name not in rules.stopped
        and not {tool.name, tool.id} & toolbox.policy.disabled,
        has_side_effects=level.has_side_effects,
        capabilities=sorted(tool.capabilities),
        features=sorted(tool.features),
        parameters=tool.schema,
        output=dict(tool.output_schema) if tool.output_schema is not None else None,
        figures=build_tool_statistics(statistics.get(tool.name, figures.Figures())),
    )
