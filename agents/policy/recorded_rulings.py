"""Approvals under approval rules, judged again by the rules and votes recorded with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import TextField
from django.db.models.functions import Cast

from agents.policy.recorded_calls import ROWS_AT_ONCE, CallFilter
from agents.runs.models import Approval
from tools.contract import Level
from tools.toolbox.rulings import Ruling


class RuledApproval(NamedTuple):
    """An approval with its ruling; JSON is text."""

    call_id: int
    tool: str
    level: str
    employee_id: int
    params: str
    judgment: str | None
    ruling: str


@dataclass(frozen=True)
class CheckedApproval:
    """An approval that was judged again.

    Attributes:
        problem: the difference from its record, or the reason why it would not suffice; None
            without one.
    """

    problem: str | None


def read_ruled(chosen: CallFilter) -> Iterator[RuledApproval]:
    """Read the approvals of these calls with a recorded ruling, a batch at a time."""
    cards = Approval.objects.filter(ruling__isnull=False, tool_call__in=chosen.find().order_by())
    texts = (Cast(name, TextField()) for name in ("params", "tool_call__judgment", "ruling"))
    columns = ("tool_call_id", "tool_call__tool", "level", "run__employee_id")
    for row in cards.order_by("pk").values_list(*columns, *texts).iterator(ROWS_AT_ONCE):
        yield RuledApproval._make(row)


def check_ruling(row: RuledApproval) -> CheckedApproval | None:
    """Judge an approval again; return None if its values were erased."""
    try:
        if json.loads(row.judgment or "{}").get("erased"):
            return None
        ruling = Ruling.from_json(json.loads(row.ruling))
        objection = ruling.find_objection(
            row.tool, Level(row.level), row.employee_id, json.loads(row.params)
        )
        return CheckedApproval(None if objection is None else objection.why)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"the rules and votes of its approval cannot be read: {error!r}"
        return CheckedApproval(problem)
