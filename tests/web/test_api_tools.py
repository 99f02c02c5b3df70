"""GET /api/tools lists the catalog with schemas, and how each tool did in the asker's organisation alone."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.engine.toolbox import installed_toolbox
from agents.models import CallStatus
from tests.web.world import SEARCH, World, make_world, pages, problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return make_world()


def test_every_tool_of_the_installation_has_the_promised_fields(world: World) -> None:
    items = world.client("viewer").get("/api/tools?limit=200").json()["items"]
    assert [item["name"] for item in items] == sorted(tool.name for tool in installed_toolbox().tools())
    search = next(item for item in items if item["name"] == SEARCH)
    assert search.keys() == {
        "name", "display_name", "description", "category", "level", "version", "source", "is_enabled", "parameters",
        "figures",
    }  # fmt: skip
    assert (search["category"], search["level"], search["source"]) == ("data", "read", "built in")
    assert search["is_enabled"] is True
    assert search["parameters"]["type"] == "object"
    assert "region" in search["parameters"]["properties"]


def test_figures_count_what_ended_in_this_organisation(world: World) -> None:
    run = world.run()
    for status in (CallStatus.SUCCEEDED, CallStatus.SUCCEEDED, CallStatus.FAILED, CallStatus.DENIED):
        world.call(run, status=status)

    def figures(username: str) -> dict[str, int]:
        items = world.client(username).get("/api/tools?limit=200").json()["items"]
        found: dict[str, int] = next(item["figures"] for item in items if item["name"] == SEARCH)
        return found

    assert figures("viewer") == {"calls": 3, "failures": 1}
    assert figures("outsider") == {"calls": 0, "failures": 0}


def test_pages_hold_each_tool_once(world: World) -> None:
    seen = [item["name"] for items in pages(world.client("viewer"), "/api/tools", 3) for item in items]
    assert seen == sorted(tool.name for tool in installed_toolbox().tools())


def test_a_disabled_tool_is_shown_as_such(world: World) -> None:
    installed_toolbox().disable(SEARCH)
    try:
        items = world.client("viewer").get("/api/tools?limit=200").json()["items"]
    finally:
        installed_toolbox().enable(SEARCH)
    assert [item["name"] for item in items if not item["is_enabled"]] == [SEARCH]


def test_one_query_counts_all_tools(world: World) -> None:
    client = world.client("viewer")
    with CaptureQueriesContext(connection) as queries:
        client.get("/api/tools")
    assert sum("tool_call" in query["sql"] or "toolcall" in query["sql"] for query in queries) == 1


def test_a_wrong_cursor_is_named(world: World) -> None:
    assert problem(world.client("viewer").get("/api/tools?cursor=%FF"), 422)["field"] == "cursor"
