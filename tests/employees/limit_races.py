"""Races at limits over history: many runs of one employee work simultaneously, and only some of
their calls may start."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.db import OperationalError

from agents.employees.models import Grant
from agents.platform.database_outages import describe_outage
from agents.runs.models import Approval, ApprovalStatus, Run, RunStatus, ToolCall
from tests.workshop import Workshop, all_at_once, asking, call, make_due
from tools.toolbox import Condition, Rule

READ = "probe.sleep"
WRITE = "probe.effect"
RUNS = 50
MOST = 20
MAX_ROUNDS = 3
EACH = 30
MOST_IN_SUM = 500


def limit(workshop: Workshop, tool: str, condition: Condition) -> None:
    """Give the tool only this limit."""
    grants = Grant.objects.filter(employee=workshop.employee, tool=tool)
    assert grants.update(conditions=[condition.as_json()]) == 1


def drive(workshop: Workshop, run: Run) -> None:
    """Drive the run, and retry if the database is busy, as another job would."""
    try:
        workshop.drive(run)
    except OperationalError as error:
        if not describe_outage(error):
            raise
        drive(workshop, run)


def race_reads(workshop: Workshop, runs: int = RUNS, most: int = MOST) -> Counter[str]:
    """Let each run request one read; `most` of the reads may start without approval. Count the
    calls by status."""
    limit(workshop, READ, Condition("", Rule.CALL_COUNT, {"most": most, "period": "hour"}))
    return _race(workshop, runs, call(READ, ms=0, tag="a"))


def race_sums(workshop: Workshop, runs: int = RUNS) -> Counter[str]:
    """Let each run request one read of `EACH`; reads start without approval up to a sum of
    `MOST_IN_SUM`. Count the calls by status."""
    limit(workshop, READ, Condition("ms", Rule.SUM, {"most": MOST_IN_SUM, "period": "day"}))
    return _race(workshop, runs, call(READ, ms=EACH, tag="a"))


def race_responses(workshop: Workshop, runs: int = RUNS // 5, most: int = MOST) -> Counter[str]:
    """Let each run request five reads in one response; count the calls by status."""
    limit(workshop, READ, Condition("", Rule.CALL_COUNT, {"most": most, "period": "hour"}))
    return _race(workshop, runs, *(call(READ, ms=0, tag=tag) for tag in "abcde"))


def race_writes(workshop: Workshop, runs: int = RUNS, most: int = MOST) -> Counter[str]:
    """Let `runs` approved writes start at the same time, although only `most` are within the limit;
    count the calls by status."""
    limit(workshop, WRITE, Condition("", Rule.CALL_COUNT, {"most": most, "period": "hour"}))
    workshop.play(asking(call(WRITE, name="a")))
    started = [workshop.work() for _ in range(runs)]
    for card in Approval.objects.filter(
        run__in=started, status=ApprovalStatus.PENDING
    ).select_related("tool_call"):
        workshop.approve(card)
    return _drive_all(workshop, started)


def _race(workshop: Workshop, runs: int, *requested: dict[str, Any]) -> Counter[str]:
    workshop.play(asking(*requested))
    return _drive_all(workshop, [workshop.submit() for _ in range(runs)])


def _drive_all(workshop: Workshop, runs: list[Run]) -> Counter[str]:
    """Drive all runs at the same time, and retry those that a busy database has requeued."""
    all_at_once([lambda run=run: drive(workshop, run) for run in runs])  # type: ignore[misc]
    mine = Run.objects.filter(pk__in=[run.pk for run in runs])
    for _ in range(MAX_ROUNDS):
        for run in mine.filter(status=RunStatus.QUEUED):
            drive(workshop, make_due(run))
    return Counter(ToolCall.objects.filter(run__in=runs).values_list("status", flat=True))
