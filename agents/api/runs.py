"""Runs: start one, watch it, speak to it, stop it."""

from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from ninja import Body, Query, Router
from ninja.responses import Status

from agents.accounts.models import Membership
from agents.api.schemas import (
    EventFilter,
    EventShape,
    MorePasses,
    NewMessage,
    NewRun,
    Page,
    RunFilter,
    RunShape,
    RunSummary,
    Usage,
)
from agents.approvals.models import Approval
from agents.employees.budgets import in_units, known_cost
from agents.runs import actions
from agents.runs.models import Event, Run

from .auth import member_of
from .documentation import refusals
from .lookup import PathId, found
from .paging import newest_first
from .tool_calls import call_shape

router = Router(tags=["Runs"])

AS_MANY = MorePasses(max_passes=None)


class RunPage(Page[RunSummary]):
    """A part of the list of runs."""


@router.post("", response={201: RunShape, 200: RunShape}, summary="Start a run", openapi_extra=refusals(403, 404))
def start_run(request: HttpRequest, payload: NewRun) -> Status[RunShape]:
    """Hands a task to an employee: 201. The same `client_request_id` again answers 200 and the same run."""
    submission = actions.Submission(
        employee_id=payload.employee_id,
        task=payload.task,
        mode=payload.mode,
        client_request_id=payload.client_request_id,
    )
    member = member_of(request)
    run, created = actions.submit(member, submission)
    return Status(201 if created else 200, _shown(member, run.pk))


@router.get("", response=RunPage, summary="List runs")
def list_runs(request: HttpRequest, filters: Query[RunFilter]) -> RunPage:
    """The organisation's runs, newest first."""
    page, next_cursor = newest_first(_matching(member_of(request), filters), filters)
    return RunPage(items=[RunSummary(**_summary_of(run)) for run in page], next_cursor=next_cursor)


@router.get("/{run_id}", response=RunShape, summary="Show a run", openapi_extra=refusals(404))
def show_run(request: HttpRequest, run_id: PathId) -> RunShape:
    """One run with its tool calls, in the order in which the model asked for them."""
    return _shown(member_of(request), run_id)


@router.get("/{run_id}/events", response=list[EventShape], summary="Read events", openapi_extra=refusals(404))
def list_events(request: HttpRequest, run_id: PathId, filters: Query[EventFilter]) -> list[EventShape]:
    """The lines of the activity panel after a number, without gaps."""
    run = found(_runs_of(member_of(request)), run_id, "run")
    rows = Event.objects.filter(run=run, seq__gt=filters.after).order_by("seq")
    return [EventShape(seq=row.seq, type=row.type, payload=row.payload, created_at=row.created_at) for row in rows]


@router.post("/{run_id}/cancel", response=RunShape, summary="Cancel a run", openapi_extra=refusals(403, 404, 409))
def cancel_run(request: HttpRequest, run_id: PathId) -> RunShape:
    """Starts no new call and closes open cards; what executes right now ends by itself."""
    member = member_of(request)
    actions.cancel(member, run_id)
    return _shown(member, run_id)


@router.post(
    "/{run_id}/messages", response=RunShape, summary="Add an instruction", openapi_extra=refusals(403, 404, 409)
)
def add_message(request: HttpRequest, run_id: PathId, payload: NewMessage) -> RunShape:
    """Says something to the employee; a run that has ended takes up its work again."""
    member = member_of(request)
    actions.add_message(member, run_id, payload.text)
    return _shown(member, run_id)


@router.post(
    "/{run_id}/continue", response=RunShape, summary="Allow more passes", openapi_extra=refusals(403, 404, 409)
)
def continue_run(request: HttpRequest, run_id: PathId, payload: Body[MorePasses] = AS_MANY) -> RunShape:
    """Lets a run that has ended go on."""
    member = member_of(request)
    actions.continue_run(member, run_id, payload.max_passes)
    return _shown(member, run_id)


def _runs_of(member: Membership) -> QuerySet[Run]:
    rows = Run.objects.filter(organization_id=member.organization_id).select_related("employee__provider")
    return rows.defer("employee__instructions", "employee__provider__script", "employee__provider__api_key")


def _matching(member: Membership, filters: RunFilter) -> QuerySet[Run]:
    rows = _runs_of(member)
    if filters.status:
        rows = rows.filter(status=filters.status)
    if filters.employee_id is not None:
        rows = rows.filter(employee_id=filters.employee_id)
    if filters.q:
        rows = rows.filter(Q(title__icontains=filters.q) | Q(task__icontains=filters.q))
    return rows


def _shown(member: Membership, run_id: int) -> RunShape:
    """The run as it stands in the database, in three queries however many calls it has."""
    run = found(_runs_of(member), run_id, "run")
    calls = list(run.tool_calls.order_by("pass_number", "index"))
    cards = dict(Approval.objects.filter(run=run).order_by("sequence").values_list("tool_call_id", "pk"))
    return RunShape(**_summary_of(run), tool_calls=[call_shape(call, cards.get(call.pk)) for call in calls])


def _summary_of(run: Run) -> dict[str, Any]:
    return {
        "id": str(run.pk),
        "status": run.status,
        "exit_reason": run.exit_reason,
        "employee_id": str(run.employee_id),
        "title": str(run),
        "task": run.task,
        "mode": run.mode,
        "origin": run.origin,
        "parent_run_id": None if run.parent_id is None else str(run.parent_id),
        "answer": run.answer,
        "problem": run.problem,
        "pass_number": run.pass_number,
        "max_passes": run.max_passes,
        "usage": Usage(input_tokens=run.input_tokens, output_tokens=run.output_tokens, cost=in_units(known_cost(run))),
        "usage_estimated": run.estimated_tokens > 0,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
    }
