"""The list of runs, and the page of one run with its live activity panel."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.csrf import get_token
from django.shortcuts import redirect
from django.utils.safestring import SafeString

from agents.accounts.models import Membership
from agents.employees.models import Employee
from agents.notices.following import is_following
from agents.platform.refusals import Conflict, Invalid
from agents.platform.row_ids import get_row, parse_row_id_or_none
from agents.runs import actions
from agents.runs.descriptions import CALL_EVENTS, describe
from agents.runs.models import Event, EventType, Origin, Run, RunStatus
from agents.runs.queries.runs import annotate_activity
from agents.triggers.receiving import find_received_message
from agents.web.lists.run_pages import MAX_SCANNED, RunListFilter, load_run_page
from agents.web.panel.json_html import render_data
from agents.web.panel.line_facts import RUN_RELATIONS, PageContext
from agents.web.panel.lines import describe_problem, is_unknown_task, render_lines
from agents.web.panel.run_state import build_state
from agents.web.panel.slots import fold_events, name_slot
from agents.web.panel.timeline import load_timeline
from agents.web.views.pages import member_view, render_page
from tools.contract.outside_text import cut_middle

MAX_LINES = 300
MAX_ROWS = 100
MESSAGE_NOTES = {
    RunStatus.QUEUED.value: "{name} reads this at the beginning of the next pass.",
    RunStatus.RUNNING.value: "{name} reads this at the beginning of the next pass. Running calls are not interrupted.",
    RunStatus.WAITING.value: "{name} reads this after all approvals in this run are decided.",
    RunStatus.NEEDS_ATTENTION.value: "{name} reads this once the unknown outcome is resolved.",
    RunStatus.SUCCEEDED.value: "Sending this resumes the run.",
    RunStatus.FAILED.value: "Sending this resumes the run.",
}
"""The note below the message form, by the run's status."""


