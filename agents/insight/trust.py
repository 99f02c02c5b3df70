"""Figures about trust in an employee: the decisions about its cards, and the outcomes of approved
calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from agents.accounts.models import Organization
from agents.approvals.decisions import DENY_REASONS
from agents.employees.models import Employee
from agents.insight.decision_counts import TIMES, compute_median, load_sums
from agents.insight.decision_spans import (
    APPROVED,
    DENIED,
    EDITED,
    NO_REASON,
    OWN_WORDS,
    TOOLS,
    Data,
    merge,
    name_employee,
)
from agents.insight.figures import DAYS
from agents.runs.models import Approval, ApprovalStatus, CallStatus


class ToolTrust(NamedTuple):
    """The decisions about the cards of one tool, and the approved calls that started.

    Attributes:
        approved, edited, denied: the number of cards with this outcome.
        started: the number of calls that started after an approval.
        failed: the number of started calls that failed.
        unknown: the number of started calls whose outcome is unknown.
        median_ms: the median time that a decision took.
    """

    tool: str
    approved: int
    edited: int
    denied: int
    started: int
    failed: int
    unknown: int
    median_ms: int


@dataclass(frozen=True)
class EmployeeTrust:
    """The decisions about an employee's cards in the last 30 days.

    Attributes:
        tools: the figures of each tool, sorted by name.
        reasons: the number of denials by reason: the reasons that cards offer, then all others.
            Reasons without denials are left out.
    """

    tools: list[ToolTrust]
    reasons: list[tuple[str, int]]
    days: int = DAYS


def load_employee_trust(employee: Employee, organization: Organization) -> EmployeeTrust:
    """Load the decisions about the cards of one of the organization's employees."""
    total: Data = {}
    for data in load_sums(organization.pk, DAYS, name_employee(employee.pk)).values():
        merge(total, data)
    tools = total.get(TOOLS, {})
    ends = _load_open_ends([pk for data in tools.values() for pk in data.get("open", ())])
    built = [_build_tool(tool, data, ends) for tool, data in sorted(tools.items())]
    return EmployeeTrust(built, _order_reasons(total.get("reasons", {})))


def _order_reasons(counted: Any) -> list[tuple[str, int]]:
    return [
        (name, counted[name]) for name in (*DENY_REASONS, OWN_WORDS, NO_REASON) if counted.get(name)
    ]


def _load_open_ends(ids: Sequence[int]) -> dict[int, str]:
    """Load, by card id, the current states of the started calls that had not ended when their cards
    were counted."""
    started = (
        Approval.objects.filter(pk__in=ids, status=ApprovalStatus.CONSUMED)
        if ids
        else Approval.objects.none()
    )
    return dict(started.values_list("pk", "tool_call__status"))


def _build_tool(tool: str, data: Data, ends: dict[int, str]) -> ToolTrust:
    found = Counter(ends[pk] for pk in data.get("open", ()) if pk in ends)
    return ToolTrust(
        tool=tool,
        approved=data.get(APPROVED, 0),
        edited=data.get(EDITED, 0),
        denied=data.get(DENIED, 0),
        started=data.get("started", 0) + found.total(),
        failed=data.get("failed", 0) + found[CallStatus.FAILED],
        unknown=found[CallStatus.OUTCOME_UNKNOWN],
        median_ms=compute_median(data[TIMES]),
    )
