"""`context.call_tool`: a tool calls another one, whose call is judged and recorded like any, as its child."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from django.db.models import Max

from agents.engine.connections import let_go
from agents.engine.gate import Workplace
from agents.engine.inserting import insert_calls
from agents.engine.one_call import run_one
from agents.engine.outcomes import Execution, record_result
from agents.engine.planning import ROUNDS, Planned, Wanted, called_by, judged
from agents.engine.toolbox import installed_toolbox
from agents.events import Recording, recording
from agents.models import CallStatus, RunStatus, ToolCall
from tools.contract import ErrorCode, ToolError, ToolResult
from tools.toolbox.executor import PreparedCall
from tools.toolbox.permissions import Decision

MOST_INNER_CALLS = 100
"""Of one call."""
MOST_DEPTH = 3
"""A call that a model asked for has depth 0."""

Caller = Callable[[str, dict[str, Any]], ToolResult]


@dataclass(frozen=True)
class _Asking:
    """The n-th time that an executing call asks for another tool.

    Attributes:
        depth: of the call that is asked for.
        key: its idempotency key for the tool: the same when its caller runs again, so that a draft is made once.
    """

    place: Workplace
    parent: ToolCall
    depth: int
    key: str


def prepared(place: Workplace, call: ToolCall, depth: int = 0, key: str = "") -> PreparedCall:
    """The call as the executor takes it; an inner one has a `depth` and a `key` of its own.

    Args:
        place: where it was judged when it started: whatever was connected or changed since, that tool runs.
    """
    tool = place.tool_of(call)
    if tool is None:
        raise LookupError(f"{call.tool}@{call.version} was not judged here")
    known = key or call.idempotency_key
    told = replace(place.context(call), idempotency_key=known, call_tool=_caller_for(place, call, depth, known))
    guards = installed_toolbox().guards
    return PreparedCall(call.pk, tool, call.params, told, place.toolbox.timeout_of(tool), guards, may_suspend=True)


def _caller_for(place: Workplace, parent: ToolCall, depth: int, key: str) -> Caller:
    """What `context.call_tool` is for this executing call. To be called in the tool's own thread."""
    made = count(1)

    def call_tool(name: str, params: dict[str, Any]) -> ToolResult:
        try:
            return _called(_Asking(place, parent, depth + 1, f"{key}-{next(made)}"), Wanted(name, params))
        except ToolError as refusal:
            return ToolResult.failed(refusal)

    return call_tool


def _called(asking: _Asking, requested: Wanted) -> ToolResult:
    parent = asking.parent
    if asking.depth > MOST_DEPTH:
        raise _refused(ErrorCode.LIMIT_EXCEEDED, f"Tools call each other at most {MOST_DEPTH} levels deep.")
    place, row = _started(asking, requested)
    inner = replace(prepared(place, row, asking.depth, asking.key), may_suspend=False)
    done = run_one(row, inner)
    with recording(parent.run_id) as record:
        record_result(record, row, Execution(row.exec_epoch or 0, done.result, done.duration_ms))
        place.keep_session(record.run, row)
    let_go()
    return done.result


def _started(asking: _Asking, requested: Wanted) -> tuple[Workplace, ToolCall]:
    """Record the call and start it, judged by what is permitted then; if that has changed, it is judged anew before.

    Returns also where it was judged.
    """
    place, parent = asking.place, asking.parent
    for _ in range(ROUNDS):
        planned = judged(place, 0, requested)
        with recording(parent.run_id) as record:
            _refuse_unawaited(record, parent)
            now = place.judging_anew()
            if now.judges_like(place):
                _refuse_unpermitted(planned, parent)
                row = called_by(parent, next_place(parent), planned)
                insert_calls(record, [planned], slots=1)
                return now, row
        place = now
    raise _refused(ErrorCode.OPERATION_NOT_ALLOWED, "What is permitted kept changing while this call was prepared.")


def _refuse_unawaited(record: Recording, parent: ToolCall) -> None:
    run = record.run
    still = ToolCall.objects.filter(pk=parent.pk, status=CallStatus.EXECUTING, exec_epoch=run.lease_epoch)
    if run.status != RunStatus.RUNNING or not still.exists():
        raise _refused(ErrorCode.WORKER_LOST, "This call was given up: nobody waits for its result any more.")
    if not run.may_start:
        raise _refused(ErrorCode.OPERATION_NOT_ALLOWED, "The run was cancelled or stopped.")


def _refuse_unpermitted(planned: Planned, parent: ToolCall) -> None:
    if planned.error is not None:
        raise planned.error
    if planned.decision is not Decision.AUTO:
        message = f"{planned.row.tool!r} needs a person's approval: ask for it directly."
        raise _refused(ErrorCode.OPERATION_NOT_ALLOWED, message)
    if ToolCall.objects.filter(parent_call=parent.pk).count() >= MOST_INNER_CALLS:
        raise _refused(ErrorCode.LIMIT_EXCEEDED, f"One call may make at most {MOST_INNER_CALLS} calls.")


def next_place(parent: ToolCall) -> int:
    """The next free index in the parent's pass; to be asked under the run's lock."""
    rows = ToolCall.objects.filter(run_id=parent.run_id, pass_number=parent.pass_number)
    return int(rows.aggregate(last=Max("index"))["last"]) + 1


def _refused(code: ErrorCode, message: str) -> ToolError:
    return ToolError(code, message, attempted=False)
