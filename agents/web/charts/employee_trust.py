"""The section of an employee's page that shows how much people trust the employee: decisions about
its cards, and the reasons for denials."""

from __future__ import annotations

from dataclasses import dataclass

from agents.accounts.models import Organization
from agents.employees.models import Employee
from agents.insight.trust import ToolTrust, load_employee_trust
from agents.web.charts.employee_figures import NamedTool, sort_by_title


@dataclass(frozen=True)
class TrustSection:
    """The decisions about an employee's cards, by tool, and the reasons for denials."""

    tools: list[tuple[NamedTool, ToolTrust]]
    reasons: list[tuple[str, int]]
    days: int


def build_trust_section(employee: Employee, organization: Organization) -> TrustSection:
    """Build the section for an employee of this organization, with tools in alphabetical order."""
    trust = load_employee_trust(employee, organization)
    tools = sort_by_title(organization.pk, trust.tools)
    return TrustSection(tools, trust.reasons, trust.days)
