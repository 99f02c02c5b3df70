"""GET /api/runs/{id} shows a run with its calls, shortened results and newest cards, and needs only
a few queries."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.runs.models import CallStatus, Run, RunStatus
from tests.world import SEARCH, World, success

pytestmark = pytest.mark.django_db

CALL_FIELDS = {
    "id",
    "tool",
    "level",
    "status",
    "params",
    "result",
    "duration_ms",
    "pass_number",
    "approval_id",
}
RUN_FIELDS = {
    "id", "status", "exit_reason", "employee_id", "title", "task", "answer", "pass_number", "usage", "created_at",
    "started_at", "finished_at", "tool_calls",
}  # fmt: skip


def test_a_run_has_the_documented_fields(world: World) -> None:
    run = world.run(RunStatus.SUCCEEDED)
    call = world.call(run, params={"region": "EU"})
    shown = world.client("viewer").get(f"/api/runs/{run.pk}").json()
    assert shown.keys() >= RUN_FIELDS
    assert shown["answer"] == "Done."
    assert shown["finished_at"].endswith("Z")
    assert shown["tool_calls"][0].keys() >= CALL_FIELDS
    assert shown["tool_calls"][0]["id"] == str(call.pk)
    assert shown["tool_calls"][0]["params"] == {"region": "EU"}
    assert shown["tool_calls"][0]["duration_ms"] == 12


def test_calls_are_listed_in_request_order(world: World) -> None:
    run = world.run()
    asked = [str(world.call(run).pk) for _ in range(3)]
    shown = world.client("viewer").get(f"/api/runs/{run.pk}").json()
    assert [call["id"] for call in shown["tool_calls"]] == asked


def test_a_shortened_result_is_flagged(world: World) -> None:
    run = world.run()
    call = world.call(run, result=success(["x" * 100] * 100))
    client = world.client("viewer")
    short = client.get(f"/api/runs/{run.pk}").json()["tool_calls"][0]["result"]
    assert short["truncated"] is True
    assert short["data"] is None
    assert short["summary"] == "Found"
    whole = client.get(f"/api/tool_calls/{call.pk}").json()["result"]
    assert whole["data"] == ["x" * 100] * 100


def test_a_call_links_to_its_newest_card(world: World) -> None:
    first = world.card()
    run = Run.objects.get(pk=first.run_id)
    first.status = "superseded"
    first.save()
    first.pk, first.sequence, first.status = None, 2, "pending"
    first.save()
    shown = world.client("viewer").get(f"/api/runs/{run.pk}").json()
    assert [call["approval_id"] for call in shown["tool_calls"]] == [str(first.pk)]


def test_a_repeated_call_links_to_the_call_with_the_result(world: World) -> None:
    run = world.run()
    first = world.call(run)
    world.call(
        run, SEARCH, status=CallStatus.DUPLICATE, duplicate_of=first, result=None, content=""
    )
    shown = world.client("viewer").get(f"/api/runs/{run.pk}").json()
    assert [call["duplicate_of"] for call in shown["tool_calls"]] == [None, str(first.pk)]
    assert shown["tool_calls"][1]["result"] is None


def test_the_number_of_queries_is_independent_of_the_number_of_calls(world: World) -> None:
    run, client, counts = world.run(), world.client("viewer"), []
    for _ in range(2):
        for _ in range(3):
            world.call(run)
            world.card(run)
        with CaptureQueriesContext(connection) as queries:
            client.get(f"/api/runs/{run.pk}")
        counts.append(len(queries))
    # Up to ten of them load the marks of all cards together.
    assert counts[0] == counts[1] <= 16, counts


def test_the_head_method_returns_the_status_without_a_body(world: World) -> None:
    run = world.run()
    response = world.client("viewer").head(f"/api/runs/{run.pk}")
    assert response.status_code == 200
    assert response.content == b""
