"""POST /api/runs assigns a task to an employee, only once for each client_request_id, and reports
invalid fields."""

from __future__ import annotations

from typing import Any

import pytest

from agents.runs.models import Event, Run, RunStatus
from tests.world import World, post, problem

pytestmark = pytest.mark.django_db


def body(world: World, **more: Any) -> dict[str, Any]:
    return {"employee_id": str(world.employee.pk), "task": "Find companies in the EU.", **more}


def test_a_new_run_is_queued_and_returned_in_full(world: World) -> None:
    response = post(world.client("operator"), "/api/runs", body(world))
    assert response.status_code == 201
    run = response.json()
    assert run["status"] == "queued"
    assert run["employee_id"] == str(world.employee.pk)
    assert run["task"] == run["title"] == "Find companies in the EU."
    assert run["usage"] == {"input_tokens": 0, "output_tokens": 0, "cost": None}
    assert run["tool_calls"] == []
    assert run["created_at"].endswith("Z")
    assert run["finished_at"] is None
    stored = Run.objects.get(pk=int(run["id"]))
    assert stored.organization == world.acme
    assert stored.created_by == world.users["operator"]
    assert stored.status == RunStatus.QUEUED
    assert Event.objects.filter(run=stored, type="run_started").count() == 1


def test_the_same_request_sent_again_returns_the_same_run(world: World) -> None:
    client, again = world.client("operator"), body(world, client_request_id="order-4711")
    first, second = post(client, "/api/runs", again), post(client, "/api/runs", again)
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"]
    assert Run.objects.count() == 1


def test_a_request_id_used_in_another_organization_starts_another_run(world: World) -> None:
    first = post(world.client("operator"), "/api/runs", body(world, client_request_id="1"))
    others = {
        "employee_id": str(world.others_employee.pk),
        "task": "Search.",
        "client_request_id": "1",
    }
    second = post(world.client("outsider"), "/api/runs", others)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["id"] != second.json()["id"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task", ""),
        ("task", "   \n "),
        ("task", "x" * 100_000),
        ("task", "x" * 20_001),
        ("task", "a\x00b"),
        ("task", "\ud800"),
        ("task", None),
        ("task", 7),
        ("employee_id", "abc"),
        ("employee_id", "9" * 30),
        ("employee_id", True),
        ("employee_id", None),
        ("client_request_id", "x" * 201),
        ("client_request_id", "a\x00"),
        ("client_request_id", "schedule:1:2026-11-22T08:00:00+00:00"),
        ("mode", "party"),
        ("mode", "x" * 10_000),
        ("tsak", "misspelt"),
    ],
)
def test_an_invalid_field_is_reported(world: World, field: str, value: Any) -> None:
    response = problem(
        post(world.client("operator"), "/api/runs", body(world, **{field: value})), 422
    )
    assert response["code"] == "invalid"
    assert response["field"] == field
    assert not Run.objects.exists()


@pytest.mark.parametrize("field", ["employee_id", "task"])
def test_a_missing_field_is_reported(world: World, field: str) -> None:
    whole = body(world)
    del whole[field]
    assert problem(post(world.client("operator"), "/api/runs", whole), 422)["field"] == field


def test_all_invalid_fields_are_listed(world: World) -> None:
    response = problem(
        post(world.client("operator"), "/api/runs", {"task": "", "client_request_id": 5}), 422
    )
    assert {fault["field"] for fault in response["errors"]} == {
        "employee_id",
        "task",
        "client_request_id",
    }


def test_a_task_of_20000_characters_is_accepted(world: World) -> None:
    assert (
        post(world.client("operator"), "/api/runs", body(world, task="ä" * 20_000)).status_code
        == 201
    )


def test_an_unknown_employee_is_reported(world: World) -> None:
    problem(post(world.client("operator"), "/api/runs", body(world, employee_id="999999")), 404)


def test_a_task_for_an_inactive_employee_is_refused(world: World) -> None:
    world.employee.is_active = False
    world.employee.save()
    response = post(world.client("operator"), "/api/runs", body(world))
    assert response.status_code in (404, 409, 422)
    assert not Run.objects.exists()
