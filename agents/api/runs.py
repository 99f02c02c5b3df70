"""Operations on runs: start, read, instruct, continue and cancel them."""

from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from ninja import Body, Query, Router
from ninja.responses import Status

from agents.accounts.models import Membership
from agents.api.auth import get_member
from agents.api.card_schemas import CardMark
from agents.api.documentation import document_problems
from agents.api.lookup import PathId
from agents.api.paging import start_at_cursor, take_filtered, take_page
from agents.api.schemas import (
    ContinueRequest,
    CursorPage,
    EventDetail,
    EventFilter,
    NewMessage,
    NewRun,
    RunDetail,
    RunFilter,
    RunSummary,
    TokenUsage,
)
from agents.api.tool_calls import summarize_call
from agents.approvals.warnings.card_marks import load_call_marks
from agents.platform.row_ids import get_row
from agents.runs import actions
from agents.runs.budgets import compute_run_cost, to_currency
from agents.runs.models import UNFINISHED, Approval, Event, Run
from agents.web.lists.run_pages import filter_by_status
from agents.web.panel.event_marks import load_event_marks

router = Router(tags=["Runs"])

SAME_AS_EMPLOYEE = ContinueRequest(max_passes=None)


class RunList(CursorPage[RunSummary]):
    """A page of the list of runs."""


@router.post(
    "",
    response={201: RunDetail, 200: RunDetail},
    summary="Start a run",
    openapi_extra=document_problems(403, 404),
)
def start_run(request: HttpRequest, payload: NewRun) -> Status[RunDetail]:
    """Assign a task to an employee (201). Sending the same `client_request_id` again returns the
    same run (200)."""
    submission = actions.Submission(
        employee_id=payload.employee_id,
        task=payload.task,
        mode=payload.mode,
        client_request_id=payload.client_request_id,
    )
    member = get_member(request)
    run, created = actions.submit(member, submission)
    return Status(201 if created else 200, _load_detail(member, run.pk))


@router.get("", response=RunList, summary="List runs")
def list_runs(request: HttpRequest, filters: Query[RunFilter]) -> RunList:
    """List the organization's runs, newest first."""
    member = get_member(request)
    rows = _select_by_index(member, filters)
    if filters.q or (filters.status and filters.employee_id is not None):
        page, next_cursor = take_filtered(rows, lambda some: _filter_runs(some, filters), filters)
    else:
        page, next_cursor = take_page(start_at_cursor(rows, filters), filters)
    return RunList(items=[RunSummary(**_summarize(run)) for run in page], next_cursor=next_cursor)


@router.get(
    "/{run_id}", response=RunDetail, summary="Show a run", openapi_extra=document_problems(404)
)
def show_run(request: HttpRequest, run_id: PathId) -> RunDetail:
    """Return one run with its tool calls, in the order in which the model requested them."""
    return _load_detail(get_member(request), run_id)


@router.get(
    "/{run_id}/events",
    response=list[EventDetail],
    summary="Read events",
    openapi_extra=document_problems(404),
)
def list_events(
    request: HttpRequest, run_id: PathId, filters: Query[EventFilter]
) -> list[EventDetail]:
    """List the events of a run after a number, without gaps: the lines of its activity panel."""
    run = get_row(_select_runs(get_member(request)), run_id, "run")
    rows = list(Event.objects.filter(run=run, seq__gt=filters.after).order_by("seq"))
    marks = load_event_marks(rows)
    return [
        EventDetail(
            seq=row.seq,
            type=row.type,
            payload=row.payload,
            marks=[CardMark(**mark.as_json()) for mark in marks.get(row.pk, ())],
            created_at=row.created_at,
        )
        for row in rows
    ]


@router.post(
    "/{run_id}/cancel",
    response=RunDetail,
    summary="Cancel a run",
    openapi_extra=document_problems(403, 404, 409),
)
def cancel_run(request: HttpRequest, run_id: PathId) -> RunDetail:
    """Cancel the run: no new call starts, and pending cards are closed. A call already running
    finishes."""
    member = get_member(request)
    actions.cancel(member, run_id)
    return _load_detail(member, run_id)


@router.post(
    "/{run_id}/messages",
    response=RunDetail,
    summary="Send a message",
    openapi_extra=document_problems(403, 404, 409),
)
def add_message(request: HttpRequest, run_id: PathId, payload: NewMessage) -> RunDetail:
    """Send a message to the employee; a run that has ended resumes."""
    member = get_member(request)
    actions.add_message(member, run_id, payload.text, payload.client_message_id)
    return _load_detail(member, run_id)


@router.post(
    "/{run_id}/continue",
    response=RunDetail,
    summary="Allow more passes",
    openapi_extra=document_problems(403, 404, 409),
)
def continue_run(
    request: HttpRequest, run_id: PathId, payload: Body[ContinueRequest] = SAME_AS_EMPLOYEE
) -> RunDetail:
    """Resume a run that has ended, with more passes."""
    member = get_member(request)
    actions.continue_run(member, run_id, payload.max_passes, payload.client_message_id)
    return _load_detail(member, run_id)


def _select_runs(member: Membership) -> QuerySet[Run]:
    rows = Run.objects.filter(organization_id=member.organization_id).select_related(
        "employee__provider"
    )
    return rows.defer("employee__instructions", "employee__provider__api_key")


def _select_by_index(member: Membership, filters: RunFilter) -> QuerySet[Run]:
    """Select runs, newest first, from a single index: the runs with a status, those of an employee,
    or all runs.

    Few runs have not ended, so the status of an unfinished run narrows the search better than the
    employee.
    """
    rows = _select_runs(member).order_by("-pk")
    if filters.status and (filters.employee_id is None or filters.status in UNFINISHED):
        return filter_by_status(rows, filters.status)
    return rows if filters.employee_id is None else rows.filter(employee_id=filters.employee_id)


def _filter_runs(rows: QuerySet[Run], filters: RunFilter) -> QuerySet[Run]:
    if filters.status:
        rows = rows.filter(status=filters.status)
    if filters.employee_id is not None:
        rows = rows.filter(employee_id=filters.employee_id)
    if filters.q:
        rows = rows.filter(Q(title__icontains=filters.q) | Q(task__icontains=filters.q))
    return rows


def _load_detail(member: Membership, run_id: int) -> RunDetail:
    """Load the run with its calls; the number of queries does not depend on the number of calls."""
    run = get_row(_select_runs(member), run_id, "run")
    calls = list(run.tool_calls.order_by("pass_number", "index"))
    cards = dict(
        Approval.objects.filter(run=run).order_by("sequence").values_list("tool_call_id", "pk")
    )
    marks = load_call_marks(calls)
    return RunDetail(
        **_summarize(run),
        tool_calls=[summarize_call(call, cards.get(call.pk), marks[call.pk]) for call in calls],
    )


def _summarize(run: Run) -> dict[str, Any]:
    return {
        "id": str(run.pk),
        "status": run.status,
        "exit_reason": run.exit_reason,
        "employee_id": str(run.employee_id),
        "title": str(run),
        "task": run.task,
        "mode": run.mode,
        "origin": run.origin,
        "correlation_id": run.correlation,
        "parent_run_id": None if run.parent_id is None else str(run.parent_id),
        "answer": run.answer,
        "problem": run.problem,
        "pass_number": run.pass_number,
        "max_passes": run.max_passes,
        "usage": TokenUsage(
            input_tokens=run.input_tokens,
            output_tokens=run.output_tokens,
            cost=to_currency(compute_run_cost(run)),
        ),
        "usage_estimated": run.estimated_tokens > 0,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
    }