@member_view("GET")
def run_list(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Show runs, newest first, filtered by status, employee and text; `?before=` is the id of the
    last run examined."""
    status = request.GET.get("status", "")
    filters = RunListFilter(
        status=status if status in RunStatus.values else "",
        employee_id=parse_row_id_or_none(request.GET.get("employee", "")),
        text=request.GET.get("q", "").strip().replace("\0", "")[:200],
        before=parse_row_id_or_none(request.GET.get("before", "")),
    )
    page = load_run_page(member.organization_id, filters)
    query = request.GET.copy()
    query["before"] = str(page.next_before or "")
    context = {
        "runs": page.runs,
        "scanned_to": page.scanned_to,
        "max_scanned": f"{MAX_SCANNED:,}",
        "next_query": query.urlencode() if page.next_before else "",
        "statuses": RunStatus.choices,
        "employees": Employee.objects.filter(organization_id=member.organization_id).values_list(
            "pk", "name"
        ),
        "is_filtered": bool(filters.status or filters.text or filters.employee_id is not None),
        "is_older": filters.before is not None,
        "chosen": request.GET,
    }
    return render_page(request, member, "runs/list.html", context)


@member_view("GET")
def run_page(request: HttpRequest, member: Membership, run_id: int) -> HttpResponseBase:
    """Show one run with its newest 300 lines, live.

    `?before=SEQ` shows the 300 lines before that event; `?call=ID` shows older lines only if the
    newest lines lack the call.
    """
    before = parse_row_id_or_none(request.GET.get("before", ""))
    call_id = parse_row_id_or_none(request.GET.get("call", ""))
    if call_id is not None:
        before = _find_page_of_call(_load_run(member, run_id), call_id)
    return render_page(
        request, member, "runs/run.html", _build_context(request, member, run_id, before)
    )


def _build_context(
    request: HttpRequest, member: Membership, run_id: int, before: int | None = None
) -> dict[str, Any]:
    run = _load_run(member, run_id)
    is_live = before is None
    events = _load_events(run, before)
    shown = fold_events(events)
    end = _find_last_end(shown) if is_live else None
    lines = render_lines(
        run.pk, shown, run, PageContext(get_token(request), member, end.seq if end else 0)
    )
    first = events[0].seq if events else 1
    return {
        "run": run,
        "lines": [line for line in lines if line.html],
        "end": end,
        "end_description": describe(end) if end else None,
        "is_unknown_task": end is not None and is_unknown_task(end),
        "problem": describe_problem(end, run) if end else "",
        "max_text": actions.MAX_TEXT,
        "shows_task": run.task != cut_middle(run.title),
        "parts": build_state(run).parts,
        "timeline": load_timeline(run.pk),
        "after": events[-1].seq if events else 0,
        "earlier": first if first > 1 else None,
        "is_live": is_live,
        "is_followed": not run.has_ended and is_following(member, run),
        "message_notes": {
            status: note.format(name=run.employee.name) for status, note in MESSAGE_NOTES.items()
        },
        "manual_result": _render_manual_result(run) if is_live else "",
        "outside_message": _render_message(run),
        "place": "runs",
        "refusal": None,
        "typed": {"text": "", "max_passes": ""},
    }


def _render_manual_result(run: Run) -> SafeString | str:
    """Render the result data of a manual call; empty for other runs."""
    if run.origin != Origin.MANUAL or not run.has_ended:
        return ""
    result = run.tool_calls.values_list("result", flat=True).first() or {}
    data = result.get("data")
    return render_data(data, MAX_ROWS) if data not in (None, {}, []) else ""


def _render_message(run: Run) -> SafeString | str:
    """Render the message of a trigger that started the run; empty for other runs."""
    message = find_received_message(run)
    return "" if message is None else render_data(message, MAX_ROWS)


@member_view("POST", page="run")
def cancel(_request: HttpRequest, member: Membership, run_id: int) -> HttpResponseBase:
    """Cancel the run."""
    actions.cancel(member, run_id)
    return redirect("run", run_id)


@member_view("POST", page="run")
def add_message(request: HttpRequest, member: Membership, run_id: int) -> HttpResponseBase:
    """Send the employee a message; a finished run resumes."""
    text = request.POST.get("text", "").replace("\r\n", "\n").strip()
    try:
        if not text:
            raise Invalid("text", "Enter a message.")
        actions.add_typed_message(member, run_id, text)
    except (Invalid, Conflict) as refusal:
        return _render_refused(request, member, run_id, refusal)
    return redirect("run", run_id)


@member_view("POST", page="run")
def continue_run(request: HttpRequest, member: Membership, run_id: int) -> HttpResponseBase:
    """Continue the run with more passes."""
    passes = request.POST.get("max_passes", "").strip()
    try:
        actions.continue_run(member, run_id, _parse_passes(passes) if passes else None)
    except (Invalid, Conflict) as refusal:
        return _render_refused(request, member, run_id, refusal)
    return redirect("run", run_id)


def _parse_passes(text: str) -> int:
    """Parse the number of passes.

    Raises:
        Invalid: the text is not a number within the limit.
    """
    passes = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
    if not 1 <= passes <= actions.MAX_PASSES:
        raise Invalid(
            "max_passes",
            f"Enter a number of passes from 1 to {actions.MAX_PASSES}; {text[:40]!r} is not one.",
        )
    return passes


def _render_refused(
    request: HttpRequest, member: Membership, run_id: int, refusal: Invalid | Conflict
) -> HttpResponse:
    """Show the run with the refusal and the values that the person typed."""
    typed = {"text": request.POST.get("text", ""), "max_passes": request.POST.get("max_passes", "")}
    context = _build_context(request, member, run_id) | {"refusal": refusal, "typed": typed}
    return render_page(request, member, "runs/run.html", context)


def _list_runs(member: Membership) -> QuerySet[Run]:
    rows = annotate_activity(Run.objects.filter(organization_id=member.organization_id))
    return rows.select_related("employee__provider", "parent__employee", *RUN_RELATIONS)


def _load_run(member: Membership, run_id: int) -> Run:
    return get_row(_list_runs(member), run_id, "run")


def _load_events(run: Run, before: int | None) -> list[Event]:
    """Load the newest events before this number, but no events that are newer than the loaded row
    of the run."""
    end = run.next_event_seq if before is None else min(before, run.next_event_seq)
    return list(run.events.filter(seq__lt=end).order_by("-seq")[:MAX_LINES])[::-1]


def _find_page_of_call(run: Run, call_id: int) -> int | None:
    """Return the `before` of the page that has the call's line in its middle; None if the call has
    no line, or if its line is among the newest lines."""
    events = run.events.filter(type__in=list(CALL_EVENTS), payload__call_id=str(call_id)).order_by(
        "-seq"
    )
    last = next((event.seq for event in events if name_slot(event)), None)
    return None if last is None or last >= run.next_event_seq - MAX_LINES else last + MAX_LINES // 2


def _find_last_end(events: list[Event]) -> Event | None:
    return next((event for event in reversed(events) if event.type == EventType.RUN_FINISHED), None)
