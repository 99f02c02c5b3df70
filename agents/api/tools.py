"""Tools: the catalog, and how each did in this organisation."""

from django.db.models import Count, Q
from django.http import HttpRequest
from ninja import Query, Router

from agents.engine.toolbox import installed_toolbox
from agents.models import CallStatus, Membership, ToolCall
from agents.schemas import Figures, Page, Paging, ToolShape
from tools.contract import Tool
from tools.toolbox import Toolbox

from .auth import member_of
from .paging import cursor_of, key_in

router = Router(tags=["Tools"])

SOURCE = "built in"


class ToolPage(Page[ToolShape]):
    """A part of the catalog."""


@router.get("", response=ToolPage, summary="List tools")
def list_tools(request: HttpRequest, filters: Query[Paging]) -> ToolPage:
    """Every version of every tool of this installation, by id; an employee may use what it was granted."""
    toolbox = installed_toolbox()
    behind = key_in(filters.cursor) if filters.cursor else ""
    rest = sorted((tool for tool in toolbox.tools() if tool.id > behind), key=lambda tool: tool.id)
    page = rest[: filters.limit]
    figures = _figures_of(member_of(request))
    next_cursor = cursor_of(page[-1].id) if len(rest) > len(page) else None
    return ToolPage(items=[_shape_of(tool, toolbox, figures) for tool in page], next_cursor=next_cursor)


def _figures_of(member: Membership) -> dict[str, Figures]:
    ended = ToolCall.objects.filter(
        organization_id=member.organization_id, status__in=(CallStatus.SUCCEEDED, CallStatus.FAILED)
    )
    failed = Count("pk", filter=Q(status=CallStatus.FAILED))
    rows = ended.order_by().values_list("tool").annotate(calls=Count("pk"), failures=failed)
    return {tool: Figures(calls=calls, failures=failures) for tool, calls, failures in rows}


def _shape_of(tool: Tool, toolbox: Toolbox, figures: dict[str, Figures]) -> ToolShape:
    return ToolShape(
        name=tool.name,
        display_name=tool.title,
        description=tool.description,
        category=tool.category,
        level=tool.level.value,
        version=tool.version,
        source=SOURCE,
        is_enabled=not {tool.name, tool.id} & toolbox.policy.disabled,
        parameters=tool.schema,
        figures=figures.get(tool.name, Figures(calls=0, failures=0)),
    )
