"""Tasks that were handed over: who asked whom, and what the panel of the asking run shows of the other's run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import Count, Q, QuerySet
from django.db.models.fields.json import KT

from agents.employees.toolboxes import toolbox_of
from agents.platform.queries.runs import with_waits
from agents.runs.models import Run, ToolCall

MOST_LINES = 20
LONGEST = 300


@dataclass(frozen=True)
class ChildLine:
    """One call of the other's run in a line: the tool's name for people, its status, and what it reported."""

    title: str
    status: str
    told: str


@dataclass(frozen=True)
class Child:
    """The run of a task that was handed over, as it is now.

    Attributes:
        pending: how many of its cards wait.
        lines: its newest calls, the oldest of these first.
    """

    run: Run
    pending: int
    lines: list[ChildLine] = field(default_factory=list)


def askings_of(runs: Iterable[Run]) -> dict[int, str]:
    """By run, who handed its task to whom: `Dana asked Kim`; asks the database only if there is one."""
    handed = {run.pk: run for run in runs if run.parent_id is not None}
    if not handed:
        return {}
    parents = Run.objects.filter(pk__in={run.parent_id for run in handed.values()})
    names = dict(parents.values_list("pk", "employee__name"))
    return {
        pk: f"{names[run.parent_id]} asked {run.employee.name}"
        for pk, run in handed.items()
        if run.parent_id is not None
    }


def children_of(calls: Iterable[int]) -> dict[int, Child]:
    """By call, the run that it waits for or has waited for; costs two queries, one if there is none."""
    found = _with_cards(Run.objects.filter(parent_call_id__in=list(calls)))
    if not found:
        return {}
    lines = _lines_of([run.pk for run in found])
    return {
        run.parent_call_id: Child(run, run.pending_cards, lines.get(run.pk, []))  # type: ignore[attr-defined]
        for run in found
        if run.parent_call_id is not None
    }


def child_of(run: Run) -> Child | None:
    """The same for one such run; None if its task was not handed over."""
    return children_of([run.parent_call_id]).get(run.parent_call_id) if run.parent_call_id is not None else None


def _with_cards(rows: QuerySet[Run]) -> list[Run]:
    pending = Count("approvals", filter=Q(approvals__status="pending"))
    return list(with_waits(rows).select_related("employee").annotate(pending_cards=pending).order_by("pk"))


def _lines_of(run_ids: list[int]) -> dict[int, list[ChildLine]]:
    """By run, its newest calls without the rest of their results."""
    calls = ToolCall.objects.filter(run_id__in=run_ids).annotate(failure=KT("result__error__message"))
    rows = calls.annotate(said=KT("result__summary")).order_by("-pass_number", "-index")
    lines: dict[int, list[ChildLine]] = {pk: [] for pk in run_ids}
    for pk, owner, tool, status, failure, said in rows.values_list(
        "run_id", "organization_id", "tool", "status", "failure", "said"
    ):
        if len(lines[pk]) < MOST_LINES:
            lines[pk].append(ChildLine(_title_of(owner, tool), status, str(failure or said or "")[:LONGEST]))
    return {pk: found[::-1] for pk, found in lines.items()}


def _title_of(organization_id: int, name: str) -> str:
    tool = toolbox_of(organization_id).get_tool(name)
    return tool.title if tool else name
