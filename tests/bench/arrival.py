"""The time from an event's commit to its arrival in a browser's socket."""

from __future__ import annotations

import random
import time
from functools import partial
from typing import Any

from django.db import transaction

from agents.runs.engine.transaction import run_transaction
from agents.runs.events import ToolFinished
from agents.runs.models import CallStatus, EventType, ToolCall
from tests.bench.browser import browsing
from tests.bench.figures import Figure, latency
from tests.bench.site import worksite
from tests.processes import Installation
from tools.contract import ToolResult

AIM_MS = 10.0
LONGEST_REST_S = 0.02
WARM_UP = 10


def events(installation: Installation, samples: int) -> list[Figure]:
    """Write events to a waiting run, one at a time at irregular moments, and measure the time until
    each arrives."""
    with worksite([_read_and_write()]) as site, browsing(installation.url, site.token) as browser:
        watched = browser.watch(site.submit().pk)
        watched.first(EventType.RUN_WAITING)
        call = ToolCall.objects.get(run_id=watched.run_id, status=CallStatus.SUCCEEDED)
        seconds = []
        for _ in range(samples + WARM_UP):
            time.sleep(random.uniform(0, LONGEST_REST_S))
            seq, committed = _write(call)
            seconds.append(watched.number(seq).at - committed)
    return [latency("commit of an event → browser", seconds[WARM_UP:], AIM_MS)]


def _read_and_write() -> dict[str, Any]:
    """Build a model's response with one call that runs and one that needs approval, so that the run
    waits."""
    read = {"tool": "utility.calculate", "params": {"operation": "add", "a": 1, "b": 2}}
    return {"calls": [read, {"tool": "probe.effect", "params": {"name": "never approved"}}]}


def _write(call: ToolCall) -> tuple[int, float]:
    """Write an event; return its number and the wall-clock time right after its commit."""
    committed: list[float] = []
    with run_transaction(call.run_id) as tx:
        transaction.on_commit(partial(_note_time, committed))
        seq = tx.publish(ToolFinished.of(call, ToolResult.ok({"value": 3}, "1 + 2 = 3"), 1))
    return seq, committed[0]


def _note_time(moments: list[float]) -> None:
    moments.append(time.time())
