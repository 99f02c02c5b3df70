"""Check approvals under approval rules again, using the rules and votes that were recorded with
them."""

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
    """An approval with its ruling, as a database row; JSON columns are unparsed text."""

    call_id: int
    tool: str
    level: str
    employee_id: int
    params: str
    judgment: str | None
    ruling: str


@dataclass(frozen=True)
class CheckedApproval:
    """The result of checking a recorded approval again.

    Attributes:
        problem: the difference from the record, or the reason why the approval would not be
            sufficient; None if there is no problem.
    """

    problem: str | None


def read_ruled(chosen: CallFilter) -> Iterator[RuledApproval]:
    """Yield those approvals of these calls that have a recorded ruling, read in batches."""
    cards = Approval.objects.filter(ruling__isnull=False, tool_call__in=chosen.find().order_by())
    texts = (Cast(name, TextField()) for name in ("params", "tool_call__judgment", "ruling"))
    columns = ("tool_call_id", "tool_call__tool", "level", "run__employee_id")
    for row in cards.order_by("pk").values_list(*columns, *texts).iterator(ROWS_AT_ONCE):
        yield RuledApproval._make(row)


def check_ruling(row: RuledApproval) -> CheckedApproval | None:
    """Check an approval again; return None if the values of its call were erased."""
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
