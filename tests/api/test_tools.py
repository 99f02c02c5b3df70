"""GET /api/tools lists the catalog with schemas, and each tool's figures, which count only calls of
the caller's organization."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.employees.toolboxes import get_installed_toolbox
from tests.features import feature
from tests.web.counted import count_calls, last_error
from tests.world import SEARCH, World, pages, problem
from tools.builtin import BUILTIN_TOOLS
from tools.office.tools import OFFICE_TOOLS

pytestmark = pytest.mark.django_db


def test_every_installed_tool_has_the_documented_fields(world: World) -> None:
    items = world.client("viewer").get("/api/tools?limit=200").json()["items"]
    assert [item["name"] for item in items] == sorted(
        tool.name for tool in get_installed_toolbox().tools()
    )
    search = next(item for item in items if item["name"] == SEARCH)
    assert search.keys() == {
        "id", "name", "display_name", "description", "category", "level", "version", "author", "source", "is_enabled",
        "has_side_effects", "capabilities", "features", "parameters", "output", "figures",
    }  # fmt: skip
    assert (search["category"], search["level"], search["source"]) == ("data", "read", "built in")
    assert search["is_enabled"] is True
    assert search["parameters"]["type"] == "object"
    assert "region" in search["parameters"]["properties"]
    assert (search["id"], search["author"], search["has_side_effects"]) == (
        f"{SEARCH}@1.0",
        "Gadget",
        False,
    )
    assert {"records", "total"} <= search["output"]["properties"].keys()
    shipped = {tool.name for tool in (*BUILTIN_TOOLS, *OFFICE_TOOLS)}
    reads = [item for item in items if item["level"] == "read" and item["name"] in shipped]
    assert [item["name"] for item in reads if item["output"] is None] == []


@feature(
    "Figures and metrics",
    "Figures by tool, and tokens and cost of an employee, over REST",
    "agents/api/statistics.py",
)
def test_figures_count_only_this_organization(world: World) -> None:
    count_calls(
        world.employee,
        SEARCH,
        succeeded=2,
        approved=4,
        denied=1,
        cost_micros=1_500_000,
        within_10=2,
        slowest_ms=8,
    )
    count_calls(world.employee, SEARCH, days_ago=3, **last_error())

    def figures(username: str) -> dict[str, Any]:
        items = world.client(username).get("/api/tools?limit=200").json()["items"]
        found: dict[str, Any] = next(item["figures"] for item in items if item["name"] == SEARCH)
        return found

    mine = figures("viewer")
    error = mine.pop("last_error")
    assert (error["code"], error["message"]) == ("NOT_FOUND", "There is no such record.")
    assert mine == {
        "days": 30, "calls": 3, "failures": 1, "success_rate": pytest.approx(2 / 3), "p50_ms": 6, "p95_ms": 8,
        "approvals": 4, "denials": 1, "cost": 1.5,
    }  # fmt: skip
    assert figures("outsider") == {
        "days": 30, "calls": 0, "failures": 0, "success_rate": None, "p50_ms": None, "p95_ms": None,
        "approvals": 0, "denials": 0, "cost": 0.0, "last_error": None,
    }  # fmt: skip


def test_pages_contain_each_tool_once(world: World) -> None:
    seen = [
        item["name"] for items in pages(world.client("viewer"), "/api/tools", 3) for item in items
    ]
    assert seen == sorted(tool.name for tool in get_installed_toolbox().tools())


def test_a_disabled_tool_is_shown_as_disabled(world: World) -> None:
    get_installed_toolbox().disable(SEARCH)
    try:
        items = world.client("viewer").get("/api/tools?limit=200").json()["items"]
    finally:
        get_installed_toolbox().enable(SEARCH)
    assert [item["name"] for item in items if not item["is_enabled"]] == [SEARCH]


def test_one_query_sums_up_all_tools_without_reading_calls(world: World) -> None:
    client = world.client("viewer")
    with CaptureQueriesContext(connection) as queries:
        client.get("/api/tools")
    assert sum("toolfigures" in query["sql"] for query in queries) == 1
    assert not any("runs_toolcall" in query["sql"] for query in queries)


def test_an_invalid_cursor_is_reported(world: World) -> None:
    assert problem(world.client("viewer").get("/api/tools?cursor=%FF"), 422)["field"] == "cursor"
