"""Operations on tool calls: read one with its whole result, and resolve an unknown outcome."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest
from ninja import Router

from agents.accounts.models import Membership
from agents.api.auth import get_member
from agents.api.documentation import document_problems
from agents.api.lookup import PathId
from agents.api.schemas import ResolveRequest, ToolCallDetail, ToolCallSummary
from agents.approvals import resolutions
from agents.approvals.warnings.card_marks import load_call_marks
from agents.approvals.warnings.marks import Mark
from agents.platform.row_ids import get_row
from agents.runs.models import Approval, ToolCall
from agents.runs.models.event import brief_result
from tools.contract import list_result_parts

router = Router(tags=["Tool calls"])


@router.get(
    "/{call_id}",
    response=ToolCallDetail,
    summary="Show a tool call",
    openapi_extra=document_problems(404),
)
def show_tool_call(request: HttpRequest, call_id: PathId) -> ToolCallDetail:
    """Return one call with its whole result."""
    return _load_detail(get_member(request), call_id)


@router.post(
    "/{call_id}/resolve",
    response=ToolCallDetail,
    summary="Resolve an unknown outcome",
    openapi_extra=document_problems(403, 404, 409),
)
def resolve_tool_call(
    request: HttpRequest, call_id: PathId, payload: ResolveRequest
) -> ToolCallDetail:
    """Resolve a call whose outcome is unknown. `not_done` marks it as failed, and the model may
    request it again.

    `acknowledged` closes the card of a late effect (a call with `late_effect`) and changes nothing
    else.
    """
    member = get_member(request)
    resolutions.resolve(member, call_id, payload.outcome, payload.reason)
    return _load_detail(member, call_id)


def summarize_call(
    call: ToolCall, approval_id: int | None, marks: Sequence[Mark]
) -> ToolCallSummary:
    """Return the call as a part of its run, with a shortened result."""
    late = call.late_effect
    return ToolCallSummary(
        **_list_common_fields(call, approval_id, marks),
        result=None if call.result is None else list_result_parts(brief_result(call.result)),
        late_effect=None
        if late is None
        else {**late, "result": list_result_parts(brief_result(late["result"]))},
    )


def _load_detail(member: Membership, call_id: int) -> ToolCallDetail:
    call = get_row(
        ToolCall.objects.filter(organization_id=member.organization_id), call_id, "tool call"
    )
    newest = (
        Approval.objects.filter(tool_call=call)
        .order_by("-sequence")
        .values_list("pk", flat=True)
        .first()
    )
    late = call.late_effect
    return ToolCallDetail(
        **_list_common_fields(call, newest, load_call_marks([call])[call.pk]),
        result=None if call.result is None else list_result_parts(call.result),
        late_effect=None if late is None else {**late, "result": list_result_parts(late["result"])},
        run_id=str(call.run_id),
        version=call.version,
        why=call.why,
        model_params=call.model_params,
        created_at=call.created_at,
        started_at=call.started_at,
        finished_at=call.finished_at,
    )


def _list_common_fields(
    call: ToolCall, approval_id: int | None, marks: Sequence[Mark]
) -> dict[str, Any]:
    return {
        "id": str(call.pk),
        "tool": call.tool,
        "level": call.level,
        "status": call.status,
        "params": call.params,
        "marks": [mark.as_json() for mark in marks],
        "duration_ms": call.duration_ms,
        "pass_number": call.pass_number,
        "approval_id": None if approval_id is None else str(approval_id),
        "duplicate_of": None if call.duplicate_of_id is None else str(call.duplicate_of_id),
    }
