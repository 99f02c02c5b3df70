"""The cost of earlier results: runs continue after 10, 100 or 1,000 calls have already returned
results."""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from django.db.models.functions import Now

from agents.runs.engine.loop import advance
from agents.runs.models import CallStatus, Pass, Run, ToolCall
from tests.bench.figures import Figure, figure, rounds
from tests.bench.site import Worksite, passes_of_calls, succeeded, worksite
from tools.contract import ToolResult, canonical_json, fingerprint

EARLIER = (10, 100, 1000)
CALLS = 5
PASSES = 9
AIM_US = 15.0
PATIENCE_S = 20.0


@dataclass(frozen=True)
class _Cost:
    """The cost of one pass, in milliseconds."""

    wall: float
    cpu: float


def earlier_results(repeats: int) -> list[Figure]:
    """Measure the duration of a pass in this process, in ms, and the µs that each earlier result
    adds to it."""
    with ExitStack() as stack:
        answers = {
            earlier: passes_of_calls(earlier // CALLS + PASSES, CALLS) for earlier in EARLIER
        }
        sites = {earlier: stack.enter_context(worksite(answers[earlier])) for earlier in EARLIER}
        rows = [
            [_cost(sites[earlier], earlier) for earlier in EARLIER]
            for _ in rounds(repeats, PATIENCE_S)
        ][1:]
    walls = [[each.wall for each in row] for row in rows]
    return [
        *(
            figure(f"pass after {earlier:,} results", "ms", each)
            for earlier, each in zip(EARLIER, zip(*walls, strict=True), strict=True)
        ),
        figure("each earlier result, in every later pass", "µs", _slopes(walls), AIM_US),
        figure(
            "each earlier result: processor time",
            "µs",
            _slopes([[each.cpu for each in row] for row in rows]),
        ),
    ]


def _slopes(rows: list[list[float]]) -> list[float]:
    """Return the cost of each earlier result in µs, for each repetition: the slope of a line
    through the costs of the three runs."""
    return [1000 * statistics.linear_regression(EARLIER, row).slope for row in rows]


def _cost(site: Worksite, earlier: int) -> _Cost:
    """Measure nine passes of five calls and the answer, and return the cost divided by ten."""
    run = site.submit()
    _pretend(run, earlier // CALLS)
    wall, cpu = time.perf_counter(), time.process_time()
    advance(run.pk)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert succeeded(run.pk).pass_number == earlier // CALLS + PASSES + 1
    return _Cost(1000 * wall / (PASSES + 1), 1000 * cpu / (PASSES + 1))


def _pretend(run: Run, passes: int) -> None:
    """Insert this number of completed passes into the run, as if the engine had driven them."""
    Pass.objects.bulk_create(
        Pass(run=run, number=number, response=_response(number), messages_upto=1)
        for number in range(1, passes + 1)
    )
    ToolCall.objects.bulk_create(
        _call(run, number, index) for number in range(1, passes + 1) for index in range(CALLS)
    )
    Run.objects.filter(pk=run.pk).update(
        pass_number=passes, asked_pass=passes, max_passes=passes + 2 * PASSES, messages_heard=1
    )


def _params(number: int, index: int) -> dict[str, Any]:
    return {"operation": "subtract", "a": number, "b": index}


def _call_id(number: int, index: int) -> str:
    return f"call_earlier_{number}_{index}"


def _response(number: int) -> dict[str, Any]:
    calls = [
        {
            "id": _call_id(number, index),
            "type": "function",
            "function": {
                "name": "utility__calculate",
                "arguments": canonical_json(_params(number, index)),
            },
        }
        for index in range(CALLS)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _call(run: Run, number: int, index: int) -> ToolCall:
    params = _params(number, index)
    result = ToolResult.ok({"value": number - index}, f"{number} - {index} = {number - index}")
    return ToolCall(
        organization_id=run.organization_id,
        run=run,
        pass_number=number,
        index=index,
        provider_call_id=_call_id(number, index),
        tool="utility.calculate",
        version="1",
        level="read",
        params=params,
        params_hash=fingerprint(params),
        signature=fingerprint(["utility.calculate", params]),
        status=CallStatus.SUCCEEDED,
        attempts=1,
        exec_epoch=1,
        started_at=Now(),
        finished_at=Now(),
        finished_seq=1,
        duration_ms=0,
        result=result.as_json(),
        content=result.for_model(),
    )
