"""Tool calls: one with its whole result, and the settling of an unknown outcome."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from agents.accounts.models import Membership
from agents.api.schemas import Resolution, ToolCallShape, WholeToolCall
from agents.approvals import resolutions
from agents.approvals.models import Approval
from agents.runs.models import ToolCall
from agents.runs.models.event import brief_result

from .auth import member_of
from .documentation import refusals
from .lookup import PathId, found

router = Router(tags=["Tool calls"])


@router.get("/{call_id}", response=WholeToolCall, summary="Show a tool call", openapi_extra=refusals(404))
def show_tool_call(request: HttpRequest, call_id: PathId) -> WholeToolCall:
    """One call with its whole result."""
    return _shown(member_of(request), call_id)


@router.post(
    "/{call_id}/resolve",
    response=WholeToolCall,
    summary="Settle an unknown outcome",
    openapi_extra=refusals(403, 404, 409),
)
def resolve_tool_call(request: HttpRequest, call_id: PathId, payload: Resolution) -> WholeToolCall:
    """Settles a call whose outcome is unknown. `not_done` makes it failed; the model may ask again.

    `acknowledged` closes the card of a late effect (a call with `late_effect`) and changes nothing else.
    """
    member = member_of(request)
    resolutions.resolve(member, call_id, payload.outcome, payload.reason)
    return _shown(member, call_id)


def call_shape(call: ToolCall, approval_id: int | None) -> ToolCallShape:
    """The call as it stands in a run, with a shortened result."""
    late = call.late_effect
    return ToolCallShape(
        **_fields_of(call, approval_id),
        result=None if call.result is None else brief_result(call.result),
        late_effect=None if late is None else {**late, "result": brief_result(late["result"])},
    )


def _shown(member: Membership, call_id: int) -> WholeToolCall:
    call = found(ToolCall.objects.filter(organization_id=member.organization_id), call_id, "tool call")
    newest = Approval.objects.filter(tool_call=call).order_by("-sequence").values_list("pk", flat=True).first()
    return WholeToolCall(
        **_fields_of(call, newest),
        result=call.result,
        late_effect=call.late_effect,
        run_id=str(call.run_id),
        version=call.version,
        why=call.why,
        model_params=call.model_params,
        created_at=call.created_at,
        started_at=call.started_at,
        finished_at=call.finished_at,
    )


def _fields_of(call: ToolCall, approval_id: int | None) -> dict[str, Any]:
    return {
        "id": str(call.pk),
        "tool": call.tool,
        "level": call.level,
        "status": call.status,
        "params": call.params,
        "duration_ms": call.duration_ms,
        "pass_number": call.pass_number,
        "approval_id": None if approval_id is None else str(approval_id),
        "duplicate_of": None if call.duplicate_of_id is None else str(call.duplicate_of_id),
    }
