"""Tools: the catalog, and how each did in this organisation."""

from django.http import HttpRequest
from ninja import Query, Router

from agents.api.schemas import Page, Paging
from agents.employees.toolboxes import toolbox_of
from agents.insight import figures
from agents.runs.engine.context import rules_for_all
from tools.contract import Tool
from tools.toolbox import Grants, Toolbox, level_of

from .auth import member_of
from .figures import ToolShape, shape_of
from .paging import cursor_of, key_in

router = Router(tags=["Tools"])


class ToolPage(Page[ToolShape]):
    """A part of the catalog."""


@router.get("", response=ToolPage, summary="List tools")
def list_tools(request: HttpRequest, filters: Query[Paging]) -> ToolPage:
    """Every version of every tool of this installation, by id; an employee may use what it was granted."""
    member = member_of(request)
    toolbox = toolbox_of(member.organization_id)
    behind = key_in(filters.cursor) if filters.cursor else ""
    rest = sorted((tool for tool in toolbox.tools() if tool.id > behind), key=lambda tool: tool.id)
    page = rest[: filters.limit]
    found, rules = figures.by_tool(member.organization_id), rules_for_all(member.organization_id)
    next_cursor = cursor_of(page[-1].id) if len(rest) > len(page) else None
    return ToolPage(items=[_shape_of(tool, toolbox, found, rules) for tool in page], next_cursor=next_cursor)


def _shape_of(tool: Tool, toolbox: Toolbox, found: dict[str, figures.Figures], rules: Grants) -> ToolShape:
    level = level_of(tool, rules)
    return ToolShape(
        id=tool.id,
        name=tool.name,
        display_name=tool.title,
        description=tool.description,
        category=tool.category,
        level=level.value,
        version=tool.version,
        author=tool.author,
        source=tool.source,
        is_enabled=tool.name not in rules.stopped and not {tool.name, tool.id} & toolbox.policy.disabled,
        has_side_effects=level.has_side_effects,
        capabilities=sorted(tool.capabilities),
        features=sorted(tool.features),
        parameters=tool.schema,
        output=dict(tool.output_schema) if tool.output_schema is not None else None,
        figures=shape_of(found.get(tool.name, figures.Figures())),
    )
