"""Figures as the API shows them, with the shapes that hold them."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from agents.api.schemas import EmployeeShape
from agents.employees.budgets import MICROS
from agents.insight import figures


class LastError(BaseModel):
    """The newest failure of a tool; the message has at most 200 characters."""

    code: str
    message: str
    at: datetime


class Figures(BaseModel):
    """How a tool did in the last days; a call that was refused, denied or repeated is none.

    Counted in the background, so the last minute may be missing.
    """

    days: int = Field(description="Of UTC, today included.")
    calls: int = Field(description="Calls that ended: that succeeded or failed.")
    failures: int
    success_rate: float | None = Field(description="From 0 to 1; null without calls.")
    p50_ms: int | None = Field(description="About how long half of them took at most.")
    p95_ms: int | None = Field(description="About how long 95 % of them took at most.")
    approvals: int = Field(description="Cards that were approved.")
    denials: int = Field(description="Cards that were denied.")
    cost: float = Field(description="What its results said they cost, in the organisation's currency.")
    last_error: LastError | None


class FiguresOfTool(Figures):
    """How a tool did for one employee."""

    tool: str


class EmployeeFigures(BaseModel):
    """What an employee's model and tools did in the last days."""

    days: int = Field(description="Of UTC, today included.")
    passes: int
    input_tokens: int
    output_tokens: int
    cost: float = Field(description="Of the model, in the organisation's currency; 0 where no price is known.")
    tools: list[FiguresOfTool]


class WholeEmployee(EmployeeShape):
    """A configured AI worker, and what it did."""

    figures: EmployeeFigures


class ToolShape(BaseModel):
    """A tool.

    Attributes:
        id: name and version.
        source: where it comes from: built in, a plugin, or what the organization has connected.
        parameters: JSON schema of the params.
        output: JSON schema of the result's data; None if the tool promises nothing.
        capabilities, features: what it demands of the employee and of the organization's plan.
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
    figures: Figures


def shape_of(found: figures.Figures) -> Figures:
    """Of one tool."""
    return Figures.model_validate(_values(found))


def shape_of_employee(employee_id: int) -> EmployeeFigures:
    """Of one employee, its tools by name."""
    by_tool, used = figures.of_employee(employee_id), figures.use_of(employee_id).values()
    return EmployeeFigures(
        days=figures.DAYS,
        passes=sum(use.passes for use in used),
        input_tokens=sum(use.input_tokens for use in used),
        output_tokens=sum(use.output_tokens for use in used),
        cost=sum(use.cost_micros for use in used) / MICROS,
        tools=[FiguresOfTool.model_validate(_values(by_tool[tool]) | {"tool": tool}) for tool in sorted(by_tool)],
    )


def _values(found: figures.Figures) -> dict[str, object]:
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
        "last_error": LastError(code=error.code, message=error.message, at=error.at) if error else None,
    }
