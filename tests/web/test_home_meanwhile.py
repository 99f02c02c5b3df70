"""The start page if rows change between its queries, or after they were counted."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from agents.runs.engine.timing import timing
from agents.runs.models import Approval, ApprovalStatus, Run, RunStatus
from agents.web.charts.daily_counts import load_last_days
from tests.world import World
from tools.caches import clear_caches

pytestmark = pytest.mark.django_db

NO_LEASE: dict[str, Any] = {"lease_owner": "", "lease_expires_at": None}
COLUMNS: dict[str, dict[str, Any]] = {
    RunStatus.RUNNING: {"lease_owner": "w", "lease_expires_at": "2030-01-01T00:00:00Z"},
    RunStatus.SUCCEEDED: {"finished_at": "2026-01-01T00:00:00Z", "exit_reason": "final_answer"},
}
"""The columns that the database requires for a run, by its status."""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (RunStatus.WAITING, RunStatus.QUEUED),
        (RunStatus.QUEUED, RunStatus.RUNNING),
        (RunStatus.RUNNING, RunStatus.SUCCEEDED),
    ],
)
@pytest.mark.parametrize("at", range(7))
def test_a_run_that_changes_status_between_two_queries_is_listed_once(
    world: World, before: RunStatus, after: RunStatus, at: int
) -> None:
    """Change the status before each of the queries in turn."""
    run = world.run(before, **COLUMNS.get(before, {}))
    client, selects = world.client("viewer"), 0

    def move_before_one(execute: Any, sql: str, *others: Any) -> Any:
        nonlocal selects
        if sql.startswith("SELECT") and 'FROM "runs_run"' in sql and "status" in sql:
            if selects == at:
                Run.objects.filter(pk=run.pk).update(
                    status=after, **{**NO_LEASE, **COLUMNS.get(after, {})}
                )
            selects += 1
        return execute(sql, *others)

    with connection.execute_wrapper(move_before_one):
        html = client.get("/?live=1").content.decode()
    links = re.findall(rf'href="/runs/{run.pk}/"', html)
    assert selects > at, "no such select"
    assert len(links) == 1, links


def test_an_approval_is_not_cached_while_it_can_be_undone(world: World) -> None:
    card, now = world.card(), timezone.now()
    approved = Approval.objects.filter(pk=card.pk)
    approved.update(
        status=ApprovalStatus.APPROVED,
        decided_at=now,
        start_after=now,
        decided_by=world.users["admin"],
    )
    late = now + timing().approval_validity / timing().scale
    clear_caches()
    assert sum(day.figures.approved for day in load_last_days(world.acme.pk, late)) == 1
    approved.update(status=ApprovalStatus.SUPERSEDED)
    assert (
        sum(
            day.figures.approved
            for day in load_last_days(world.acme.pk, late + timedelta(minutes=1))
        )
        == 0
    )
    clear_caches()
