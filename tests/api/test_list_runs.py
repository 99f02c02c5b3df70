"""GET /api/runs lists the organization's runs, newest first, in stable pages and a constant number
of queries."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.api import paging
from agents.employees.models import Employee
from agents.runs.models import RunStatus
from tests.world import World, pages, problem

pytestmark = pytest.mark.django_db


def ids(response: dict[str, list[dict[str, str]]]) -> list[str]:
    return [item["id"] for item in response["items"]]


def test_runs_are_listed_newest_first_without_tool_calls(world: World) -> None:
    older, newer = world.run(), world.run(RunStatus.SUCCEEDED)
    response = world.client("viewer").get("/api/runs").json()
    assert ids(response) == [str(newer.pk), str(older.pk)]
    assert response["next_cursor"] is None
    assert response["items"][0]["exit_reason"] == "final_answer"
    assert "tool_calls" not in response["items"][0]


def test_pages_contain_each_run_once_while_new_runs_appear(world: World) -> None:
    runs = [str(world.run().pk) for _ in range(5)]
    seen = []
    for items in pages(world.client("viewer"), "/api/runs", limit=2):
        seen += [item["id"] for item in items]
        world.run()
    assert seen == runs[::-1]


def test_a_last_page_that_is_full_has_no_next_cursor(world: World) -> None:
    for _ in range(2):
        world.run()
    assert world.client("viewer").get("/api/runs?limit=2").json()["next_cursor"] is None


def test_the_list_can_be_filtered_by_status(world: World) -> None:
    world.run()
    done = world.run(RunStatus.SUCCEEDED)
    assert ids(world.client("viewer").get("/api/runs?status=succeeded").json()) == [str(done.pk)]


def test_the_list_can_be_filtered_by_employee(world: World) -> None:
    mine = world.run()
    world.employee = Employee.objects.create(
        organization=world.acme, name="Erin", provider=world.employee.provider
    )
    world.run()
    client = world.client("viewer")
    assert ids(client.get("/api/runs", {"employee_id": mine.employee_id}).json()) == [str(mine.pk)]
    assert ids(client.get("/api/runs?employee_id=999999").json()) == []


@pytest.mark.parametrize("text", ["100% of", "100%", "_under", "Ünïcode", "phone"])
def test_the_search_text_is_matched_literally(world: World, text: str) -> None:
    wanted = world.run(task="Call 100% of them by PHONE, say _under, and Ünïcode.")
    world.run(task="Something else with 100 and under.")
    assert ids(world.client("viewer").get("/api/runs", {"q": text}).json()) == [str(wanted.pk)]


def test_the_search_matches_titles(world: World) -> None:
    wanted = world.run(title="Quarterly tidying")
    world.run()
    assert ids(world.client("viewer").get("/api/runs?q=quarterly").json()) == [str(wanted.pk)]


def test_a_slow_search_returns_an_empty_page_and_continues_from_its_cursor(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "BATCH", 2)
    monkeypatch.setattr(paging, "LOOKED_THROUGH_S", 0.0)
    wanted = world.run(title="Quarterly tidying")
    for _ in range(4):
        world.run()
    found = pages(world.client("viewer"), "/api/runs", limit=5, query="q=quarterly")
    assert [[item["id"] for item in items] for items in found] == [[], [], [str(wanted.pk)]]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=x", "limit"),
        ("status=asleep", "status"),
        ("employee_id=abc", "employee_id"),
        ("employee_id=99999999999999999999", "employee_id"),
        ("cursor=!!", "cursor"),
        ("cursor=%00", "cursor"),
        ("cursor=OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5", "cursor"),
        ("q=a%00b", "q"),
        (f"q={'x' * 201}", "q"),
    ],
)
def test_an_invalid_query_is_reported(world: World, query: str, field: str) -> None:
    assert problem(world.client("viewer").get(f"/api/runs?{query}"), 422)["field"] == field


def test_the_number_of_queries_is_independent_of_the_number_of_runs(world: World) -> None:
    client, counts = world.client("viewer"), []
    for _ in range(2):
        for _ in range(4):
            world.call(world.run())
        with CaptureQueriesContext(
            connection,
        ) as queries:
            client.get("/api/runs")
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 4
