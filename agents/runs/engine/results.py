"""Record the results of calls (step 7 of a run): a conditional update, a tool message and an event
for each call."""

import logging
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from agents.employees.toolboxes import load_toolbox
from agents.platform.queries.writes import update_each, update_rows
from agents.runs.engine.transaction import Transaction
from agents.runs.events import ToolFinished, ToolRejected
from agents.runs.models import CallStatus, ToolCall
from agents.runs.provenance import remember_outside_values
from tools.contract import ToolError, ToolResult, canonical_json, format_error
from tools.contract.excerpts import format_for_model, format_handle

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CallExecution:
    """The result of a call, with the lease epoch in which the call ran."""

    epoch: int
    result: ToolResult
    duration_ms: int


class NotExecuting(RuntimeError):
    """A call that this driver started no longer executes, although nobody else may end it."""


def record_result(tx: Transaction, call: ToolCall, done: CallExecution) -> bool:
    """Store and publish the result of an executing call; return False if the call is not
    executing in this epoch."""
    changed = ToolCall.objects.filter(
        pk=call.pk, status=CallStatus.EXECUTING, exec_epoch=done.epoch
    ).update(**build_end_columns(tx, call, done.result, done.duration_ms))
    if changed:
        publish_result(tx, call, done.result, done.duration_ms)
        tx.run.crash_count = 0
    return bool(changed)


def record_results(tx: Transaction, finished: list[tuple[ToolCall, CallExecution]]) -> None:
    """Store and publish several results in one statement.

    Raises:
        NotExecuting: a call is not executing in its epoch; the transaction must be rolled back.
    """
    updates = []
    for call, done in finished:
        where = {"id": call.pk, "status": CallStatus.EXECUTING.value, "exec_epoch": done.epoch}
        updates.append((build_end_columns(tx, call, done.result, done.duration_ms), where))
        publish_result(tx, call, done.result, done.duration_ms)
    if update_each(ToolCall, updates) != len(updates):
        raise NotExecuting(f"run {tx.run.pk}: {[call.pk for call, _ in finished]}")
    if updates:
        tx.run.crash_count = 0


def build_end_columns(
    tx: Transaction, call: ToolCall, result: ToolResult, duration_ms: int = 0
) -> dict[str, Any]:
    """Build the columns of a call that succeeded or failed; the next event must be the end of the
    call, because `finished_seq` is its number."""
    return {
        "status": CallStatus.SUCCEEDED if result.success else CallStatus.FAILED,
        "result": result.as_json(),
        "content": write_tool_message(call, result),
        "duration_ms": duration_ms,
        "finished_at": tx.now,
        "finished_seq": tx.run.next_event_seq,
    }


def publish_result(
    tx: Transaction, call: ToolCall, result: ToolResult, duration_ms: int = 0
) -> None:
    """Publish the result, and log it if `gadget.yaml` enables that."""
    if settings.GADGET_CONFIG.tools.log_calls:
        outcome = (
            "succeeded"
            if result.success
            else f"failed ({result.error.code})"
            if result.error
            else "failed"
        )
        logger.info("run %s: %s %s in %d ms", call.run_id, call.tool, outcome, duration_ms)
    keep_provenance(call, result)
    tx.publish(ToolFinished.of(call, result, duration_ms))


def keep_provenance(call: ToolCall, result: ToolResult) -> None:
    """Remember the values from outside that a successful call stored; every function that settles a
    call must call this."""
    if call.provenance and result.success:
        remember_outside_values(call, load_toolbox(call.organization_id))


def write_tool_message(call: ToolCall, result: ToolResult) -> str:
    """Write the tool message for the model, which mentions params changed by a person."""
    text = format_for_model(result, format_handle(call.pk))
    return "\n".join(filter(None, [describe_edited_params(call), text]))


def describe_edited_params(call: ToolCall) -> str:
    """Return a sentence with the params as a person changed them; empty if nobody changed them."""
    if call.model_params is None:
        return ""
    return f"A person changed the params before approving, to: {canonical_json(call.params)}"


def end_unexecuted(tx: Transaction, call: ToolCall, status: CallStatus, error: ToolError) -> bool:
    """End a call whose tool does not run, such as a denied call; return False if its status has
    changed. The caller publishes the event."""
    columns = {
        "status": status,
        "result": ToolResult.failed(error).as_json(),
        "content": format_error(error),
        "finished_at": tx.now,
        "finished_seq": tx.run.next_event_seq,
    }
    return bool(update_rows(ToolCall, columns, {"id": call.pk, "status": call.status}))


def reject(tx: Transaction, call: ToolCall, error: ToolError) -> None:
    """Reject a call that may not start, and publish the rejection."""
    if end_unexecuted(tx, call, CallStatus.REJECTED, error):
        tx.publish(ToolRejected.of(call, error))
