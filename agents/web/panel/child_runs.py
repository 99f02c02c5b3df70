"""Delegated tasks: the two employees of each task, and the child run as the parent run's panel
shows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import Count, Q, QuerySet, Window
from django.db.models.fields.json import KT
from django.db.models.functions import RowNumber

from agents.employees.toolboxes import load_toolbox
from agents.runs.models import Run, ToolCall
from agents.runs.queries.runs import annotate_waits
from tools.contract import name_tool

MAX_CALLS = 20
MAX_REPORT_LENGTH = 300


@dataclass(frozen=True)
class ChildCall:
    """One call of the child run; `report` is the summary or error of its result."""

    title: str
    status: str
    report: str


@dataclass(frozen=True)
class ChildRun:
    """The run of a delegated task in its current state.

    Attributes:
        pending: the number of its pending cards.
        calls: its newest calls, oldest first.
    """

    run: Run
    pending: int
    calls: list[ChildCall] = field(default_factory=list)


def describe_delegations(runs: Iterable[Run]) -> dict[int, str]:
    """Describe each delegation, such as `Dana asked Kim`, by the id of the delegated run."""
    delegated = {run.pk: run for run in runs if run.parent_id is not None}
    if not delegated:
        return {}
    parents = Run.objects.filter(pk__in={run.parent_id for run in delegated.values()})
    names = dict(parents.values_list("pk", "employee__name"))
    return {
        pk: f"{names[run.parent_id]} asked {run.employee.name}"
        for pk, run in delegated.items()
        if run.parent_id is not None
    }


def load_child_runs(call_ids: Iterable[int]) -> dict[int, ChildRun]:
    """Load the runs that these calls wait or waited for, by call, with at most two queries."""
    runs = _load_with_card_counts(Run.objects.filter(parent_call_id__in=list(call_ids)))
    if not runs:
        return {}
    calls = _load_newest_calls([run.pk for run in runs])
    return {
        run.parent_call_id: ChildRun(run, run.pending_cards, calls.get(run.pk, []))  # type: ignore[attr-defined]
        for run in runs
        if run.parent_call_id is not None
    }


def load_child_run(run: Run) -> ChildRun | None:
    """Load this run as a child run; None if its task was not delegated."""
    return (
        load_child_runs([run.parent_call_id]).get(run.parent_call_id)
        if run.parent_call_id is not None
        else None
    )


def _load_with_card_counts(rows: QuerySet[Run]) -> list[Run]:
    pending = Count("approvals", filter=Q(approvals__status="pending"))
    return list(
        annotate_waits(rows)
        .select_related("employee")
        .annotate(pending_cards=pending)
        .order_by("pk")
    )


def _load_newest_calls(run_ids: list[int]) -> dict[int, list[ChildCall]]:
    """Load the newest calls of each run, without the data of their results."""
    place = Window(RowNumber(), partition_by="run_id", order_by=("-pass_number", "-index"))
    newest = (
        ToolCall.objects.filter(run_id__in=run_ids)
        .annotate(place=place)
        .filter(place__lte=MAX_CALLS)
    )
    rows = ToolCall.objects.filter(pk__in=newest.values("pk")).order_by("pass_number", "index")
    rows = rows.annotate(failure=KT("result__error__message"), summary=KT("result__summary"))
    calls: dict[int, list[ChildCall]] = {pk: [] for pk in run_ids}
    for pk, organization_id, name, version, status, failure, summary in rows.values_list(
        "run_id", "organization_id", "tool", "version", "status", "failure", "summary"
    ):
        tool = load_toolbox(organization_id).get_called_tool(name, version)
        report = str(failure or summary or "")[:MAX_REPORT_LENGTH]
        calls[pk].append(ChildCall(name_tool(tool, name), status, report))
    return calls
