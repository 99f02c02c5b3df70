"""What an employee did in the last 30 days: its calls by tool, what its model used, and charts of both."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agents.employees.models import Employee
from agents.employees.toolboxes import load_toolbox
from agents.insight import figures
from agents.web.charts.charts import Chart, chart_of_calls, chart_of_cost


@dataclass(frozen=True)
class ToolRow:
    """How one tool did; `title` is its name if it is not installed any more."""

    name: str
    title: str
    figures: figures.Figures


@dataclass(frozen=True)
class Did:
    """Everything that the section about figures shows.

    Attributes:
        tools: those that were called most come first.
        use: of all passes.
        charts: calls; and cost, where any is known.
    """

    tools: list[ToolRow]
    whole: figures.Figures
    use: figures.ModelUse
    charts: list[Chart]
    currency: str
    counted_at: datetime | None
    days: int = figures.DAYS


def did_of(employee: Employee, currency: str) -> Did:
    """What the employee, of an organization with this currency, did."""
    by_tool, used = figures.load_employee_figures(employee.pk), figures.load_employee_use(employee.pk)
    whole = figures.combine_figures(by_tool.values())
    tools = [ToolRow(name, _title_of(employee.organization_id, name), one) for name, one in by_tool.items()]
    use = figures.ModelUse(*map(sum, zip(*used.values(), strict=True))) if used else figures.ModelUse()
    charts = [chart_of_calls("calls-made", whole.days)]
    if use.cost_micros:
        charts.append(chart_of_cost("cost", used, currency))
    tools.sort(key=lambda row: (-row.figures.calls, row.name))
    return Did(tools, whole, use, charts, currency, figures.load_counted_at())


def _title_of(organization_id: int, name: str) -> str:
    tool = load_toolbox(organization_id).get_tool(name)
    return tool.title if tool else name
