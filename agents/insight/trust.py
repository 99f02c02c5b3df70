"""Figures of trust in an employee: the decisions about its cards, and the outcomes of approved calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count

from agents.accounts.models import Organization
from agents.approvals.decisions import DENY_REASONS
from agents.approvals.models import ApprovalStatus
from agents.employees.models import Employee
from agents.insight.figures import DAYS
from agents.insight.oversight import get_period_start, select_decisions, select_timed_decisions
from agents.platform.queries.decision_times import ToolTrust, fetch_tool_trust

OWN_WORDS, NO_REASON = "Other reasons", "No reason"


@dataclass(frozen=True)
class EmployeeTrust:
    """The decisions about an employee's cards in the last 30 days.

    Attributes:
        tools: the figures of each tool, sorted by name.
        reasons: the number of denials for each reason that cards offer, then for others; without zeros.
    """

    tools: list[ToolTrust]
    reasons: list[tuple[str, int]]
    days: int = DAYS


def load_employee_trust(employee: Employee, organization: Organization) -> EmployeeTrust:
    """Load the decisions about the cards of one of the organization's employees."""
    since = get_period_start(DAYS)
    tools = fetch_tool_trust(select_timed_decisions(organization, since), since, employee.pk)
    denied = select_decisions(organization.pk, since).filter(status=ApprovalStatus.DENIED, run__employee_id=employee.pk)
    has_denials = any(tool.denied for tool in tools)
    reasons = denied.values_list("reason").annotate(many=Count("pk")) if has_denials else []
    return EmployeeTrust(tools, count_reasons(reasons))


def count_reasons(denials: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Count denials by the reasons that cards offer; a person's own words count as other reasons."""
    counted: Counter[str] = Counter()
    for reason, many in denials:
        counted[_classify_reason(reason)] += many
    return [(name, counted[name]) for name in (*DENY_REASONS, OWN_WORDS, NO_REASON) if counted[name]]


def _classify_reason(reason: str) -> str:
    if not reason.strip():
        return NO_REASON
    return next((each for each in DENY_REASONS if reason == each or reason.startswith(f"{each}. ")), OWN_WORDS)
