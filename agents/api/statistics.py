"""Statistics of tools and employees: the schemas, and the functions that fill them."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from agents.api.schemas import EmployeeSummary
from agents.insight import figures
from agents.runs.budgets import MICROS


class LatestFailure(BaseModel):
    """The latest failure of a tool; its message has at most 200 characters."""

    code: str
    message: str
    at: datetime


class ToolStatistics(BaseModel):
    """Statistics of a tool in recent days, without calls that were refused, denied or duplicates.

    They are counted in the background, so the last minute may be missing.
    """

    days: int = Field(description="Number of days in UTC, including today.")
    calls: int = Field(description="Calls that succeeded or failed.")
    failures: int
    success_rate: float | None = Field(description="From 0 to 1; null without calls.")
    p50_ms: int | None = Field(description="Approximate median duration.")
    p95_ms: int | None = Field(description="Approximate 95th percentile of the duration.")
    approvals: int = Field(description="Approved cards.")
    denials: int = Field(description="Denied cards.")
    cost: float = Field(
        description="Sum of the costs that its results report, in the organization's currency."
    )
    last_error: LatestFailure | None


class EmployeeToolStatistics(ToolStatistics):
    """Statistics of a tool for one employee."""

    tool: str


class EmployeeStatistics(BaseModel):
    """Statistics of an employee's model and tools in recent days."""

    days: int = Field(description="Number of days in UTC, including today.")
    passes: int
    input_tokens: int
    output_tokens: int
    cost: float = Field(
        description="Cost of the model in the organization's currency; 0 without a known price."
    )
    tools: list[EmployeeToolStatistics]


class EmployeeDetail(EmployeeSummary):
    """A configured AI worker with its statistics."""

    figures: EmployeeStatistics


class ToolDetail(BaseModel):
    """A tool of the catalog.

    Attributes:
        id: name and version.
        source: built in, a plugin, or a source that the organization has connected.
        parameters: JSON schema of the params.
        output: JSON schema of the result's data; null if the tool declares none.
        capabilities, features: requirements on the employee and on the organization's plan.
    """

    id: str
    name: str
    display_name: str
    description: str
    category: str
    level: str
    version: str
    author: str
    source: str
    is_enabled: bool
    has_side_effects: bool
    capabilities: list[str]
    features: list[str]
    parameters: dict[str, Any]
    output: dict[str, Any] | None
    figures: ToolStatistics


def build_tool_statistics(found: figures.Figures) -> ToolStatistics:
    """Build the statistics of one tool."""
    return ToolStatistics.model_validate(_list_values(found))


def load_employee_statistics(employee_id: int) -> EmployeeStatistics:
    """Load the statistics of one employee, with its tools sorted by name."""
    by_tool, used = (
        figures.load_employee_figures(employee_id),
        figures.load_employee_use(employee_id).values(),
    )
    return EmployeeStatistics(
        days=figures.DAYS,
        passes=sum(use.passes for use in used),
        input_tokens=sum(use.input_tokens for use in used),
        output_tokens=sum(use.output_tokens for use in used),
        cost=sum(use.cost_micros for use in used) / MICROS,
        tools=[
            EmployeeToolStatistics.model_validate(_list_values(by_tool[tool]) | {"tool": tool})
            for tool in sorted(by_tool)
        ],
    )


def _list_values(found: figures.Figures) -> dict[str, object]:
    error = found.last_error
    return {
        "days": figures.DAYS,
        "calls": found.calls,
        "failures": found.failed,
        "success_rate": found.success_rate,
        "p50_ms": found.p50_ms,
        "p95_ms": found.p95_ms,
        "approvals": found.approved,
        "denials": found.denied,
        "cost": found.cost_micros / MICROS,
        "last_error": LatestFailure(code=error.code, message=error.message, at=error.at)
        if error
        else None,
    }
