"""Helpers that create figures in the form in which the sweeper stores them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models.functions import Now
from django.utils import timezone

from agents.employees.models import Employee
from agents.insight.figures import get_today
from agents.insight.models import (
    EmployeeFigures,
    EmployeeUse,
    FiguresHead,
    ToolFigures,
    TotalFigures,
    TotalUse,
)


def count_calls(employee: Employee, tool: str, days_ago: int = 0, **columns: Any) -> None:
    """Create a tool's figures for one day, for the employee and its organization, and the tool's
    total figures."""
    day = get_today() - timedelta(days=days_ago)
    ToolFigures.objects.create(
        organization_id=employee.organization_id, day=day, tool=tool, **columns
    )
    EmployeeFigures.objects.create(employee=employee, day=day, tool=tool, **columns)
    sums = {name: number for name, number in columns.items() if not name.startswith("last_error")}
    TotalFigures.objects.create(tool=tool, currency=f"{days_ago:03}", **sums)


def count_passes(employee: Employee, days_ago: int = 0, **columns: int) -> None:
    """Create the figures about the use of the employee's model on one day."""
    EmployeeUse.objects.create(
        employee=employee, day=get_today() - timedelta(days=days_ago), **columns
    )
    TotalUse.objects.create(currency=f"{days_ago:03}", **columns)


def last_error(
    code: str = "NOT_FOUND", message: str = "There is no such record."
) -> dict[str, Any]:
    """Build the columns of a failure that just happened."""
    return {
        "failed": 1,
        "last_error_code": code,
        "last_error": message,
        "last_error_at": timezone.now(),
    }


def sweep_at(at: datetime | None = None) -> None:
    """Record that the sweeper counted at this time."""
    FiguresHead.objects.create(pk=FiguresHead.ONLY, looked_at=at or Now(), due_at=Now())
