"""The newest calls of a colleague's run are shown in the panel of the run that delegated the task
to the colleague."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.web.panel.child_runs import MAX_CALLS, load_child_runs
from tests.web.asking import delegate_task
from tests.world import make_world, success

pytestmark = pytest.mark.django_db


def test_only_the_newest_calls_of_each_colleague_are_loaded() -> None:
    world = make_world()
    busy, idle = delegate_task(world), delegate_task(world, "Quinn")
    for number in range(MAX_CALLS + 3):
        world.call(busy, result=success(None, summary=f"Call {number}"))
    world.call(idle)
    with CaptureQueriesContext(connection) as queries:
        children = load_child_runs(
            [run.parent_call_id for run in (busy, idle) if run.parent_call_id]
        )
    loaded = {child.run.pk: child.calls for child in children.values()}
    assert [call.report for call in loaded[busy.pk]] == [
        f"Call {number}" for number in range(3, MAX_CALLS + 3)
    ]
    assert len(loaded[idle.pk]) == 1
    assert len(queries) == 2
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM ({queries[-1]['sql']}) AS loaded")
        assert cursor.fetchone() == (MAX_CALLS + 1,)
