"""The lines of the activity panel: one per event, with the same HTML on the page and through
sockets.

All lines of a batch show the current rows, so an old event never brings back an open card.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.template.loader import select_template
from django.urls import reverse
from django.utils.safestring import SafeString

from agents.approvals.warnings.card_reading import find_params_marks
from agents.providers.scripted import UNKNOWN_TASK
from agents.runs.descriptions import CALL_EVENTS, NOTE_EVENTS, describe
from agents.runs.models import CallStatus, Event, EventType, ExitReason, Run, ToolCall
from agents.web.cards.cards import ICONS, find_call_tool
from agents.web.cards.source_names import find_source_name
from agents.web.jinja_environment import JINJA
from agents.web.panel.call_inputs import render_brief, render_inputs
from agents.web.panel.json_html import render_data
from agents.web.panel.line_facts import ALL_VIEWERS, LineFacts, PageContext, load_facts
from agents.web.panel.page_parts import PageParts, find_changes
from agents.web.panel.slots import is_replacement, moves_to_end, name_slot
from tools.contract import Tool, list_result_parts, name_tool, read_kept_files

CATEGORY_ICONS = {
    "data": "database",
    "analysis": "chart-column",
    "content": "file-text",
    "report": "scroll-text",
    "utility": "calculator",
    "employee": "users",
    "web": "globe",
    "search_google": "search",
}


@dataclass(frozen=True)
class PanelLine:
    """One event with its HTML.

    Attributes:
        slot: the line replaces the earlier line with the same slot; empty if it replaces none.
        moves_to_end: True if the line goes to the end of the panel instead of the place of the line
            that it replaces.
        html: one `li`.
        parts: the parts of the page that change with the line, for live messages.
    """

    seq: int
    type: str
    payload: dict[str, Any]
    created_at: datetime
    slot: str
    moves_to_end: bool
    html: str = ""
    parts: str = ""


@dataclass(frozen=True)
class StatusIcon:
    """The look of a call's status: a class, an icon (a spinner has none) and a word."""

    look: str
    icon: str
    word: str


RUNNING = StatusIcon("spinner", "", "running")
WAITING = StatusIcon("status-icon wait", "clock", "waiting")
STATUS_ICONS = {
    CallStatus.READY.value: RUNNING,
    CallStatus.EXECUTING.value: RUNNING,
    CallStatus.SUCCEEDED.value: StatusIcon("status-icon good", "check", "succeeded"),
    CallStatus.AWAITING_APPROVAL.value: WAITING,
    CallStatus.SUSPENDED.value: WAITING,
    CallStatus.APPROVED.value: WAITING,
    CallStatus.DUPLICATE.value: StatusIcon("status-icon", "equal", "duplicate"),
    CallStatus.OUTCOME_UNKNOWN.value: StatusIcon(
        "status-icon bad", "circle-question-mark", "outcome unknown"
    ),
}


def render_lines(
    run_id: int, events: Iterable[Event], run: Run | None = None, context: PageContext = ALL_VIEWERS
) -> list[PanelLine]:
    """Render a line for each event, from the current rows.

    Args:
        run: the run's row with its relations, if the caller has loaded it.
    """
    facts = load_facts(run_id, events, run, context)
    return [_render_line(event, facts) for event in facts.events]


def _render_line(event: Event, facts: LineFacts) -> PanelLine:
    slot = name_slot(event)
    line = PanelLine(
        event.seq,
        event.type,
        event.payload,
        event.created_at,
        slot,
        bool(slot) and moves_to_end(event),
    )
    description = describe(event)
    shown = {"line": line, "description": description, **_build_context(event, facts)}
    if description.is_outcome and description.look == "good":
        shown["status_icon"] = StatusIcon("status-icon good", description.icon, description.spoken)
    html = select_template(_list_layouts(event), using=JINJA).render(shown)
    parts = _find_parts(event, facts).render() if facts.context == ALL_VIEWERS else ""
    return replace(line, html=html.strip(), parts=parts)


def _list_layouts(event: Event) -> list[str]:
    """List the templates to try for the event: the template for its own type, then the template
    that its group shares."""
    own = "approval_replaced" if is_replacement(event) else event.type
    shared = (
        "call" if event.type in CALL_EVENTS else "note" if event.type in NOTE_EVENTS else "state"
    )
    return [f"panel/{own}.html", f"panel/{shared}.html"]


