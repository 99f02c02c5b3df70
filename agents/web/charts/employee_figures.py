"""An employee's figures for the last 30 days: calls by tool, model usage, and charts of both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from agents.employees.models import Employee
from agents.employees.toolboxes import load_toolbox
from agents.insight import figures
from agents.web.charts.bar_charts import Chart, build_calls_chart, build_cost_chart
from tools.contract import name_tool


class _AboutTool(Protocol):
    """A row about a tool."""

    @property
    def tool(self) -> str: ...


RowOfTool = TypeVar("RowOfTool", bound=_AboutTool)


@dataclass(frozen=True)
class NamedTool:
    """A tool that has figures. If it is not installed, its title is its name, which a model may
    have invented."""

    name: str
    title: str
    is_installed: bool


@dataclass(frozen=True)
class ToolRow:
    """The figures of one tool."""

    tool: NamedTool
    figures: figures.Figures


@dataclass(frozen=True)
class EmployeeFiguresSection:
    """The section of an employee's page that shows its figures.

    Attributes:
        tools: the figures of each tool; the tool with the most calls comes first.
        total: the calls of all tools.
        use: the model's usage in all passes.
        charts: the calls, and the cost if it is known.
    """

    tools: list[ToolRow]
    total: figures.Figures
    use: figures.ModelUse
    charts: list[Chart]
    currency: str
    counted_at: datetime | None
    days: int = figures.DAYS


def load_figures_section(employee: Employee, currency: str) -> EmployeeFiguresSection:
    """Load the employee's figures, with costs in this currency."""
    by_tool, daily_use = (
        figures.load_employee_figures(employee.pk),
        figures.load_employee_use(employee.pk),
    )
    total = figures.combine_figures(by_tool.values())
    tools = [
        ToolRow(_name_tool(employee.organization_id, name), each) for name, each in by_tool.items()
    ]
    use = (
        figures.ModelUse(*map(sum, zip(*daily_use.values(), strict=True)))
        if daily_use
        else figures.ModelUse()
    )
    charts = [build_calls_chart("calls-made", total.days)]
    if use.cost_micros:
        charts.append(build_cost_chart("cost", daily_use, currency))
    tools.sort(key=lambda row: (-row.figures.calls, row.tool.name))
    return EmployeeFiguresSection(tools, total, use, charts, currency, figures.load_counted_at())


def sort_by_title(
    organization_id: int, rows: Iterable[RowOfTool]
) -> list[tuple[NamedTool, RowOfTool]]:
    """Sort rows about tools by the tools' titles, and return each row with its tool."""
    named = [(_name_tool(organization_id, row.tool), row) for row in rows]
    return sorted(named, key=lambda pair: (pair[0].title.casefold(), pair[0].name))


def _name_tool(organization_id: int, name: str) -> NamedTool:
    tool = load_toolbox(organization_id).get_tool(name)
    return NamedTool(name, name_tool(tool, name), is_installed=tool is not None)
