"""The page of one tool call with its full result; the panel shows only the beginning."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse

from agents.accounts.models import Membership
from agents.approvals.warnings.card_marks import load_call_marks
from agents.platform.refusals import NotFound
from agents.runs.models import ToolCall
from agents.web.cards.cards import ICONS, find_call_tool
from agents.web.cards.origins import describe_origins
from agents.web.panel.json_html import render_data, render_params
from agents.web.views.pages import member_view, render_page
from tools.contract import list_result_parts, name_tool, read_kept_files

MAX_ROWS = 500
MAX_TEXT_LENGTH = 200_000


@member_view("GET")
def call_page(
    request: HttpRequest, member: Membership, run_id: int, call_id: int
) -> HttpResponseBase:
    """Show the call's inputs and its result, up to 500 rows and 200,000 characters of text."""
    rows = ToolCall.objects.filter(
        organization_id=member.organization_id, run_id=run_id, pk=call_id
    )
    call = rows.select_related("run").first()
    if call is None:
        raise NotFound(f"There is no call {call_id} in run {run_id}.")
    tool = find_call_tool(call)
    result = list_result_parts(call.result) if call.result else {}
    text, data = str(result.get("markdown") or ""), result.get("data")
    context = {
        **_build_late_effect_context(call),
        "call": call,
        "title": name_tool(tool, call.tool),
        "result": result,
        "text": text[:MAX_TEXT_LENGTH],
        "is_cut": len(text) > MAX_TEXT_LENGTH,
        "data": render_data(data, MAX_ROWS) if data is not None else "",
        "details": render_data(result["details"], MAX_ROWS)
        if result.get("details") is not None
        else "",
        "files": read_kept_files(result.get("metadata") or {}),
        "params": render_params(call.params),
        "origins": describe_origins(call),
        "marks": load_call_marks([call])[call.pk],
        "requested_params": render_params(call.model_params)
        if call.model_params is not None
        else "",
        "level_icon": ICONS[call.level],
        "place": "runs",
    }
    return render_page(request, member, "runs/call.html", context)


def _build_late_effect_context(call: ToolCall) -> dict[str, Any]:
    """Return the template variables for an effect that was reported after the call had been marked
    as not done."""
    if (late := call.late_effect) is None:
        return {}
    data = late["result"].get("data")
    return {
        "reported_at": datetime.fromisoformat(late["reported_at"]),
        "repeats": [(pk, reverse("call", args=(call.run_id, pk))) for pk in late["done_again_by"]],
        "late_data": render_data(data, MAX_ROWS) if data is not None else "",
    }