def _find_parts(event: Event, facts: LineFacts) -> PageParts:
    """Find the parts that change with the event; a pass's own line already has its figures."""
    changes = find_changes(event)
    recorded = facts.find_recorded_pass(event)
    if recorded and recorded not in facts.started_passes:
        changes |= {"pass_number": recorded, "figures": facts.figures.get(recorded, "")}
    if event.seq == facts.timeline_seq:
        changes |= {"segments": facts.segments}
    return PageParts(**changes)


def _build_context(event: Event, facts: LineFacts) -> dict[str, Any]:
    payload = event.payload
    if event.type in CALL_EVENTS:
        return _build_call_context(event, facts)
    if event.type == EventType.ASSISTANT_MESSAGE:
        is_answer = payload["text"] in facts.answers
        return {"is_answer": is_answer, "pass_number": payload["pass_number"]}
    if event.type == EventType.PASS_STARTED:
        return {"figures": facts.figures.get(payload["pass_number"], "")}
    if event.type == EventType.RUN_FINISHED:
        is_plain = payload["exit_reason"] == ExitReason.FINAL_ANSWER and not is_unknown_task(event)
        run = None if is_plain else facts.run
        return {
            "is_on_top": event.seq == facts.context.end_on_top,
            "is_unknown_task": is_unknown_task(event),
            "problem": describe_problem(event, run) if run else "",
            "run": run,
        }
    return {}


def is_unknown_task(end: Event) -> bool:
    """Return True if a scripted employee ended the run because none of its scripts fits the
    task."""
    return str(end.payload.get("answer", "")).startswith(UNKNOWN_TASK)


def describe_problem(end: Event, run: Run) -> str:
    """Return the problem that ended the run; empty if the answer repeats it, or if the run has
    since ended for another reason."""
    reason = end.payload["exit_reason"]
    is_own = reason != ExitReason.FINAL_ANSWER and reason == run.exit_reason
    return run.problem if is_own and run.problem not in (end.payload.get("answer") or "") else ""


def _build_call_context(event: Event, facts: LineFacts) -> dict[str, Any]:
    call = facts.calls[int(event.payload["call_id"])]
    card = facts.cards.get(call.pk)
    if card is not None:
        call = card.call
    tool = find_call_tool(call)
    context: dict[str, Any] = {
        "call": call,
        "title": name_tool(tool, call.tool),
        "is_outside": tool is None or tool.is_from_outside,
        "source_name": find_source_name(tool),
        "call_url": reverse("call", args=[call.run_id, call.pk]),
        "card": card,
        "child": facts.children.get(call.pk),
        "token": facts.context.token,
        "member": facts.context.member,
        "icon_name": find_tool_icon(call.tool),
        "level_icon": ICONS[call.level],
        "status_icon": STATUS_ICONS.get(call.status)
        or StatusIcon("status-icon bad", "x", call.get_status_display()),
        "brief": render_brief(call.params, tool, facts.record_names),
        "params": render_inputs(call.params, tool, facts.record_names),
        "marks": () if card else find_params_marks(call.organization_id, call.params),
        "original_marks": find_params_marks(call.organization_id, call.model_params),
        "original_params": _render_original(call, tool, facts),
    }
    if event.type == EventType.TOOL_RESULT:
        context |= _build_result_context(call, event.payload["result"], facts)
    return context


def _render_original(call: ToolCall, tool: Tool | None, facts: LineFacts) -> SafeString | str:
    """Render the inputs that the employee had requested; empty unless a person edited them."""
    return (
        render_inputs(call.model_params, tool, facts.record_names)
        if call.model_params is not None
        else ""
    )


def _build_result_context(
    call: ToolCall, result: dict[str, Any], facts: LineFacts
) -> dict[str, Any]:
    data, details = (
        result.get("data") if not result.get("markdown") else None,
        list_result_parts(result)["details"],
    )
    return {
        "data": render_data(data) if data is not None else "",
        "details": render_data(details) if details is not None else "",
        "files": read_kept_files(result.get("metadata") or {}),
        "document": facts.documents.get(call.pk),
    }


def find_tool_icon(tool_name: str) -> str:
    """Find the icon of the tool's category."""
    return CATEGORY_ICONS.get(tool_name.partition(".")[0], "wrench")
