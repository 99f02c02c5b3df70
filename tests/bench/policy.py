"""The cost of replaying a million recorded calls, and the cost of policy snapshots per pass,
measured in pairs of runs with and without them.

A run that the engine has driven is copied a thousand times. Half of its calls have a limit and
params of their own, so that each of them must be judged; the others are identical, like most calls
of a real installation.
"""

from __future__ import annotations

import resource
import time
from collections import Counter
from typing import Any

from django.db import connection
from django.db.models import Model
from django.db.models.functions import Now

from agents.employees.models import Grant
from agents.policy.recorded_calls import CallFilter
from agents.policy.replay import find_bounds, replay
from agents.runs.engine import passes as engine_passes
from agents.runs.engine.loop import advance
from agents.runs.models import Pass, PolicySnapshot, Run, ToolCall
from agents.runs.snapshots import keep_snapshot
from tests.bench.figures import Figure, figure
from tests.bench.site import Worksite, passes_of_calls, succeeded, worksite

CALLS = 1_000_000
PROCESSES = 2
PASSES, CALLS_IN_A_PASS = 20, 50
PAIRS = 30
PASSES_OF_A_PAIR, CALLS_OF_A_PAIR = 9, 5
AIM_S, AIM_SHARE = 60.0, 5.0
SEARCH = "data.searchRecords"
LIMIT = {"param": "limit", "rule": "maximum", "value": 50, "otherwise": "forbid"}


def snapshots() -> list[Figure]:
    """Measure the replay of many calls, and the processor time of a pass with snapshots."""
    return [*_compare_passes(), *_replay_many()]


def _compare_passes() -> list[Figure]:
    """Measure runs in pairs, with and without snapshots; the order changes from pair to pair."""
    with worksite(passes_of_calls(PASSES_OF_A_PAIR, CALLS_OF_A_PAIR)) as site:
        _drive(site, keeps=True)
        shares, extra = [], []
        for number in range(PAIRS):
            order = (True, False) if number % 2 else (False, True)
            took = {keeps: _drive(site, keeps=keeps) for keeps in order}
            shares.append(100 * (took[True] / took[False] - 1))
            extra.append(1_000 * (took[True] - took[False]))
    return [
        figure("a pass with snapshots: added processor time", "%", shares, AIM_SHARE),
        figure("a pass with snapshots: added time", "ms", extra),
    ]


def _drive(site: Worksite, *, keeps: bool) -> float:
    """Drive a run, and return the seconds of processor time per pass."""
    vars(engine_passes)["keep_snapshot"] = keep_snapshot if keeps else lambda *_: ""
    try:
        run = site.submit()
        began = time.process_time()
        advance(run.pk)
        took = time.process_time() - began
    finally:
        vars(engine_passes)["keep_snapshot"] = keep_snapshot
    assert succeeded(run.pk).pass_number == PASSES_OF_A_PAIR + 1
    return took / (PASSES_OF_A_PAIR + 1)


def _replay_many() -> list[Figure]:
    with worksite(_answers()) as site:
        Grant.objects.filter(employee=site.employee, tool=SEARCH).update(conditions=[LIMIT])
        run = site.submit()
        advance(run.pk)
        _copy(succeeded(run.pk))
        connection.close()
        seconds = _replay(site)
        kept = PolicySnapshot.objects.filter(organization_id=site.employee.organization_id).count()
        connection.close()
    workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return [
        figure(f"replay of {CALLS:,} calls in {PROCESSES} processes", "s", [seconds], AIM_S),
        figure("replay: calls a second", "", [CALLS / seconds]),
        figure("replay: memory of the largest process", "MB", [workers]),
        figure("replay: snapshots", "", [kept]),
    ]


def _answers() -> list[dict[str, Any]]:
    """Build the model's responses with calls. Half of the calls are limited reads, some of which
    exceed the limit; the others are unlimited, refused or invalid."""
    found = []
    for number in range(PASSES):
        calls = [_call(number * CALLS_IN_A_PASS + index) for index in range(CALLS_IN_A_PASS)]
        found.append({"calls": calls})
    return [*found, {"text": "Done."}]


def _call(number: int) -> dict[str, Any]:
    if number % 2:
        return {
            "tool": SEARCH,
            "params": {"text": f"q{number}", "limit": 60 if number % 10 == 1 else 5},
        }
    if number % 10 == 0:
        return {"tool": "data.bulkDelete", "params": {"record_ids": [str(number)]}}
    if number % 10 == 2:
        return {"tool": "utility.calculate", "params": {"operation": "add", "a": "many"}}
    return {"tool": "utility.calculate", "params": {"operation": "add", "a": number, "b": 1}}


def _copy(run: Run) -> None:
    """Copy the run with its passes and calls until there are enough calls; each limited call gets a
    different text."""
    own = ToolCall.objects.filter(run=run).count()
    copies = CALLS // own - 1
    kept = {
        name: getattr(run, name)
        for name in ("organization_id", "employee_id", "status", "exit_reason", "task")
    }
    runs = Run.objects.bulk_create([Run(**kept, finished_at=Now()) for _ in range(copies)])
    for copy in runs:
        with connection.cursor() as cursor:
            _insert(cursor, Pass, run.pk, {"run_id": str(copy.pk)})
            key = f"'{copy.pk}-' || id"
            values = {
                "run_id": str(copy.pk),
                "idempotency_key": key,
                **_vary(f"'q' || id || '-{copy.pk}'"),
            }
            _insert(cursor, ToolCall, run.pk, values)


def _vary(text: str) -> dict[str, str]:
    """Return SQL expressions that give the params of limited calls a different text, wherever these
    params are stored."""
    if connection.vendor == "postgresql":
        asked = f"jsonb_set(params, '{{text}}', to_jsonb({text}))"
        kept = f"jsonb_set(judgment, '{{facts,params,text}}', to_jsonb({text}))"
        has_kept = "judgment #> '{facts,params}' IS NOT NULL"
    else:
        asked = f"json_set(params, '$.text', {text})"
        kept = f"json_set(judgment, '$.facts.params.text', {text})"
        has_kept = "json_extract(judgment, '$.facts.params') IS NOT NULL"
    is_limited = f"tool = '{SEARCH}'"
    return {
        "params": f"CASE WHEN {is_limited} AND NOT ({has_kept}) THEN {asked} ELSE params END",
        "judgment": f"CASE WHEN {is_limited} AND {has_kept} THEN {kept} ELSE judgment END",
    }


def _insert(cursor: Any, model: type[Model], run_id: int, values: dict[str, str]) -> None:
    columns = [field.column for field in model._meta.concrete_fields if not field.primary_key]
    names = ", ".join(f'"{column}"' for column in columns)
    taken = ", ".join(values.get(str(column), f'"{column}"') for column in columns)
    table = model._meta.db_table
    cursor.execute(
        f"INSERT INTO {table} ({names}) SELECT {taken} FROM {table} WHERE run_id = {run_id}"
    )


def _replay(site: Worksite) -> float:
    began, counts = time.perf_counter(), Counter[str]()
    bounded = find_bounds(CallFilter(site.employee.organization_id), None)
    assert bounded is not None
    for part in replay(bounded, PROCESSES):
        counts += part.counts
        assert not part.differences, part.differences[:3]
    assert set(counts) == {"equal"}, counts
    assert abs(counts.total() - CALLS) < CALLS / 100, counts
    return time.perf_counter() - began
