"""How a call ends: one conditional update, one tool message, one line in the panel."""

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Max
from django.db.models.functions import Now

from agents.engine.digests import digest_of, unforeseen
from agents.events import Recording, brief
from agents.models import Approval, ApprovalKind, ApprovalStatus, CallStatus, EventType, ToolCall
from agents.statements import update_each
from tools.contract import ErrorCode, ToolError, ToolResult, canonical_json, format_error
from tools.contract.portions import for_model, handle_of

logger = logging.getLogger(__name__)

_NEVER = timedelta(days=3650)


@dataclass(frozen=True)
class Execution:
    """What came back from running a call in the given epoch."""

    epoch: int
    result: ToolResult
    duration_ms: int


class NotExecuting(RuntimeError):
    """A call that this driver has started is not executing any more, although nobody else may end it."""


def record_result(record: Recording, call: ToolCall, done: Execution) -> bool:
    """Store the result of an executing call and show it; False if the call is not executing in this epoch."""
    changed = ToolCall.objects.filter(pk=call.pk, status=CallStatus.EXECUTING, exec_epoch=done.epoch).update(
        **ended(record, call, done.result, done.duration_ms)
    )
    if changed:
        publish_result(record, call, done.result, done.duration_ms)
        record.run.crash_count = 0
    return bool(changed)


def record_results(record: Recording, finished: list[tuple[ToolCall, Execution]]) -> None:
    """Store and show results that came together, in one statement.

    Raises:
        NotExecuting: one of them is not executing in its epoch; nothing may be written then.
    """
    updates = []
    for call, done in finished:
        where = {"id": call.pk, "status": CallStatus.EXECUTING.value, "exec_epoch": done.epoch}
        updates.append((ended(record, call, done.result, done.duration_ms), where))
        publish_result(record, call, done.result, done.duration_ms)
    if update_each(ToolCall, updates) != len(updates):
        raise NotExecuting(f"run {record.run.pk}: {[call.pk for call, _ in finished]}")
    if updates:
        record.run.crash_count = 0


def ended(record: Recording, call: ToolCall, result: ToolResult, duration_ms: int = 0) -> dict[str, Any]:
    """The columns of a call that succeeded or failed, which the next event tells."""
    return {
        "status": CallStatus.SUCCEEDED if result.success else CallStatus.FAILED,
        "result": result.as_json(),
        "content": tool_message(call, result),
        "duration_ms": duration_ms,
        "finished_at": record.now,
        "finished_seq": record.run.next_event_seq,
    }


def publish_result(record: Recording, call: ToolCall, result: ToolResult, duration_ms: int) -> int:
    """The panel's line for a result, and one in the log if `gadget.yaml` wants it."""
    if settings.GADGET_CONFIG.tools.log_calls:
        told = "succeeded" if result.success else f"failed ({result.error.code})" if result.error else "failed"
        logger.info("run %s: %s %s in %d ms", call.run_id, call.tool, told, duration_ms)
    return record.publish(
        EventType.TOOL_RESULT,
        call_id=str(call.pk),
        tool=call.tool,
        result=brief(result.as_json()),
        duration_ms=duration_ms,
    )


def tool_message(call: ToolCall, result: ToolResult) -> str:
    """What the model reads; it is told if a person changed the params."""
    text = for_model(result, handle_of(call.pk))
    if call.model_params is None:
        return text
    return f"A person changed the params before approving, to: {canonical_json(call.params)}\n{text}"


def end_unexecuted(record: Recording, call: ToolCall, status: CallStatus, error: ToolError) -> bool:
    """End a call that never ran (denied, expired, cancelled, rejected); the caller publishes the line for it."""
    return bool(
        ToolCall.objects.filter(pk=call.pk, status=call.status).update(
            status=status,
            result=ToolResult.failed(error).as_json(),
            content=format_error(error),
            finished_at=record.now,
            finished_seq=record.run.next_event_seq,
        )
    )


def reject(record: Recording, call: ToolCall, error: ToolError) -> None:
    """The gate forbids a call that has not started."""
    if end_unexecuted(record, call, CallStatus.REJECTED, error):
        publish_rejection(record, call, error)


def publish_rejection(record: Recording, call: ToolCall, error: ToolError) -> None:
    """The panel's line for a call that may not run."""
    record.publish(
        EventType.TOOL_REJECTED, call_id=str(call.pk), tool=call.tool, code=str(error.code), reason=error.message
    )


def lose_outcome(record: Recording, call: ToolCall, why: str) -> None:
    """Nobody can know whether this write happened: it stops here and a person is asked."""
    changed = ToolCall.objects.filter(pk=call.pk, status=CallStatus.EXECUTING).update(status=CallStatus.OUTCOME_UNKNOWN)
    if not changed:
        return
    error = ToolError(ErrorCode.OUTCOME_UNKNOWN, why, recovery_hint="A person has to look and say what happened.")
    publish_result(record, call, ToolResult.failed(error), 0)
    show_unknown_card(record, call, "It is not known whether this happened", why)
    record.audit("gadget", "outcome_unknown", f"tool_call:{call.pk}", tool=call.tool, why=why)


def show_unknown_card(record: Recording, call: ToolCall, fact: str, why: str) -> Approval:
    """Create the card that asks a person to look, about what the call's last approval showed."""
    last = Approval.objects.filter(tool_call=call).exclude(kind=ApprovalKind.UNKNOWN).order_by("-sequence").first()
    effect = last.preview if last else unforeseen("There is no preview.")
    done = last.sentence if last else call.tool
    record.inbox_changed = True
    return Approval.objects.create(
        organization_id=call.organization_id,
        run_id=call.run_id,
        tool_call=call,
        sequence=next_sequence(call),
        kind=ApprovalKind.UNKNOWN,
        level=call.level,
        params=call.params,
        sentence=f"{fact}: {done}",
        preview=effect,
        why=why,
        digest=digest_of(call, effect),
        expires_at=Now() + _NEVER,
    )


def next_sequence(call: ToolCall) -> int:
    """The number of the call's next card."""
    last = Approval.objects.filter(tool_call=call).aggregate(last=Max("sequence"))["last"]
    return (last or 0) + 1


def close_unknown_card(call: ToolCall, reason: str, by: User | None = None) -> None:
    """Close the card that asked what happened: a person has said so, or the executor reported."""
    Approval.objects.filter(tool_call=call, kind=ApprovalKind.UNKNOWN, status=ApprovalStatus.PENDING).update(
        status=ApprovalStatus.CANCELLED, reason=reason, decided_by=by, decided_at=Now()
    )
