"""GET /api/employees and /api/employees/{id} show the employees and their tools."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.employees.models import Employee
from tests.web.counted import count_calls, count_passes
from tests.world import DELETE, SCRIPT, SEARCH, UPDATE, World, pages, problem

pytestmark = pytest.mark.django_db


def colleagues(world: World, count: int) -> None:
    start = Employee.objects.count()
    for number in range(start, start + count):
        mate = Employee.objects.create(
            organization=world.acme, name=f"Mate {number}", provider=world.employee.provider
        )
        mate.grants.create(tool=SEARCH)


def test_an_employee_has_the_documented_fields(world: World) -> None:
    shown = world.client("viewer").get(f"/api/employees/{world.employee.pk}").json()
    assert shown.pop("figures") == {
        "days": 30, "passes": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0, "tools": []
    }  # fmt: skip
    assert shown == {
        "id": str(world.employee.pk),
        "name": "Dana",
        "job_title": "Data steward",
        "mode": "general",
        "provider": "Script",
        "model": SCRIPT,
        "allowed_tools": sorted([DELETE, SEARCH, UPDATE]),
        "pinned_versions": {},
        "example_tasks": ["Tidy up."],
        "is_active": True,
    }


def test_the_details_count_only_calls_of_this_employee(world: World) -> None:
    count_calls(world.employee, UPDATE, succeeded=3, failed=1, approved=4)
    count_calls(world.others_employee, SEARCH, succeeded=9)
    count_passes(world.employee, passes=2, input_tokens=30, output_tokens=5, cost_micros=250_000)
    figures = world.client("viewer").get(f"/api/employees/{world.employee.pk}").json()["figures"]
    assert [(one["tool"], one["calls"], one["failures"]) for one in figures.pop("tools")] == [
        (UPDATE, 4, 1)
    ]
    assert figures == {
        "days": 30,
        "passes": 2,
        "input_tokens": 30,
        "output_tokens": 5,
        "cost": 0.25,
    }


def test_the_list_contains_only_employees_of_the_organization(world: World) -> None:
    client = world.client("viewer")
    colleagues(world, 2)
    items = client.get("/api/employees").json()["items"]
    assert [item["name"] for item in items] == ["Dana", "Mate 2", "Mate 3"]
    shown = client.get(f"/api/employees/{world.employee.pk}").json()
    assert items[0] == {key: value for key, value in shown.items() if key != "figures"}


def test_pages_contain_each_employee_once(world: World) -> None:
    colleagues(world, 4)
    seen = [
        item["name"]
        for items in pages(world.client("viewer"), "/api/employees", 2)
        for item in items
    ]
    assert seen == ["Dana", "Mate 2", "Mate 3", "Mate 4", "Mate 5"]


def test_the_number_of_queries_is_independent_of_the_number_of_employees(world: World) -> None:
    client, counts = world.client("viewer"), []
    for _ in range(2):
        colleagues(world, 3)
        with CaptureQueriesContext(connection) as queries:
            client.get("/api/employees")
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 5


def test_an_invalid_cursor_is_reported(world: World) -> None:
    assert problem(world.client("viewer").get("/api/employees?cursor=x"), 422)["field"] == "cursor"
