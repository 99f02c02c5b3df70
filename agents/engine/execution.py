"""Executes the calls that run by themselves: all of a pass side by side, each result recorded as it comes."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from agents.engine import lease, turns
from agents.engine.connections import let_go, tool_thread
from agents.engine.gate import Workplace, workplace
from agents.engine.inner_calls import prepared
from agents.engine.one_call import LOOK_AGAIN_S, run_one
from agents.engine.outcomes import Execution, record_results, reject
from agents.engine.starting import publish_progress, publish_start, set_executing, timeout_of
from agents.engine.suspended import Waiting, suspend
from agents.engine.toolbox import installed_toolbox
from agents.engine.turns import Turn
from agents.events import Recording
from agents.models import CallStatus, ToolCall
from agents.statements import update
from tools.contract import ErrorCode, LastLook, Level, Preview, ToolError, ToolResult
from tools.toolbox.executor import Batch, Finished, Progress
from tools.toolbox.permissions import Decision

_TOGETHER_S = 0.02
_STARTED_COLUMNS = ("status", "exec_epoch", "attempts", "started_at", "deadline_at")


def run_ready(held: lease.Claim, place: Workplace | None = None, started: list[ToolCall] | None = None) -> Turn:
    """Run every call that needs nobody's approval, and find the next move when the last one has ended.

    Args:
        place, started: of the pass that was just recorded: its calls were judged and set executing already.
    """
    if place is None or not started:
        with held.recording() as record:
            place = workplace(held.run_id)
            _reject_forbidden(record, place)
            started = start_ready(record)
            if not started:
                return turns.settle(record, held)
    batch = Batch(around=tool_thread)
    known = {call.pk: call for call in started}
    while True:
        for call in started:
            batch.start(prepared(place, call))
        held.expects(max((timeout_of(call) for call in known.values()), default=0))
        reports = _reports(held, batch)
        with held.recording() as record:
            _record(record, held, known, reports)
            for report in reports:
                if isinstance(report, Finished):
                    place.keep_session(record.run, known[report.key])
            started = []
            if len(known) >= most_at_once():
                place = place.judging_anew()
                _reject_forbidden(record, place)
                started = start_ready(record, batch.running)
            known.update({call.pk: call for call in started})
            if not batch.running and not started:
                return turns.settle(record, held)


def _reports(held: lease.Claim, batch: Batch) -> list[Finished | Progress]:
    """What happened, as soon as something has; results that come within a moment of each other come together."""
    let_go()
    while batch.running:
        reports = batch.wait(time.monotonic() + LOOK_AGAIN_S)
        while reports and batch.running and (more := batch.wait(time.monotonic() + _TOGETHER_S)):
            reports += more
        if reports:
            return reports
        if held.stopped.is_set():
            with held.recording():
                held.stopped.clear()
    return []


def _record(
    record: Recording, held: lease.Claim, known: dict[int, ToolCall], reports: list[Finished | Progress]
) -> None:
    results = []
    for report in reports:
        call = known[report.key]
        if isinstance(report, Progress):
            publish_progress(record, call, report)
        elif report.suspend is not None:
            suspend(record, call, Waiting(held.epoch, report.suspend, report.duration_ms))
        else:
            results.append((call, Execution(held.epoch, report.result, report.duration_ms)))
    record_results(record, results)


def most_at_once() -> int:
    """Calls of one pass that may execute at the same time."""
    return installed_toolbox().limits.calls_at_once


def start_ready(record: Recording, running: int = 0) -> list[ToolCall]:
    """Start as many ready calls of the run as find a slot; none if it may start nothing or the worker is leaving."""
    if not record.run.may_start or turns.is_late(record) or lease.is_going_down():
        return []
    ready = ToolCall.objects.filter(run_id=record.run.pk, status=CallStatus.READY)
    return start(record, list(ready.order_by("pass_number", "index")[: max(most_at_once() - running, 0)]))


def start(record: Recording, calls: list[ToolCall]) -> list[ToolCall]:
    """Set ready calls executing, with their lines in the panel."""
    for call in calls:
        set_executing(record, call)
        changed = {name: getattr(call, name) for name in _STARTED_COLUMNS}
        if update(ToolCall, changed, {"id": call.pk, "status": CallStatus.READY.value}):
            publish_start(record, call)
    return calls


def _reject_forbidden(record: Recording, place: Workplace) -> None:
    for call in ToolCall.objects.filter(run_id=record.run.pk, status=CallStatus.READY):
        _, verdict = place.judge(f"{call.tool}@{call.version}", call.params)
        if verdict.decision == Decision.FORBIDDEN and verdict.error is not None:
            reject(record, call, verdict.error)
        elif verdict.decision == Decision.ASK:
            error = ToolError(ErrorCode.OPERATION_NOT_ALLOWED, "This needs approval by now.", attempted=False)
            reject(record, call, error)


@dataclass(frozen=True)
class Alone:
    """The conditions under which an approved call runs.

    Attributes:
        sealed: the effect that was approved.
        may_begin: checked right before the effect; see `LastLook`.
        late: receives what the call reports after it was given up.
    """

    sealed: Preview
    may_begin: Callable[[], bool]
    late: Callable[[int, ToolResult], None]


def run_alone(place: Workplace, call: ToolCall, alone: Alone) -> Finished:
    """Run one approved call in a thread of its own, at most its timeout."""
    usual = prepared(place, call)
    look = LastLook(alone.may_begin, is_read=not Level(call.level).has_side_effects)
    sealed = replace(usual, context=replace(usual.context, preview=alone.sealed), last_look=look)
    return run_one(call, sealed, alone.late)
